"""`bench-mtl solve --cluster`, and what else of a solver of blocks is refused before it runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.data import write_shards

ARGUMENTS = ["--data", "digits", "--param", "nu=0.3 max", "--target", "0.5", "--seconds", "20", "--cluster", "local"]


def _refused(*arguments: str) -> str:
    command = [sys.executable, "-m", "bench_mtl", "solve", "group_boosting", *arguments, *ARGUMENTS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 2
    return result.stderr.strip()


def test_solvers_that_use_none_say_so() -> None:
    said = _refused("admm")
    assert "--cluster: admm runs on this machine alone" in said
    assert "\n" not in said


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


def test_a_scheduler_that_is_not_there_is_bad_input_of_data_in_shards(command: Callable[..., Any], tmp_path: Path) -> None:
    """Nothing of the problem has asked for workers before it is solved."""
    rng = np.random.default_rng(0)
    shards = write_shards(tmp_path / "shards", [(rng.standard_normal((20, 4)), np.where(rng.random((20, 2)) < 0.5, 1.0, -1.0))])
    result = command("solve", "l1inf_hinge", "auto", "--data", shards, "--param", "radius=1", "--cluster", "tcp://127.0.0.1:9")
    assert result.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in result.err[-1]
    assert not any("error" in line for line in result.out)


def test_an_unknown_solver_is_still_named() -> None:
    assert "admmm" in _refused("admmm")
