"""Table IV of Chen, Liu and Ye: a run to the stopping rule against plain loops, and what is read from rows whose story is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl import InputError, TaskData, load_registry
from bench_mtl.report.figures import figure_files
from papers.cells import cells_of
from papers.chen import table4_cell
from papers.chen.table4 import CLAIMS, EXPERIMENT, MAIN, SETTINGS, SHORT
from papers.chen.table4_cell import CHANGES, RACE, RACE_CHANGE, SOLVERS, compute
from papers.chen.table4_variants import VARIANTS, Variant, as_read
from papers.judge import Judged, Verdict
from papers.report import read_rows

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
        cells_of(EXPERIMENT, "small", load_registry(), tmp_path)


NUMBERS = {
    (float(claim.places["gamma"][0]), float(claim.places["change"][0]), claim.subject, claim.measure): float(claim.published)
    for claim in CLAIMS
    if claim.is_number and claim.subject
}


def rows(factor: float = 1.0, slower: float = 1.0, changes: tuple[float, ...] = CHANGES) -> pd.DataFrame:
    """The published numbers as if they were ours, times a factor; AG's times another."""
    table: list[dict[str, Any]] = []
    about = {"normalisation": MAIN, "status": "inaccurate", "seconds": 1.0}
    for gamma, tau in SETTINGS:
        for solver, change in [(solver, change) for solver in SOLVERS for change in changes]:
            own = factor * (slower if solver == AG else 1.0)
            steps, seconds = (own * NUMBERS[gamma, change, SHORT[solver], measure] for measure in ("iterations", "seconds"))
            cost = {"iterations": steps, "run_seconds": seconds, "proven_gap": 10.0 * change, "excess": change}
            table.append({**about, "gamma": gamma, "tau": tau, "solver": solver, "change": change, **cost})
        course = {"pg_steps": [0, 1, 10, 100], "pg_excess": [1.0, 0.4, 0.04, 0.004], "ag_steps": [0, 1, 10], "ag_excess": [1.0, 0.4, 0.003]}
        race = {"pg_iterations": 100.0, "ag_iterations": 10.0 * slower, "optimum": 2.0, "rate": 2.0, **course}
        table.append({**about, "gamma": gamma, "tau": tau, "solver": RACE, "change": RACE_CHANGE, **race})
    return pd.DataFrame(table)


def reading(variant: Variant, factor: float) -> pd.DataFrame:
    """Rows of one more reading: the published iterations times a factor."""
    about = {"normalisation": "none", "status": "inaccurate", "change": CHANGES[-1], "seconds": 1.0, **variant._asdict()}
    return pd.DataFrame(
        [
            {**about, "gamma": gamma, "tau": tau, "solver": solver,
             "counts": [factor * NUMBERS[gamma, change, SHORT[solver], "iterations"] for change in CHANGES]}
            for gamma, tau in SETTINGS for solver in SOLVERS
        ]
    )  # fmt: skip


def judged(*frames: pd.DataFrame, measure: str = "") -> list[Judged]:
    """The verdicts of published numbers of a measure, or of all claims; of no frame where nothing was run."""
    chosen = [claim for claim in CLAIMS if not measure or (claim.is_number and claim.measure == measure)]
    rows = pd.concat(frames, ignore_index=True).to_dict("records") if frames else []
    return list(read_rows(replace(EXPERIMENT, claims=chosen), rows).judged)


def numbers(measure: str, *frames: pd.DataFrame) -> set[Verdict]:
    return {each.verdict for each in judged(*frames, measure=measure)}


def statements(*frames: pd.DataFrame) -> dict[str, Verdict]:
    """Verdicts in the order of the paper."""
    said = replace(EXPERIMENT, claims=[claim for claim in CLAIMS if not claim.is_number])
    found = read_rows(said, pd.concat(frames, ignore_index=True).to_dict("records")).judged
    return dict(zip(STATEMENTS, [each.verdict for each in found], strict=False))


