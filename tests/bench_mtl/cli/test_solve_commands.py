"""`bench-mtl solve` and `path`: what they show and save, with one solver and with several, and what code of plug-ins raises."""

import csv
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commands import HINGE, SMALL, SOURCE, Command, document, line_of, refused, table_of_flowers

from bench_mtl.core import dask_blocks
from bench_mtl.core.dask_cluster import client_at
from bench_mtl.data import write_shards
from bench_mtl.engine.stopping import BySteps
from bench_mtl.report.check import check_report, suite_report

OWN = ["--data", "own.csv", "--data-option", "labels=2", "--param", "radius=1", "--target", "1e-3"]
BOX = ["--data", "synthetic_l1inf", "--data-option", "tasks=2", "--data-option", "features=5", "--data-option", "examples=6"]


def test_samples_are_shown_and_a_certified_solution_is_saved(command: Command) -> None:
    result = command("solve", "l1inf_hinge", "ECOS", *SMALL, "--param", "radius=truth", "--save", "W.npz")
    assert (result.code, result.err) == (0, [])
    for words in ("l1inf_hinge: 30 rows of 3 tasks, 8 features", "training error: ", " binds", "verified: relative gap"):
        assert words in result.text
    with np.load("W.npz") as file:
        assert file["solution"].shape == (8, 3)
        assert file["relative_gap"] <= 1e-6


def test_a_document_has_the_run_and_an_alias_what_it_stands_for(command: Command) -> None:
    run = document(command("solve", *HINGE, "--param", "radius=1", "--json"))
    assert (run["problem"], run["solver"], run["status"], run["target"]) == ("l1inf_hinge", HINGE[1], "verified", 1e-2)
    assert run["dimensions"] == {"n": 30, "d": 8, "m": 3}
    assert run["dual_bound"] <= run["objective"]
    assert 0.0 <= run["relative_gap"] <= 1e-2
    assert run["seconds"] > 0.0
    assert run["samples"][-1]["iteration"] == run["iterations"]
    alias = document(command("solve", "l1inf_hinge", "ECOS", *HINGE[2:], "--param", "radius=1", "--json"))
    assert (alias["solver"], alias["options"], alias["label"], alias["status"]) == ("conic", {"backend": "ECOS"}, "ecos", "verified")


def test_a_missed_target_and_a_solver_that_does_not_fit_exit_1(command: Command, here: Path) -> None:
    missed = command("solve", *HINGE, "--param", "radius=1", "--iterations", "1", "--quiet")
    assert (missed.code, len(missed.out), missed.out[0].split(":")[0]) == (1, 1, "inaccurate")
    unfit = ["solve", "l1inf_hinge", "projected_gradient", *HINGE[2:], "--param", "radius=1"]
    skipped = command(*unfit)
    assert skipped.code == 1
    assert "skipped: projected_gradient needs smooth" in skipped.text
    assert "these take it: " in skipped.text
    run = document(command(*unfit, "--json"))
    assert (run["status"], run["objective"], run["iterations"], run["samples"]) == ("skipped", None, None, [])
    (here / "W.npz").write_text("mine")
    unsaved = command(*unfit, "--save", "W.npz", "--json")
    assert "no solution to save" in unsaved.err[-1]
    assert (unsaved.code, document(unsaved)["saved"]) == (1, None)
    assert [(path.name, path.read_text()) for path in here.iterdir()] == [("W.npz", "mine")]


def test_a_table_of_ones_own_is_compared_and_a_report_kept(command: Command) -> None:
    table_of_flowers(Path("own.csv"))
    result = command("solve", "l1inf_hinge", "projected_subgradient", "clarabel", *OWN, "--out", "kept")
    assert result.code == 0, result.err
    assert "note: The labels are red, round." in result.out
    rows = [line.split() for line in result.out if line.startswith(("projected_subgradient ", "clarabel "))]
    assert [row[:3] for row in rows] == [["projected_subgradient", "specialised", "verified"], ["clarabel", "generic", "verified"]]
    assert any(line.startswith("[1/3] l1inf_hinge | projected_subgradient: verified") for line in result.out)  # a table has no seed
    assert result.out[-1] == "report: kept/report.md"
    report = Path("kept/report.md").read_text()
    assert report.startswith("# l1inf_hinge, own.csv\n")
    assert "bench-mtl solve l1inf_hinge projected_subgradient clarabel --data own.csv" in report
    assert check_report(Path("kept"), suite_report)[0] == []
    assert "3 of 3 rows proven again" in " ".join(command("check", "kept", "--recertify").out)


def test_of_several_solvers_one_has_to_prove_the_target(command: Command) -> None:
    table_of_flowers(Path("own.csv"))
    skipped = command("solve", "l1inf_hinge", "projected_subgradient", "partial_minimisation", *OWN, "--json")
    assert [run["status"] for run in document(skipped)["runs"]] == ["verified", "skipped"]
    assert skipped.code == 0
    assert command("solve", "l1inf_hinge", "admm", "partial_minimisation", *OWN, "--quiet").code == 1


