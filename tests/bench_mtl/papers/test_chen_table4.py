"""Table IV of Chen, Liu and Ye: a run to the stopping rule against plain loops, and what is read from rows whose story is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.engine.registry import load_registry
from bench_mtl.model.task_data import TaskData
from bench_mtl.papers import Verdict, cells_of, experiment
from bench_mtl.papers.chen import table4, table4_cell
from bench_mtl.papers.chen.table4 import CHANGES, MAIN, SETTINGS, read
from bench_mtl.papers.chen.table4_cell import RACE, RACE_CHANGE, SOLVERS, compute
from bench_mtl.papers.chen.table4_variants import VARIANTS, Variant, as_read
from bench_mtl.papers.published import published

PG, AG = SOLVERS
GAMMA, TAU = 0.5, 1.5


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """A folder with a small set of that name."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((30, 5))
    Y = (X @ generator.standard_normal((5, 3)) > 0.0).astype(np.int8)
    np.savez(tmp_path / "scene.npz", X=X, Y=Y)
    return tmp_path


def by_loops(folder: Path, *, accelerated: bool, change: float) -> tuple[int, list[float]]:
    """Algorithms 1 and 2 of the paper written out: iterations until the rule stops, and all objectives."""
    with np.load(folder / "scene.npz") as file:
        X, Y = np.asarray(file["X"]), 2.0 * file["Y"] - 1.0

    def smooth(T: Any) -> float:
        return 0.5 * float(((X @ (T[0] + T[1]) - Y) ** 2).sum())

    def objective(T: Any) -> float:
        return smooth(T) + GAMMA * float(abs(T[0]).sum())

    def step(S: Any, L: float) -> tuple[Any, Any]:
        G = X.T @ (X @ (S[0] + S[1]) - Y)
        P, A = S[0] - G / L, S[1] - G / L
        U, values, Vt = np.linalg.svd(A, full_matrices=False)
        low, high = 0.0, values[0]
        for _ in range(100):
            theta = 0.5 * (low + high)
            low, high = (theta, high) if np.maximum(values - theta, 0.0).sum() > TAU else (low, theta)
        Q = A if values.sum() <= TAU else (U * np.maximum(values - high, 0.0)) @ Vt
        return np.stack([np.sign(P) * np.maximum(abs(P) - GAMMA / L, 0.0), Q]), G

    T = previous = np.zeros((2, 5, 3))
    L, t_before, t = 1.0, 0.0, 1.0
    objectives = [objective(T)]
    while True:
        S = T + (t_before - 1.0) / t * (T - previous) if accelerated else T
        while True:
            new, G = step(S, L)
            if smooth(new) <= smooth(S) + float((G * (new - S).sum(axis=0)).sum()) + 0.5 * L * float(((new - S) ** 2).sum()) + 1e-12:
                break
            L *= 2.0
        t_before, t = t, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        previous, T = T, new
        objectives.append(objective(T))
        if abs(objectives[-1] - objectives[-2]) < change:
            return len(objectives) - 1, objectives


def settings(solver: str, change: float) -> dict[str, Any]:
    return {"normalisation": "none", "gamma": GAMMA, "tau": TAU, "solver": solver, "change": change}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("change", [1e-1, 1e-3, 1e-6])
def test_a_run_against_the_algorithm_written_out(scene: Path, solver: str, change: float) -> None:
    found = compute(settings(solver, change), scene)
    iterations, objectives = by_loops(scene, accelerated=solver == AG, change=change)
    best = min(by_loops(scene, accelerated=True, change=1e-13)[1])
    values = found.values
    assert found.status == "inaccurate"
    assert values["iterations"] == iterations
    assert values["objective"] == pytest.approx(objectives[-1], rel=1e-9)
    assert values["excess"] == pytest.approx(max(0.0, objectives[-1] - best) / best, abs=2e-9)
    assert values["excess"] <= values["proven_gap"] + 1e-9  # the gap is a proof, so it cannot be smaller
    assert values["run_seconds"] > 0.0