RATIO = "iterations of PG over AG"
STATEMENTS = ("cheaper", "cheaper by seconds", "growing", "rising", "rising seconds", "race", "bounds")
YES, NO, OPEN = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.UNKNOWN


def changed(frame: pd.DataFrame, column: str, factor: float | None, **where: Any) -> pd.DataFrame:
    """Rows with one column, where others have these values, multiplied; or without a value there."""
    frame = frame.copy()
    here = np.logical_and.reduce([frame[name] == value for name, value in where.items()] or [frame[column].notna()])
    frame.loc[here, column] = np.nan if factor is None else frame.loc[here, column] * factor
    return frame


def test_a_number_that_readings_disagree_on_depends_on_the_protocol() -> None:
    far, near = reading(VARIANTS[-1], 30.0), reading(VARIANTS[0], 1.5)
    assert numbers("iterations", rows(), far, near) == {Verdict.DEPENDS}
    assert numbers(RATIO, rows(), far, near) == {YES}  # the factors cancel
    assert numbers("iterations", rows(10.0), far) == {NO}
    first = judged(rows(), far, near, measure="iterations")[0]
    assert [outcome.value for outcome in first.by_protocol.values()] == [2.0, 3.0, 60.0]  # the default one first


def test_a_mean_is_a_sum_of_scaled_data() -> None:
    generator = np.random.default_rng(0)
    X, Y = generator.standard_normal((7, 3)), np.where(generator.random((7, 2)) < 0.5, 1.0, -1.0)
    read_as = as_read(TaskData.shared(X, Y), Variant("mean", "0/1", "centred"))
    W, Z = generator.standard_normal((3, 2)), (Y + 1.0) / 2.0
    errors = (X - X.mean(axis=0)) @ W - (Z - Z.mean(axis=0))
    ours = np.asarray(read_as.design.block(0)) @ W - read_as.targets
    assert (ours**2).sum() == pytest.approx((errors**2).sum() / 7)


def test_every_published_cell_is_compared() -> None:
    found = [each for each in judged(rows()) if each.claim.is_number]
    assert len(found) == 40 + 20 + 40
    assert len({(each.claim.measure, each.claim.at, each.claim.subject) for each in found}) == len(found)
    assert [each.value for each in found] == pytest.approx([each.claim.number for each in found], rel=1e-5)
    assert (numbers("iterations", rows()), numbers(RATIO, rows()), numbers("seconds", rows())) == ({YES}, {YES}, {OPEN})


@pytest.mark.parametrize(("factor", "verdict"), [(1.9, YES), (1 / 1.9, YES), (2.1, NO), (1 / 2.1, NO)])
def test_the_factor_counts_up_and_down(factor: float, verdict: Verdict) -> None:
    assert numbers("iterations", rows(factor)) == {verdict}
    assert numbers(RATIO, rows(factor)) == {YES}


def test_statements_hold_for_the_published_numbers() -> None:
    assert statements(rows()) == dict.fromkeys(STATEMENTS, YES)


def test_statements_fail_where_ag_is_slow() -> None:
    slow = statements(rows(slower=50.0))
    assert (slow["cheaper"], slow["race"]) == (NO, NO)
    assert statements(rows(slower=50.0, changes=(1e-1, 1e-10)))["cheaper"] is NO  # what is there contradicts
    assert statements(changed(rows(), "iterations", 100.0, solver=AG, change=1e-10))["growing"] is NO
    assert statements(changed(rows(), "rate", 0.1))["bounds"] is NO
    assert statements(changed(rows(), "run_seconds", 0.0, change=1e-10))["rising seconds"] is NO


