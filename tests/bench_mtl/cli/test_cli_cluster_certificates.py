"""`bench-mtl cluster-certificates` as a user meets it: what it writes, who may read it, and that it writes all or nothing."""

from __future__ import annotations

import json
import ssl
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed", reason="Dask is not installed")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_written_for_its_owner_alone(command: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "my: 'cluster' {0} \N{SNOWMAN}"
    result = command("cluster-certificates", folder)
    assert (result.code, result.err) == (0, [])
    assert result.out == [
        f"{folder / 'cluster.pem'}: the key of a cluster, valid for a year; whoever holds it can run code there",
        f"export DASK_CONFIG={folder / 'dask.yaml'} makes Dask use it",
    ]
    assert (mode(folder), mode(folder / "cluster.pem")) == (0o700, 0o600)
    assert sorted(tmp_path.rglob("*")) == [folder, folder / "cluster.pem", folder / "dask.yaml"]


def test_dask_takes_them_for_every_role(command: Callable[..., Any], tmp_path: Path) -> None:
    import dask

    command("cluster-certificates", tmp_path / "mine")
    own = dask.config.collect([str(tmp_path / "mine" / "dask.yaml")], env={})
    with dask.config.set(dask.config.merge(dask.config.config, own)):
        security = distributed.Security()
        assert security.require_encryption
        assert dask.config.get("distributed.comm.default-scheme") == "tls"
        for role in ("client", "scheduler", "worker"):
            arguments = security.get_connection_args(role)
            assert arguments["require_encryption"]
            assert arguments["ssl_context"].verify_mode is ssl.CERT_REQUIRED
        for role in ("scheduler", "worker"):
            assert security.get_listen_args(role)["ssl_context"].verify_mode is ssl.CERT_REQUIRED
            assert dask.config.get(f"distributed.{role}.http.routes") == []


def test_two_clusters_have_two_keys_and_a_document_names_them(command: Callable[..., Any], tmp_path: Path) -> None:
    texts = set()
    for name in ("one", "other"):
        found = json.loads("\n".join(command("cluster-certificates", tmp_path / name, "--json").out))
        assert found == {"key": str(tmp_path / name / "cluster.pem"), "configuration": str(tmp_path / name / "dask.yaml")}
        texts.add(Path(found["key"]).read_text())
    assert len(texts) == 2


def test_nothing_is_written_over(command: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    command("cluster-certificates", folder)
    before = (folder / "cluster.pem").read_bytes()
    result = command("cluster-certificates", folder)
    assert (result.code, result.out) == (2, [])
    assert result.err == [f"bench-mtl: {folder} exists: a key is written to a new folder"]
    assert (folder / "cluster.pem").read_bytes() == before


def test_a_disk_that_is_full_leaves_nothing(command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", full)
    result = command("cluster-certificates", tmp_path / "mine")
    assert result.code == 3
    assert len(result.err) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_makes_keys_is_named_where_it_is_missing(command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    result = command("cluster-certificates", tmp_path / "mine")
    assert result.code == 2
    assert result.err == ["bench-mtl: cluster-certificates needs the package cryptography: pip install 'bench-mtl[cluster]'"]
    assert list(tmp_path.iterdir()) == []