def test_the_race_ends_where_ag_is_first_as_good_as_pg(scene: Path) -> None:
    values = compute(settings(RACE, RACE_CHANGE), scene).values
    slow, objectives = by_loops(scene, accelerated=False, change=RACE_CHANGE)
    _, faster = by_loops(scene, accelerated=True, change=1e-13)
    assert values["pg_iterations"] == slow
    assert values["goal"] == pytest.approx(objectives[-1], rel=1e-9)
    first = next(step for step, objective in enumerate(faster) if objective <= values["goal"])
    assert values["ag_iterations"] == first
    assert values["pg_steps"][0] == values["ag_steps"][0] == 0
    assert (values["pg_steps"][-1], values["ag_steps"][-1]) == (slow, first)
    for name, known in (("pg", objectives), ("ag", faster)):
        expected = [(known[step] - min(faster)) / min(faster) for step in values[f"{name}_steps"]]
        assert values[f"{name}_excess"] == pytest.approx(expected, abs=2e-9)
        assert sorted(set(values[f"{name}_steps"])) == values[f"{name}_steps"]


def test_a_run_that_the_rule_does_not_stop_has_no_number(scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table4_cell, "MOST_ITERATIONS", 3)
    found = compute(settings(PG, 1e-9), scene)
    assert found.values["iterations"] is None
    assert found.reason.startswith("not stopped by the rule within 3 iterations")


def test_a_folder_without_scene_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scene"):
        cells_of(experiment("chen-table4"), "small", load_registry(), tmp_path)


def rows(factor: float = 1.0, slower: float = 1.0, changes: tuple[float, ...] = CHANGES) -> pd.DataFrame:
    """The published numbers as if they were ours, times a factor; AG's times another."""
    table: list[dict[str, Any]] = []
    for row in published("chen2012_table4"):
        about = {"normalisation": MAIN, "gamma": float(row["gamma"]), "tau": float(row["tau"]), "solver": row["solver"]}
        own = factor * (slower if row["solver"] == AG else 1.0)
        costs = {"iterations": own * float(row["iterations"]), "run_seconds": own * float(row["seconds"])}
        change = float(row["objective_change"])
        gaps = {"proven_gap": 10.0 * change, "excess": change, "objective": 1.0, "optimum": 1.0, "status": "inaccurate", "seconds": 1.0}
        if change in changes:
            table.append({**about, "change": change, **costs, **gaps})
    for gamma, tau in SETTINGS:
        about = {"normalisation": MAIN, "gamma": gamma, "tau": tau, "solver": RACE, "change": RACE_CHANGE, "seconds": 1.0}
        course = {"pg_steps": [0, 1, 10, 100], "pg_excess": [1.0, 0.4, 0.04, 0.004], "ag_steps": [0, 1, 10], "ag_excess": [1.0, 0.4, 0.003]}
        table.append({**about, "pg_iterations": 100.0, "ag_iterations": 10.0 * slower, "optimum": 2.0, "rate": 2.0, **course})
    return pd.DataFrame(table)


def of(frame: pd.DataFrame, start: str) -> list[Any]:
    return [each for each in read(frame).comparisons if each.what.startswith(start)]


def reading(variant: Variant, factor: float) -> list[dict[str, Any]]:
    """Rows of one more reading: the published iterations times a factor."""
    found: dict[tuple[float, float, str], list[float]] = {}
    for row in sorted(published("chen2012_table4"), key=lambda row: -float(row["objective_change"])):
        key = float(row["gamma"]), float(row["tau"]), row["solver"]
        found.setdefault(key, []).append(factor * float(row["iterations"]))
    about = {"normalisation": "none", "change": CHANGES[-1], "seconds": 1.0, **variant._asdict()}
    return [{**about, "gamma": gamma, "tau": tau, "solver": solver, "counts": counts} for (gamma, tau, solver), counts in found.items()]


def test_a_number_that_readings_disagree_on_depends_on_the_protocol() -> None:
    far, near = VARIANTS[-1], VARIANTS[0]
    frame = pd.concat([rows(), pd.DataFrame(reading(far, 30.0) + reading(near, 1.5))], ignore_index=True)
    assert {each.verdict for each in of(frame, "iterations of PG, ")} == {Verdict.DEPENDS}
    assert {each.verdict for each in of(frame, "iterations of PG over")} == {Verdict.REPRODUCED}  # the factors cancel
    table = next(section.table for section in read(frame).sections if section.name == "sensitivity")
    assert table is not None
    assert table["most"].tolist() == pytest.approx((30.0 * table["published"]).tolist())
    assert set(table["reading"]) == {MAIN}
    only = pd.concat([rows(10.0), pd.DataFrame(reading(far, 30.0))], ignore_index=True)
    assert {each.verdict for each in of(only, "iterations of PG, ")} == {Verdict.NOT_REPRODUCED}