def test_statements_about_all_rows_are_open_where_rows_are_missing() -> None:
    few = statements(rows(changes=(1e-1, 1e-10)))
    assert (few["cheaper"], few["growing"], few["rising"]) == (OPEN, YES, YES)
    one = rows()
    one = one[(one["solver"] != RACE) | (one["gamma"] == 1.0)]
    assert (statements(one)["race"], statements(one)["bounds"]) == (OPEN, OPEN)


def test_a_run_that_is_not_stopped_bounds_ratios_and_is_no_number() -> None:
    where = {"solver": PG, "gamma": 6.0, "change": 1e-10}
    unstopped = changed(rows(), "iterations", None, **where)
    assert statements(unstopped) == dict.fromkeys(STATEMENTS, YES)
    late = changed(unstopped, "iterations", 1e4, **{**where, "solver": AG})  # more than 100000 of PG
    assert statements(late)["cheaper"] is NO
    missing = [each for each in judged(unstopped) if each.verdict is Verdict.NOT_RUN and each.claim.is_number]
    assert [(each.claim.measure, each.claim.subject) for each in missing] == [("iterations", "PG"), (RATIO, ""), ("seconds", "PG")]
    assert statements(changed(rows(), "pg_iterations", None, solver=RACE))["race"] is YES


def test_seconds_count_by_their_median_and_only_where_they_can_be_timed() -> None:
    assert statements(changed(rows(), "run_seconds", 0.02, solver=PG, change=1e-1))["cheaper by seconds"] is YES
    assert statements(rows().assign(run_seconds=lambda frame: np.where(frame["solver"] == AG, 1e4, 1.0)))["cheaper by seconds"] is NO
    assert statements(changed(rows(), "run_seconds", 1e-9))["cheaper by seconds"] is Verdict.NOT_RUN


def test_the_bounds_are_those_of_the_theorems() -> None:
    # Excess times the optimum over L ||T*||^2 / (2 k) and 2 L ||T*||^2 / (k + 1)^2, by hand: 0.4 * 2 / (2 / 2), 0.4 * 2 / (4 / 4), ...
    slow, fast = max(0.8, 0.08 / 0.1, 0.008 / 0.01), max(0.8 / 1.0, 0.006 / (4.0 / 121.0))
    found = next(each for each in judged(rows()) if each.claim.measure == "largest share of the bound")
    assert found.ours == f"PG 1: {slow:.3g}; PG 6: {slow:.3g}; AG 1: {fast:.3g}; AG 6: {fast:.3g}"


def test_what_was_not_run_is_said_to_be_so() -> None:
    assert {each.verdict for each in judged()} == {Verdict.NOT_RUN, OPEN}
    few = [
        each.verdict for each in judged(rows(changes=(1e-1, 1e-10))) if each.claim.measure in ("iterations", RATIO) and each.claim.is_number
    ]
    assert (few.count(YES), few.count(Verdict.NOT_RUN), len(few)) == (8 + 4, 32 + 16, 60)


def test_tables_and_figures() -> None:
    records = pd.concat([rows(changes=(1e-1, 1e-4)), reading(VARIANTS[0], 2.0)], ignore_index=True).to_dict("records")
    found = read_rows(EXPERIMENT, records)
    sections = {section.name: section for make in EXPERIMENT.sections if (section := make(found)) is not None}
    assert list(sections) == ["iterations", "seconds", "gaps", "race", "readings"]
    for name in ("iterations", "gaps", "race"):
        draw = sections[name].draw
        assert draw is not None
        assert figure_files(draw(), ["svg"])["svg"].startswith(b"<?xml")
    table, digits = sections["readings"].table, sections["iterations"].digits
    assert table is not None
    assert digits is not None
    row = table[(table["Gamma"] == "gamma 1, tau 2") & (table["Change of the objective below"] == "0.0001") & (table["Solver"] == "PG")]
    assert row.iloc[0].tolist()[3:] == ["9957", "19914"]
    ours, theirs = (digits[digits["solver"] == name] for name in ("PG", "PG, published"))
    assert (len(ours), len(theirs)) == (4, 20)
