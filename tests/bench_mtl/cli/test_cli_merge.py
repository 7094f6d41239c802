"""`bench-mtl merge` as a user meets it: what it says, and what can be done with the new folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_mtl.results import Store

FIRST = [{"seed": seed, "seconds": 1.0} for seed in range(3)]
SECOND = [{"seed": seed, "seconds": 2.0, "environment": {"processor": "slow one", "logical_cores": 2}} for seed in range(2, 6)]


def test_two_machines_become_one_folder(command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path) -> None:
    a, b, out = make_results("a", FIRST), make_results("b", SECOND), tmp_path / "new" / "both"
    result = command("merge", a, b, "-o", out)
    assert (result.code, result.err) == (0, [])
    assert result.out == [
        f"{out}: 6 runs of 2 folders",
        "1 row is of a case that a folder before has too: it is kept as superseded",
        "the runs were made on different machines, whose times are not comparable:",
        "  quick one, 4 cores, 16.0 GiB",
        "  slow one, 2 cores, 16.0 GiB",
        f"bench-mtl report {out} writes the report",
    ]
    with Store.open(out) as store:
        assert list(store.runs()["seed"]) == [0, 1, 2, 3, 4, 5]
        assert list(store.runs()["solve_seconds"]) == [1.0] * 3 + [2.0] * 3


def test_results_of_one_machine_are_not_warned_of(command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path) -> None:
    a, b = make_results("a", FIRST[:2]), make_results("b", FIRST[2:])
    result = command("merge", a, b, "-o", tmp_path / "out")
    assert result.out == [
        f"{tmp_path / 'out'}: 3 runs of 2 folders",
        f"bench-mtl report {tmp_path / 'out'} writes the report",
    ]


def test_one_folder_without_its_proofs(command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder, out = make_results("a", FIRST), tmp_path / "out"
    result = command("merge", folder, "-o", out, "--without-proofs")
    assert (result.code, result.err) == (0, [])
    assert result.out == [f"{out}: 3 runs of 1 folder", f"bench-mtl report {out} writes the report"]
    assert command("check", out).out == [f"{out}: 3 rows, all as its checksum says"]


def test_what_cannot_be_merged_is_one_line(command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path) -> None:
    a, b = make_results("a", FIRST), make_results("b", SECOND, targets=(1e-3,))
    out = tmp_path / "out"
    for arguments, message in [
        ([a, "-o", out], "at least two results folders"),
        ([a, b, "-o", out], "only results with the same targets can be merged"),
        ([a, a, "-o", a], "is one of the folders to merge"),
        ([a, a, "-o", b], "already holds results"),
        ([a, a], "Missing option '-o' / '--out'"),
    ]:
        result = command("merge", *arguments)
        assert result.code == 2
        (line,) = result.err
        assert line.startswith("bench-mtl: ")
        assert message in line
    assert not out.exists()