def test_a_path_is_a_table_and_a_csv(command: Command) -> None:
    result = command("path", *HINGE, "--over", "radius=2,0.5,1", "--csv", "path.csv")
    assert result.code == 0, result.err
    assert result.out[1].split() == ["radius", "status", "objective", "dual", "bound", "rel.", "gap", "seconds", "iterations", "rows"]
    assert [line.split()[:2] for line in result.out[2:5]] == [["0.5", "verified"], ["1", "verified"], ["2", "verified"]]
    with Path("path.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["radius"]) for row in rows] == [0.5, 1.0, 2.0]
    for row in rows:
        assert float(row["dual_bound"]) <= float(row["objective"])
        assert float(row["relative_gap"]) <= 1e-2
        assert 1 <= int(row["rows"]) <= 8
    points = document(command("path", *HINGE, "--over", "radius = 2,1", "--json"))["points"]
    assert [(point["value"], point["status"]) for point in points] == [(1.0, "verified"), (2.0, "verified")]


def test_a_path_starts_warm_unless_it_is_to_start_cold(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.engine.driver.ByWork", lambda *_, **__: BySteps())  # so that steps do not depend on the time
    arguments = ["path", "sparse_low_rank", "accelerated_gradient", "--data", "synthetic_sparse_low_rank", "--param", "gamma=2"]
    small = ["--data-option", "tasks=12", "--data-option", "features=35", "--data-option", "examples=40", "--target", "1e-3"]
    steps = []
    for flags in ([], ["--cold"]):
        result = command(*arguments, *small, "--over", "tau=4,5,6", "--option", "restart=gradient", *flags)
        assert result.code == 0, result.err
        assert result.out[1].split()[-2:] == ["non-zeros", "rank"]
        steps.append([int(line.split()[6]) for line in result.out[2:5]])
    warm, cold = steps
    assert warm[0] == cold[0]
    assert sum(warm) < sum(cold)


def test_a_value_that_falls_short_says_why(command: Command) -> None:
    result = command("path", *HINGE, "--over", "radius=1,2", "--iterations", "1")
    assert result.code == 0
    assert "limit of 1 iteration, " in result.out[3]
    skipped = command("path", "l1inf_hinge", "projected_gradient", "--data", "synthetic_l1inf", "--over", "radius=1")
    assert skipped.code == 1
    assert "projected_gradient needs smooth" in skipped.out[3]


def test_what_a_solver_raises_has_a_place_and_its_lines_when_asked(command: Command, plugins: Path) -> None:
    place = line_of(plugins / "solvers" / "faulty.py", "raise RuntimeError(")
    solve = ("solve", "box", "faulty", *BOX, "--plugins", plugins, "--option", "fault=raises")
    result = command(*solve)
    assert (result.code, result.err) == (1, [])
    assert f"error: RuntimeError: two lines of trouble ({place})" in result.out
    result = command(*solve, "--traceback", "--json")
    assert (result.code, result.err) == (1, [f"  {place}, in Faulty.steps", SOURCE])
    file, line = place.split(":")
    assert document(result)["places"] == [{"file": file, "line": int(line), "function": "Faulty.steps", "source": SOURCE.strip()}]
    result = command("solve", "box", "odd_raise", "silent", *BOX, "--plugins", plugins, "--traceback")
    assert result.code == 1
    assert result.err[0] == "box | steps_error: RuntimeError: two lines of trouble"
    assert f"  {line_of(plugins / 'solvers' / 'odd.py', 'raise _RAISED')}, in OddRaise._raise" in result.err


@pytest.mark.parametrize("solvers", [("faulty",), ("faulty", "auto")], ids=["one solver", "several"])
def test_a_problem_that_cannot_be_built_is_one_line(command: Command, plugins: Path, solvers: tuple[str, ...]) -> None:
    place = line_of(plugins / "problems" / "boxes.py", "raise RuntimeError(")
    solve = ("solve", "broken", *solvers, *BOX, "--plugins", plugins, "--param", "fault=raises")
    said = f"bench-mtl: the problem cannot be built: RuntimeError: two lines of trouble ({place})"
    assert refused(command(*solve)) == said
    assert command(*solve, "--traceback").err == [f"  {place}, in Broken.__init__", SOURCE, said]


@pytest.mark.parametrize("how", [("solve",), ("path", "--over", "bound=0.1,1")], ids=["solve", "path"])
def test_a_solver_that_cannot_warm_up_is_one_line(command: Command, plugins: Path, how: tuple[str, ...]) -> None:
    name, *options = how
    result = command(name, "box", "odd_raise", *BOX, *options, "--plugins", plugins, "--option", "where=warm_up")
    place = line_of(plugins / "solvers" / "odd.py", "raise _RAISED")
    assert (result.code, result.err) == (2, [f"bench-mtl: warm-up failed: RuntimeError: two lines of trouble ({place})"])
    blocks = ["--param", "nu=0.1"] if name == "solve" else ["--over", "nu=0.1"]
    result = command(name, "group_boosting", "consensus_admm", "--data", "digits", "--option", "blocks=99999", *blocks)
    assert (result.code, len(result.err)) == (2, 1)
    assert "cannot make 99999 blocks of the 1797 examples of group_boosting" in result.err[0]


@pytest.mark.parametrize("nu", ["0.3 max", "2 max"])  # the second is solved by W = 0, before there is a cluster
def test_an_address_is_read_before_anything_is_done(command: Command, nu: str) -> None:
    line = refused(command("solve", "group_boosting", "consensus_admm", "--data", "digits", "--param", f"nu={nu}", "--cluster", "foo"))
    assert line == "bench-mtl: cluster must be local or the address of a Dask scheduler, such as tcp://host:8786, not 'foo'"


def test_a_scheduler_that_is_not_there_is_bad_input_of_data_in_shards(
    command: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the problem has asked for workers before it is solved."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr(dask_blocks, "client_at", partial(client_at, seconds=0.2))
    rng = np.random.default_rng(0)
    shards = write_shards(here / "shards", [(rng.standard_normal((20, 4)), np.where(rng.random((20, 2)) < 0.5, 1.0, -1.0))])
    result = command("solve", "l1inf_hinge", "auto", "--data", shards, "--param", "radius=1", "--cluster", "tcp://127.0.0.1:9")
    assert result.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in result.err[-1]
    assert not any("error" in line for line in result.out)
