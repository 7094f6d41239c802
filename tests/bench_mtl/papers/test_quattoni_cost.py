"""The costs that Quattoni et al. claim: what a cell measures, and what is read from rows whose law is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl.core.errors import BenchError
from bench_mtl.data import synthetic_l1inf
from bench_mtl.engine.registry import load_registry, make_problem
from bench_mtl.papers import Verdict
from bench_mtl.papers.quattoni import cost_cell
from bench_mtl.papers.quattoni.cost import EXPERIMENT, read
from bench_mtl.papers.quattoni.cost_cell import HEAVY, ITERATION, MATRICES, MEMORY, MERGE, METHODS, NEWTON, SPARSE, STEPS, TIME, compute
from bench_mtl.papers.quattoni.cost_fits import common_ladder, judged_linear, judged_slopes, log_law, slopes
from bench_mtl.papers.quattoni.cost_memory import peak_bytes
from bench_mtl.papers.summaries import Mean
from bench_mtl.projections import norm_l1inf, project_l1inf_ball
from bench_mtl.stats.fits import PowerLaw


@pytest.mark.parametrize("matrix", MATRICES)
def test_a_time_is_of_a_projection_of_as_many_entries_as_are_said(matrix: str) -> None:
    A = cost_cell.drawn(matrix, 1000, 0)
    count = A.nnz if matrix == SPARSE else A.size
    assert count == pytest.approx(1000, rel=0.05)
    found = compute({"part": TIME, "matrix": matrix, "method": MERGE, "size": 1000, "seed": 0}, None)
    assert found.values["entries"] == count
    assert found.values["best_seconds"] > 0.0
    assert found.status == "inaccurate"
    assert (cost_cell.drawn(matrix, 1000, 1) != A).sum() > 0
    if matrix == SPARSE:
        assert A.shape[0] * A.shape[1] == 10 * count
        assert A.has_canonical_format


def test_the_fastest_call_is_taken_and_every_call_is_counted() -> None:
    calls: list[int] = []
    assert cost_cell.fastest(lambda: calls.append(1), seconds=-1.0, least=3) >= 0.0
    assert len(calls) == 3
    cost_cell.fastest(lambda: calls.append(1), seconds=60.0, most=7)
    assert len(calls) == 10


def test_the_peak_holds_what_the_algorithm_must_have_at_once() -> None:
    entries = 500 * 1000
    found = compute({"part": MEMORY, "matrix": "square", "method": MERGE, "size": entries, "seed": 0}, None).values
    assert found["entries"] == pytest.approx(entries, rel=0.01)
    each = found["peak_bytes"] / found["entries"]
    assert 15.0 < each < 40.0  # the sorted magnitudes and their sums, 8 bytes each; and at most three more such arrays
    with pytest.raises(BenchError, match="method"):
        peak_bytes(10, 10, "fast", 0.1, 0)


def test_steps_to_an_accuracy_against_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_cell, "BASE", {"tasks": 6, "features": 100, "examples": 10})
    monkeypatch.setattr(cost_cell, "TRIAL", 10)
    monkeypatch.setattr(cost_cell, "LENGTH", 30)
    found = compute({"part": STEPS, "examples": 30, "seed": 3}, None)
    assert found.status == "verified"
    data = synthetic_l1inf(tasks=6, features=100, examples=30, seed=3)
    problem = make_problem(load_registry().problem("l1inf_hinge"), data, {"radius": "truth"})
    radius = norm_l1inf(data.truth["W"])
    paths = {}
    for eta0 in cost_cell.ETAS:
        W, values = np.zeros((100, 6)), []
        for t in range(1, 31):
            values.append(problem.objective(W))
            G = np.zeros_like(W)
            for k in range(6):
                X, y = data.task(k)
                G[:, k] = -(X.T @ (y * (y * (X @ W[:, k]) < 1.0))) / len(y)
            W = project_l1inf_ball(W - eta0 / math.sqrt(t) * G, radius, method=MERGE)
        paths[eta0] = values
    chosen = min(paths, key=lambda eta0: min(paths[eta0][:10]))
    assert found.values["eta0"] == chosen
    assert found.values["reached"], "nothing is compared where no accuracy is reached"
    for eps, t in zip(found.values["ladder"], found.values["reached"], strict=False):
        within = [value <= found.values["bound"] * (1.0 + eps) for value in paths[chosen]]
        assert within.index(True) == t - 1
    missed = found.values["ladder"][len(found.values["reached"]) :]
    assert missed, "nothing is compared where all accuracies are reached"
    assert all(min(paths[chosen]) > found.values["bound"] * (1.0 + eps) for eps in missed)


def test_the_time_of_an_iteration_has_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_cell, "BASE", {"tasks": 4, "features": 12, "examples": 10})
    for axis, parameters in (("examples", 48), ("features", 24 * 4), ("tasks", 24 * 12)):
        found = compute({"part": ITERATION, "axis": axis, "size": 24, "seed": 0}, None).values
        assert found["parameters"] == parameters
        assert min(found["step_merge"], found["step_newton"], found["subgradient"]) > 0.0


# What is read.


def timed(law: Any, *, of_size: int = 15) -> list[dict[str, Any]]:
    return [
        {"part": TIME, "matrix": matrix, "method": method, "size": n, "seed": seed, "entries": n,
         "best_seconds": 1e-9 * law(n, matrix) * (1.0 + 0.01 * seed)}
        for matrix in MATRICES
        for method in METHODS
        for n in (round(10.0 ** (power / 2.0)) for power in range(6, of_size))
        for seed in range(3)
    ]  # fmt: skip


def kept(exponent: float = 1.0) -> list[dict[str, Any]]:
    return [
        {"part": MEMORY, "matrix": matrix, "method": method, "size": n, "seed": 0, "entries": n, "peak_bytes": 16.0 * n**exponent}
        for matrix in ("square", "60 tasks")
        for method in METHODS
        for n in (100_000, 1_000_000, 10_000_000)
    ]


def stepped(slope: float, *, noise: float = 0.05, seeds: int = 4) -> list[dict[str, Any]]:
    generator = np.random.default_rng(0)
    ladder = [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]
    rows = []
    for seed in range(seeds):
        own = slope + noise * generator.standard_normal()
        reached = [round(100.0 * (0.1 / eps) ** own) for eps in ladder][: 6 if seed else 7]
        rows.append({"part": STEPS, "examples": 40, "seed": seed, "eta0": 10.0, "ladder": ladder, "reached": reached})
    return rows


def iterated(power: float, fixed: float = 0.0) -> list[dict[str, Any]]:
    return [
        {"part": ITERATION, "axis": axis, "size": n, "seed": seed, "parameters": 12000 if axis == "examples" else 200 * n,
         "step_merge": (fixed + n**power) * (1.0 + 0.01 * seed), "step_newton": n**power, "subgradient": n**power}
        for axis in ("examples", "features", "tasks")
        for n in (10 * 2**k for k in range(9))
        for seed in range(3)
    ]  # fmt: skip


def verdicts(rows: list[dict[str, Any]]) -> dict[str, Verdict]:
    return {each.what.rpartition(" (")[0]: each.verdict for each in read(pd.DataFrame(rows)).comparisons}


IN_DM = "the projection takes O(dm log dm) time: exponent in dm"
MEMORY_IN_DM = "the projection takes O(dm) memory: exponent in dm"
NON_ZEROS = "dm can be read as the number n of non-zero parameters: exponent in n log n"
EXAMPLES = "the cost is linear in the number of examples: exponent of an iteration"


def test_exact_laws_are_told_apart() -> None:
    found = verdicts(timed(lambda n, matrix: n * math.log(n)))
    assert found[IN_DM] is Verdict.REPRODUCED  # its exponent over four decades is 1.09
    assert found[f"{IN_DM} log dm"] is Verdict.REPRODUCED
    assert found[NON_ZEROS] is Verdict.REPRODUCED
    squared = verdicts(timed(lambda n, matrix: n**2))
    assert squared[IN_DM] is squared[f"{IN_DM} log dm"] is Verdict.NOT_REPRODUCED
    mixed = verdicts(timed(lambda n, matrix: n**1.3 if matrix == HEAVY else n))
    assert mixed[IN_DM] is Verdict.DEPENDS
    assert mixed[NON_ZEROS] is Verdict.REPRODUCED
    short = verdicts(timed(lambda n, matrix: n, of_size=13))
    assert short[IN_DM] is Verdict.NOT_RUN  # three decades


def test_the_law_itself_is_said_beside_the_exponent() -> None:
    rows = timed(lambda n, matrix: n * math.log(n))
    (found,) = [each for each in read(pd.DataFrame(rows)).comparisons if each.what.startswith(f"{IN_DM} (")]
    assert found.published == "O(dm log dm)"  # the bar of the exponent is no claim of the papers
    assert "within 0.9 to 1.1, a bar of ours" in found.why
    law = log_law([round(10.0 ** (power / 2.0)) for power in range(6, 15)])
    assert law == pytest.approx(1.09, abs=0.01)
    assert f"exactly n log n has {law:.3f} in n at these sizes" in found.why
    table = next(section.table for section in read(pd.DataFrame(rows)).sections if section.name == "time")
    assert table is not None
    assert table["exponent_n"].to_numpy() == pytest.approx(np.full(len(table), law), abs=1e-3)
    assert table["exponent_n_log_n"].to_numpy() == pytest.approx(np.ones(len(table)), abs=1e-3)
    assert table["exponent_over_log_n"].to_numpy() == pytest.approx(np.ones(len(table)), abs=1e-3)


def test_intervals_that_hold_an_end_of_the_bar_decide_nothing() -> None:
    assert judged_linear({"a": PowerLaw(1.0, 1.08, 1.05, 1.11, 9)}).verdict is Verdict.UNKNOWN
    assert judged_linear({"a": PowerLaw(1.0, 1.05, 1.0, 1.1, 9)}).verdict is Verdict.REPRODUCED
    below = judged_linear({"a": PowerLaw(1.0, 0.5, 0.4, 0.6, 9)}, "fixed costs")
    assert below.verdict is Verdict.NOT_REPRODUCED
    assert "fixed costs" in below.why
    assert judged_linear({"a": None}).verdict is Verdict.NOT_RUN
    assert judged_slopes({"a": Mean(1.9, 0.2, 5)}).verdict is Verdict.UNKNOWN
    assert judged_slopes({"a": Mean(1.9, math.nan, 1)}).verdict is Verdict.NOT_RUN


def test_memory_and_its_exponent() -> None:
    assert verdicts(kept())[MEMORY_IN_DM] is Verdict.REPRODUCED
    assert verdicts(kept(1.2))[MEMORY_IN_DM] is Verdict.NOT_REPRODUCED


def test_a_slope_of_at_most_two_is_consistent_and_no_more_is_said() -> None:
    rows = pd.DataFrame(stepped(1.5))
    assert common_ladder(rows) == [0.1, 0.05, 0.02, 0.01, 0.005, 0.002]  # the last one was reached by one draw only
    assert slopes(rows, common_ladder(rows)).value == pytest.approx(1.5, abs=0.1)
    (found,) = [each for each in read(rows).comparisons if "1/eps^2" in each.what]
    assert found.verdict is Verdict.REPRODUCED
    assert "consistent with an upper bound; it does not prove the bound" in found.why
    steep = [each for each in read(pd.DataFrame(stepped(2.5))).comparisons if "1/eps^2" in each.what]
    assert steep[0].verdict is Verdict.NOT_REPRODUCED


def test_growth_of_an_iteration() -> None:
    linear = verdicts(iterated(1.0))
    assert {value for name, value in linear.items() if "exponent of an iteration" in name} == {Verdict.REPRODUCED}
    fixed = verdicts(iterated(1.0, fixed=30.0))
    assert fixed[f"{EXAMPLES}, the papers' algorithm"] is Verdict.REPRODUCED  # over the larger half, where the fixed cost has faded
    drowned = {each.what.rpartition(" (")[0]: each for each in read(pd.DataFrame(iterated(1.0, fixed=3000.0))).comparisons}
    judged = drowned[f"{EXAMPLES}, the papers' algorithm"]
    assert judged.verdict is Verdict.NOT_REPRODUCED
    assert "a fixed cost such as the projection" in judged.why
    assert "; all sizes 0.0" in judged.ours
    assert not any("Newton" in what for what in drowned)  # the papers claim nothing of it
    steep = verdicts(iterated(1.5))
    assert {value for name, value in steep.items() if "exponent of an iteration" in name} == {Verdict.NOT_REPRODUCED}


def test_what_was_not_run_is_said_to_be_so() -> None:
    assert set(verdicts([]).values()) == {Verdict.NOT_RUN, Verdict.UNKNOWN}
    found = read(pd.DataFrame())
    assert not found.sections
    assert {each.published for each in found.comparisons if each.verdict is Verdict.UNKNOWN} == {"not in our copy of the document"}


def test_the_findings_lead_and_the_figures_can_be_drawn() -> None:
    from bench_mtl.report.figures import style

    rows = [*timed(lambda n, matrix: n), *kept(), *stepped(1.5), *iterated(1.0)]
    found = read(pd.DataFrame(rows))
    assert len(found.headline.splitlines()) == 4
    assert "exactly n log n: 1.09" in found.headline
    assert [section.name for section in found.sections] == ["time", "memory", "steps", "iteration"]
    for section in found.sections:
        assert section.draw is not None
        assert style.files(section.draw(), ["svg"])["svg"].startswith(b"<?xml")


def test_the_scales_are_of_plain_settings_without_repeats() -> None:
    for scale in EXPERIMENT.scales.values():
        assert len({tuple(sorted(cell.items())) for cell in scale.grid}) == len(scale.grid)
        assert {cell["part"] for cell in scale.grid} == {TIME, MEMORY, STEPS, ITERATION}
    assert NEWTON in {cell.get("method") for cell in EXPERIMENT.scales["full"].grid}