def test_a_mean_is_a_sum_of_scaled_data() -> None:
    generator = np.random.default_rng(0)
    X, Y = generator.standard_normal((7, 3)), np.where(generator.random((7, 2)) < 0.5, 1.0, -1.0)
    read_as = as_read(TaskData.shared(X, Y), Variant("mean", "0/1", "centred"))
    W, Z = generator.standard_normal((3, 2)), (Y + 1.0) / 2.0
    errors = (X - X.mean(axis=0)) @ W - (Z - Z.mean(axis=0))
    ours = np.asarray(read_as.design.block(0)) @ W - read_as.targets
    assert (ours**2).sum() == pytest.approx((errors**2).sum() / 7)


STATEMENTS = ("in general AG", "the advantage of AG", "PG and AG require", "AG converges", "the convergence speeds")


def test_every_published_cell_is_compared() -> None:
    comparisons = read(rows()).comparisons
    assert len(comparisons) == 7 + 40 + 20 + 40
    assert len({each.what for each in comparisons}) == len(comparisons)
    assert {each.verdict for each in of(rows(), "iterations")} == {Verdict.REPRODUCED}
    assert {each.difference for each in of(rows(), "iterations")} == {0.0}
    assert {each.verdict for each in of(rows(), "seconds")} == {Verdict.UNKNOWN}


def test_the_factor_counts_up_and_down() -> None:
    for factor, verdict in ((1.9, "REPRODUCED"), (1 / 1.9, "REPRODUCED"), (2.1, "NOT_REPRODUCED"), (1 / 2.1, "NOT_REPRODUCED")):
        assert {each.verdict for each in of(rows(factor), "iterations of PG, ")} == {Verdict[verdict]}
        assert {each.verdict for each in of(rows(factor), "iterations of PG over")} == {Verdict.REPRODUCED}


def test_statements_hold_for_the_published_numbers() -> None:
    for start in STATEMENTS[1:]:
        assert [each.verdict for each in of(rows(), start)] == [Verdict.REPRODUCED], start
    # Table IV itself has no row in which AG takes more.
    assert of(rows(), STATEMENTS[0])[0].verdict is Verdict.REPRODUCED


def test_statements_fail_where_ag_is_slow() -> None:
    slow = rows(slower=50.0)
    assert of(slow, STATEMENTS[0])[0].verdict is Verdict.NOT_REPRODUCED
    assert of(slow, STATEMENTS[3])[0].verdict is Verdict.NOT_REPRODUCED
    turned = rows()
    turned.loc[(turned["solver"] == AG) & (turned["change"] == 1e-10), "iterations"] *= 100.0
    assert of(turned, STATEMENTS[1])[0].verdict is Verdict.NOT_REPRODUCED
    beyond = rows()
    beyond["rate"] *= 0.1
    assert of(beyond, STATEMENTS[4])[0].verdict is Verdict.NOT_REPRODUCED
    cheaper = rows()
    cheaper.loc[cheaper["change"] == 1e-10, "run_seconds"] = 0.0
    assert of(cheaper, STATEMENTS[2])[0].verdict is Verdict.NOT_REPRODUCED


def test_statements_about_all_rows_are_open_where_rows_are_missing() -> None:
    unstopped = rows()
    unstopped.loc[(unstopped["solver"] == PG) & (unstopped["gamma"] == 6.0) & (unstopped["change"] == 1e-10), "iterations"] = None
    for start in STATEMENTS[:3]:
        (found,) = of(unstopped, start)
        assert found.verdict is Verdict.UNKNOWN, start
        assert found.why.endswith("not run, or not ended by the rule: PG at gamma 6, tau 4, 1e-10"), found.why
    assert of(unstopped, "seconds of PG, gamma 6, 1e-10")[0].verdict is Verdict.NOT_RUN
    few = rows(changes=(1e-1, 1e-10))
    assert [of(few, start)[0].verdict for start in STATEMENTS[:3]] == [Verdict.UNKNOWN, Verdict.REPRODUCED, Verdict.REPRODUCED]
    assert "PG at gamma 1, tau 2, 1e-2, 1e-3" in of(few, STATEMENTS[0])[0].why
    # What is there contradicts all the same.
    slow = rows(slower=50.0, changes=(1e-1, 1e-10))
    assert of(slow, STATEMENTS[0])[0].verdict is Verdict.NOT_REPRODUCED
    turned = unstopped.copy()
    turned.loc[(turned["solver"] == AG) & (turned["gamma"] == 1.0) & (turned["change"] == 1e-10), "iterations"] *= 100.0
    assert of(turned, STATEMENTS[1])[0].verdict is Verdict.NOT_REPRODUCED


