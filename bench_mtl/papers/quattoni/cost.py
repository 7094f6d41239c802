"""The costs that Quattoni et al. claim: of the projection, of reaching an accuracy, of an iteration; measured growth against theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.papers.experiment import CellSettings, Experiment, Findings, PublishedNumber, Scale, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.quattoni.cost_cell import (
    AXES,
    BASE,
    ETAS,
    FEATURES_200,
    ITERATION,
    LENGTH,
    MATRICES,
    MEMORY,
    MERGE,
    METHODS,
    NAMES,
    SHARE,
    SPARSE,
    SQUARE,
    STEPS,
    TASKS_60,
    TIME,
    TRIAL,
    compute,
)
from bench_mtl.papers.quattoni.cost_fits import (
    DECADES,
    axis_law,
    by_examples,
    common_ladder,
    decades,
    judged_at_most,
    judged_linear,
    judged_slopes,
    larger_half,
    log_law,
    of_iteration,
    of_memory,
    of_time,
    part_of,
    slopes,
    smaller_half,
    text,
)
from bench_mtl.papers.quattoni.cost_sections import headline, sections
from bench_mtl.papers.summaries import CONFIDENCE, Judgement

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.papers.summaries import Mean

#: Matrices whose memory is measured.
_IN_MEMORY = (SQUARE, TASKS_60)

_HALVES = tuple(round(10.0 ** (power / 2.0)) for power in range(6, 15))
_DOUBLED: Mapping[str, Sequence[int]] = {
    "examples": [10 * 2**k for k in range(9)],
    "features": [50 * 2**k for k in range(9)],
    "tasks": [15 * 2**k for k in range(9)],
}


def _grid(
    sizes: Sequence[int], of_memory: Sequence[int], doublings: int, examples: Sequence[int], runs: int, seeds: int
) -> tuple[CellSettings, ...]:
    """Return cells of all parts: `runs` draws of the steps to an accuracy, `seeds` of all else."""
    cells: list[CellSettings] = [{"part": STEPS, "examples": each, "seed": seed} for seed in range(runs) for each in examples]
    for seed in range(seeds):
        cells += [
            {"part": TIME, "matrix": matrix, "method": method, "size": size, "seed": seed}
            for matrix in MATRICES
            for method in METHODS
            for size in sizes
        ]
        cells += [
            {"part": MEMORY, "matrix": matrix, "method": method, "size": size, "seed": seed}
            for matrix in _IN_MEMORY
            for method in METHODS
            for size in of_memory
        ]
        cells += [{"part": ITERATION, "axis": axis, "size": size, "seed": seed} for axis in AXES for size in _DOUBLED[axis][:doublings]]
    return tuple(cells)


def read(rows: pd.DataFrame) -> Findings:
    """Return what the papers claim against these rows, a table and a figure for each claim."""
    comparisons = [comparison for row in published("quattoni2009_cost") for comparison in _compared(row, rows)]
    if not len(rows):
        return Findings(tuple(comparisons), ())
    return Findings(tuple(comparisons), tuple(sections(rows)), headline(rows))


# The published claims.

_FIXED = "below it, a fixed cost such as the projection is a large share of an iteration, which contradicts no upper bound"
_ABSENT = "our copies of both documents give no time of any computation"
_OTHER = "our projection onto the l1 ball is not the algorithm of Duchi et al.; benchmarks of the projections have its time"


#: What the papers say, by quantity; the bar of an exponent is ours, and stands in the rule.
_EXPECTED: Mapping[str, str] = {
    "time": "O(dm log dm)",
    "nonzero": "O(dm log dm)",
    "memory": "O(dm)",
    "examples": "linear",
    "features": "O(dm log dm)",
    "tasks": "O(dm log dm)",
}


def _compared(row: Mapping[str, str], rows: pd.DataFrame) -> list[PublishedNumber]:
    """Return a claim against the rows; the papers claim nothing of Newton's method, which is in the tables alone."""
    what, place = row["statement"], row["where"]
    quantity, relation = row["quantity"], row["relation"]
    if relation == "absent":
        return [PublishedNumber(f"{what} ({place})", "not in our copy of the document", "see the tables", Verdict.UNKNOWN, _ABSENT)]
    if relation == "not run":
        return [PublishedNumber(f"{what} ({place})", "O(n log n)", "-", Verdict.NOT_RUN, _OTHER)]
    if quantity == "steps":
        return [PublishedNumber(f"{what} ({place})", "slope at most 2", *judged_slopes(_slopes(rows)))]
    expected = _EXPECTED[quantity]
    if quantity in AXES:
        return [PublishedNumber(f"{what}, {NAMES[MERGE]} ({place})", expected, *_iteration(row, rows, MERGE))]
    return [PublishedNumber(f"{what} ({place})", expected, *(_memory if quantity == "memory" else _time)(row, rows))]


