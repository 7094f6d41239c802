"""`bench-mtl solve --cluster`, and what else of a solver of blocks is refused before it runs; `bench-mtl run --cluster` without one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.core import dask_blocks
from bench_mtl.core.dask_cluster import client_at
from bench_mtl.data import write_shards
from bench_mtl.runner import cluster

pytest.importorskip("distributed", reason="Dask is not installed")

TINY = """
name = "tiny"
targets = [1e-2]

[[problems]]
name = "box"
label = "tiny"
data = { name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }
parameters = { bound = 0.5 }

[[solvers]]
name = "silent"
"""

ARGUMENTS = ["--data", "digits", "--param", "nu=0.3 max", "--target", "0.5", "--seconds", "20", "--cluster", "local"]


@pytest.mark.parametrize(
    ("solver", "words"), [("admm", "--cluster: admm runs on this machine alone"), ("admmm", "admmm")], ids=["alone", "unknown"]
)
def test_solvers_that_use_none_say_so_and_an_unknown_one_is_still_named(command: Callable[..., Any], solver: str, words: str) -> None:
    result = command("solve", "group_boosting", solver, *ARGUMENTS)
    assert (result.code, len(result.err)) == (2, 1), result
    assert words in result.err[0]


@pytest.mark.parametrize("nu", ["0.3 max", "2 max"])  # the second is solved by W = 0, before there is a cluster
def test_an_address_is_read_before_anything_is_done(command: Callable[..., Any], nu: str) -> None:
    result = command("solve", "group_boosting", "consensus_admm", "--data", "digits", "--param", f"nu={nu}", "--cluster", "foo")
    assert (result.code, result.out) == (2, [])
    assert result.err == ["bench-mtl: cluster must be local or the address of a Dask scheduler, such as tcp://host:8786, not 'foo'"]


@pytest.mark.parametrize("asked", [["solve"], ["path", "--over", "nu=0.1"]], ids=["solve", "path"])
def test_more_blocks_than_examples_are_bad_input(command: Callable[..., Any], asked: list[str]) -> None:
    first, *more = asked
    parameters = more or ["--param", "nu=0.1"]
    result = command(first, "group_boosting", "consensus_admm", "--data", "digits", "--option", "blocks=99999", *parameters)
    assert result.code == 2
    assert len(result.err) == 1
    assert "cannot make 99999 blocks of the 1797 examples of group_boosting" in result.err[0]
    assert not any("objective" in line for line in result.out)


def test_a_scheduler_that_is_not_there_is_bad_input_of_data_in_shards(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the problem has asked for workers before it is solved."""
    monkeypatch.setattr(dask_blocks, "client_at", partial(client_at, seconds=0.2))
    rng = np.random.default_rng(0)
    shards = write_shards(tmp_path / "shards", [(rng.standard_normal((20, 4)), np.where(rng.random((20, 2)) < 0.5, 1.0, -1.0))])
    result = command("solve", "l1inf_hinge", "auto", "--data", shards, "--param", "radius=1", "--cluster", "tcp://127.0.0.1:9")
    assert result.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in result.err[-1]
    assert not any("error" in line for line in result.out)


def test_a_cluster_that_is_not_there_is_refused_in_a_line(
    command: Callable[..., Any], plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.2)
    suite = tmp_path / "tiny.toml"
    suite.write_text(TINY)
    result = command("run", suite, "--out", tmp_path / "out", "--plugins", plugins, "--cluster", "tcp://127.0.0.1:1")
    assert (result.code, len(result.err)) == (2, 1), result
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in result.err[0]
    assert not (tmp_path / "out").exists()