def test_races_are_of_both_settings() -> None:
    one = rows()
    one = one[(one["solver"] != RACE) | (one["gamma"] == 1.0)]
    for start in STATEMENTS[3:]:
        (found,) = of(one, start)
        assert found.verdict is Verdict.UNKNOWN
        assert found.why.endswith("not run, or not ended by the rule: gamma 6, tau 4")
    unended = rows()
    unended.loc[(unended["solver"] == RACE) & (unended["gamma"] == 6.0), "pg_iterations"] = None
    assert [of(unended, start)[0].verdict for start in STATEMENTS[3:]] == [Verdict.UNKNOWN, Verdict.REPRODUCED]


def test_seconds_count_by_their_median_and_only_where_they_can_be_timed() -> None:
    known = rows()
    noise = known.copy()
    noise.loc[(noise["solver"] == PG) & (noise["change"] == 1e-1), "run_seconds"] = 0.01
    assert of(noise, STATEMENTS[0])[0].verdict is Verdict.REPRODUCED
    dear = known.copy()
    dear.loc[(dear["solver"] == AG) & (dear["change"] < 1e-3), "run_seconds"] *= 1e6
    assert of(dear, STATEMENTS[0])[0].verdict is Verdict.NOT_REPRODUCED
    short = known.copy()
    short["run_seconds"] *= 1e-9
    (found,) = of(short, STATEMENTS[0])
    assert found.verdict is Verdict.UNKNOWN
    assert "seconds: none long enough" in found.ours


def test_the_bounds_are_those_of_the_theorems() -> None:
    # Excess times the optimum over L ||T*||^2 / (2 k) and 2 L ||T*||^2 / (k + 1)^2, by hand: 0.4 * 2 / (2 / 2), 0.4 * 2 / (4 / 4), ...
    shares = [0.8, 0.08 / 0.1, 0.008 / 0.01, 0.8 / 1.0, 0.006 / (4.0 / 121.0)]
    assert of(rows(), STATEMENTS[4])[0].ours == f"at most {max(shares):.2g} of the bound"


def test_what_was_not_run_is_said_to_be_so() -> None:
    nothing = read(pd.DataFrame())
    assert {each.verdict for each in nothing.comparisons} == {Verdict.NOT_RUN, Verdict.UNKNOWN}
    assert nothing.sections == ()
    few = rows(changes=(1e-1, 1e-10))
    found = {verdict: sum(each.verdict is verdict for each in of(few, "iterations of")) for verdict in Verdict}
    assert found == {Verdict.REPRODUCED: 8 + 4, Verdict.NOT_RUN: 32 + 16, Verdict.NOT_REPRODUCED: 0, Verdict.DEPENDS: 0, Verdict.UNKNOWN: 0}
    unstopped = rows()
    unstopped.loc[unstopped["change"] == 1e-10, "iterations"] = None
    assert {each.verdict for each in of(unstopped, "iterations of PG, gamma 1, 1e-10")} == {Verdict.NOT_RUN}


def test_tables_and_figures() -> None:
    from bench_mtl.report.figures import style

    sections = {section.name: section for section in read(rows(changes=(1e-1, 1e-4))).sections}
    assert set(sections) == {"table4", "costs", "gaps", "race", "sensitivity", "readings", "normalisations"}
    for name in ("costs", "gaps", "race"):
        draw = sections[name].draw
        assert draw is not None
        assert style.files(draw(), ["svg"])["svg"].startswith(b"<?xml")
    table, shown = sections["table4"].table, sections["table4"].display
    assert table is not None
    assert shown is not None
    assert len(table) == 40
    assert table["iterations"].count() == 8
    assert shown.iloc[6].tolist()[:8] == ["1, 2", "1e-4", "9957", "9957", "537", "537", "116", "6.5"]
    other = sections["normalisations"].display
    assert other is not None
    assert other.iloc[-1].tolist() == ["median factor", "", "", "", "1", "-", "-", "-"]


def test_the_full_scale_takes_over_the_small_one() -> None:
    small, full = (experiment("chen-table4").scale(name).grid for name in ("small", "full"))
    assert [setting for setting in small if setting not in full] == []
    assert len(full) == 4 * 2 * (2 * 10 + 1) + 8 * 2 * 2
    assert {setting["normalisation"] for setting in small if "loss" not in setting} == {MAIN}
    assert table4.SMALL_CHANGES[-1] == CHANGES[-1]
