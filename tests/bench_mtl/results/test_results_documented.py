"""Digests are those that docs/results.md describes, so that anybody can compute them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.results import FILE_NAME
from tests.bench_mtl.results.hand_made import fill, outcome


def test_digests_of_a_run_and_of_the_facts_are_those_that_are_described(tmp_path: Path) -> None:
    folder = fill(tmp_path / "results", {1: outcome(solution={"W": np.eye(3)})})

    def plain(value: bytes) -> str:
        return hashlib.blake2b(value, digest_size=16).hexdigest()

    def text(table: str, rows: list[Any]) -> bytes:
        return json.dumps([table, *rows], separators=(",", ":"), default=plain).encode("ascii")

    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        (*run, digest) = connection.execute("SELECT * FROM run").fetchone()
        texts = [text("run", [run])]
        for table, order in {"sample": "number", "measure": "number, name", "pattern": "part", "rung": "number", "place": "number"}.items():
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
            texts += [text(table, rows)] if rows else []
        facts = connection.execute("SELECT key, value FROM meta WHERE key <> 'digest' ORDER BY key").fetchall()
        (of_meta,) = connection.execute("SELECT value FROM meta WHERE key = 'digest'").fetchone()
    assert len(texts) == 3
    assert digest == hashlib.blake2b(b"".join(texts), digest_size=16).digest()
    assert of_meta == hashlib.blake2b(text("meta", [facts]), digest_size=16).hexdigest()