def _time(row: Mapping[str, str], rows: pd.DataFrame) -> Judgement:
    """Judge the exponents of the time of the papers' projection, where its sizes span the decades that the bar asks for."""
    matrices = [SPARSE] if row["quantity"] == "nonzero" else [matrix for matrix in MATRICES if matrix != SPARSE]
    own = {matrix: part_of(rows, TIME, matrix=matrix, method=MERGE) for matrix in matrices}
    judged = judged_linear({matrix: of_time(part, logarithm=row["relation"] == "log") for matrix, part in own.items()})
    span = min((decades(part["entries"].tolist()) for part in own.values() if len(part)), default=0.0)
    if judged.verdict is not Verdict.NOT_RUN and span < DECADES - 0.1:
        return judged._replace(verdict=Verdict.NOT_RUN, why=f"{span:.1f} decades of sizes, where the bar asks for {DECADES:g}")
    law = log_law(sorted({size for part in own.values() if len(part) for size in part["entries"]}))
    more = f"; exactly n log n has {law:.3f} in n at these sizes" if row["relation"] != "log" and not math.isnan(law) else ""
    return judged._replace(why=f"{judged.why}{more}")


def _memory(row: Mapping[str, str], rows: pd.DataFrame) -> Judgement:
    own = {matrix: part_of(rows, MEMORY, matrix=matrix, method=MERGE) for matrix in _IN_MEMORY}
    judged = judged_linear({matrix: of_memory(part) for matrix, part in own.items()})
    return judged._replace(why=f"{judged.why}; from 100,000 entries, below which the system does not count resident memory well enough")


def _slopes(rows: pd.DataFrame) -> dict[str, Mean]:
    parts = by_examples(part_of(rows, STEPS))
    ladders = {size: common_ladder(part) for size, part in parts.items()}
    whole = {f"{size} examples a task": slopes(part, ladders[size]) for size, part in parts.items()}
    return whole | {f"{size}, smaller eps": slopes(part, smaller_half(ladders[size])) for size, part in parts.items()}


def _iteration(row: Mapping[str, str], rows: pd.DataFrame, method: str) -> Judgement:
    """Judge the exponent of an iteration over the larger half of the sizes, where fixed costs have faded; that of all is said beside."""
    own = part_of(rows, ITERATION, axis=row["quantity"])
    half, measure = larger_half(own), f"step_{method}"
    found = {"the larger half": of_iteration(half, measure)}
    limits = {"the larger half": axis_law(half)}
    judged = judged_at_most(found, limits) if row["relation"] == "at most" else judged_linear(found, _FIXED)
    if judged.verdict is Verdict.NOT_RUN:
        return judged
    return judged._replace(ours=f"{judged.ours}; all sizes {text(of_iteration(own, measure))}")


EXPERIMENT = Experiment(
    name="quattoni-cost",
    title="What the projection and the method cost",
    source="Quattoni, Carreras, Collins, Darrell, ICML 2009, sections 3.3 and 4.2, and their report of 2008",
    about=f"""\
Three claims about growth. The projection: the papers' algorithm (sort all rows, merge their breakpoints) and Newton's method, on random
matrices with a radius of {SHARE:g} of their norm: square, {TASKS_60} (60 columns), {FEATURES_200} (200 rows), square with heavy tails
(Student's t, 2 degrees of freedom), and sparse (a tenth of a square one times ten; its non-zeros are counted); peak memory in a process of
its own, the result included. The steps to an accuracy: the paper's synthetic set (`synthetic_l1inf`, {BASE["tasks"]} tasks,
{BASE["features"]} features), W <- P(W - eta0 / sqrt(t) G), eta0 of {", ".join(f"{eta:g}" for eta in ETAS)} by the objective of {TRIAL}
steps, as the paper chooses it, then {LENGTH:,} steps of the chosen one; an accuracy eps is reached at the first step whose objective is
within a relative eps of the proven bound on the optimum. An iteration: a subgradient, a step and a projection, while the examples a task,
the features or the tasks grow and the others are {BASE["examples"]}, {BASE["features"]} and {BASE["tasks"]}. A time is the least
processor time of several calls in a cell, in one thread. Exponents are slopes of logarithms with their {CONFIDENCE:.0%} t intervals: these
say how well a line describes these sizes on this machine, caches and all, not what happens beyond them.""",
    scales={
        "small": Scale(
            _grid(_HALVES[:7:2], _HALVES[4:7], 5, (40,), 2, 1), "sizes up to a million, three decades of them, and 2 draws: a minute."
        ),
        "full": Scale(
            _grid(_HALVES, _HALVES[4:], 9, (10, 40, 160), 5, 3), "sizes up to ten million, four decades of them: 8 minutes on two cores."
        ),
    },
    compute=compute,
    read=read,
    uses=("l1inf_hinge", "pdhg"),
)
