"""The costs that Quattoni et al. claim: of the projection, of reaching an accuracy, of an iteration; measured growth against theirs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from bench_mtl.stats import power_law
from papers.experiment import CellSettings, Experiment, Scale, grid
from papers.figures import Lines
from papers.published import published
from papers.quattoni import cost_cell as cell
from papers.tables import Table
from papers.values import SEED, label, melted, tidy

#: What makes the steps to an accuracy, and what has no projection at all.
DESCENT, ALONE = "projected subgradient", "subgradient"
#: A cost that grows exactly as is claimed, as high as that of the papers' algorithm at the largest size.
LAW = "law"
#: What each part measures, and along which sizes it grows.
COSTS = {
    cell.TIME: ("seconds of a projection", "entries"),
    cell.MEMORY: ("bytes of a projection", "entries"),
    cell.STEPS: ("iterations", "1/eps"),
    cell.ITERATION: ("seconds of an iteration", "size"),
}
#: Over which sizes an exponent is fitted; in the larger half fixed costs have faded.
ALL, HALF = "all sizes", "larger half"
_PLACES = ("matrix", "axis", "examples", "method", SEED)
_COLUMNS = (*_PLACES[:-1], "entries", "size", "1/eps", "over")


def values(rows: pd.DataFrame) -> pd.DataFrame:
    """Return costs at every size, those of the claimed law beside them, and the exponents of each draw."""
    parts = []
    for part, own in rows.groupby("part"):
        measure, along = COSTS[str(part)]
        costs = _costs(str(part), own.dropna(axis=1, how="all"))
        costs = _with_law(costs, along) if "law" in costs else costs
        measures = {measure: "cost", "nanoseconds an entry": "nanoseconds", "bytes an entry": "bytes"}
        parts += [melted(costs, _COLUMNS, measures), melted(_exponents(costs, along), _COLUMNS, {f"exponent of {measure}": "exponent"})]
    return tidy(parts, _COLUMNS)


def _costs(part: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for every cost, with the claimed law at its size; of the steps it is a bound that is far above at most of them."""
    if part == cell.TIME:
        cost, n = rows["best_seconds"], rows["entries"]
        return rows.assign(cost=cost, nanoseconds=1e9 * cost / n, law=n * np.log(n))
    if part == cell.MEMORY:
        return rows.assign(cost=rows["peak_bytes"], bytes=rows["peak_bytes"] / rows["entries"], law=rows["entries"])
    if part == cell.ITERATION:
        names = {**{f"step_{method}": method for method in cell.METHODS}, ALONE: ALONE}
        kept = ["axis", "size", SEED, "parameters"]
        rows = rows.rename(columns=names).melt(kept, list(names.values()), "method", "cost")
        n = rows["parameters"]
        return rows.assign(law=rows["size"].where(rows["axis"] == "examples", n * np.log(n)))
    steps = [
        (row["examples"], row[SEED], 1.0 / eps, step, DESCENT)
        for row in rows.to_dict("records")
        for eps, step in zip(row["ladder"], row["reached"], strict=False)
        if step > 0
    ]
    frame = pd.DataFrame(steps, columns=["examples", SEED, "1/eps", "cost", "method"])
    draws, reached = (frame.groupby(keys)[SEED].transform("nunique") for keys in (["examples"], ["examples", "1/eps"]))
    return frame[reached == draws]


def _with_law(costs: pd.DataFrame, along: str) -> pd.DataFrame:
    """Return costs with those of the law beside them."""
    papers = costs[costs["method"] == cell.MERGE].sort_values(along)
    ratio = (papers["cost"] / papers["law"]).groupby([papers[name] for name in _PLACES if name in papers]).transform("last")
    return pd.concat([costs, papers.assign(method=LAW, cost=ratio * papers["law"])], ignore_index=True)


def _exponents(costs: pd.DataFrame, along: str) -> pd.DataFrame:
    """Return the exponent of each draw, over all sizes and over the larger half, of three sizes or more."""
    keys, found = [name for name in _PLACES if name in costs], []
    for key, part in costs[costs["cost"] > 0.0].groupby(keys):
        for over, least in ((ALL, 0.0), (HALF, part[along].median())):
            points = part[part[along] >= least]
            if len(points) > 2:
                exponent = power_law(points[along].tolist(), points["cost"].tolist()).exponent
                found.append((*key, over, round(exponent, 12)))  # that of the law is the same in every draw
    return pd.DataFrame(found, columns=[*keys, "over", "exponent"])


_HALVES = tuple(round(10.0 ** (power / 2.0)) for power in range(6, 15))


def _grid(
    sizes: Sequence[int], in_memory: Sequence[int], doublings: int, examples: Sequence[int], runs: int, seeds: int
) -> tuple[CellSettings, ...]:
    """Return cells of all parts: `runs` draws of the steps to an accuracy, `seeds` of all else."""
    projections = grid(seeds, part=[cell.TIME], matrix=cell.MATRICES, method=(*cell.METHODS, *cell.L1_METHODS), size=sizes)
    memory = grid(seeds, part=[cell.MEMORY], matrix=(cell.SQUARE, cell.TASKS_60), method=cell.METHODS, size=in_memory)
    iterations = [
        grid(seeds, part=[cell.ITERATION], axis=[axis], size=[first * 2**k for k in range(doublings)])
        for axis, first in zip(cell.AXES, (10, 50, 15), strict=True)
    ]
    return (*grid(runs, part=[cell.STEPS], examples=examples), *projections, *memory, *itertools.chain(*iterations))


_TASKS, _FEATURES, _EXAMPLES = cell.BASE.values()
_EXPONENTS = "Means of the exponents of the draws ± half of the 95 % interval."

EXPERIMENT = Experiment(
    name="quattoni-cost",
    title="What the projection and the method cost",
    source="Quattoni, Carreras, Collins, Darrell, ICML 2009, sections 3.3 and 4.2, and their report of 2008",
    about=f"""\
Three claims about growth. The projection: the papers' algorithm (sort all rows, merge their breakpoints) and Newton's method, on random
matrices with a radius of {cell.SHARE:g} of their norm: square, 60 tasks (60 columns), 200 features (200 rows), square with heavy tails
(Student's t, 2 degrees of freedom), and sparse (a tenth of a square one times ten; its non-zeros are counted); peak memory in a process of
its own, the result included. Beside it the two algorithms of Duchi et al. (ICML 2008, figures 1 and 2) onto the l1 ball, of the same
entries as a vector. The steps to an accuracy: the paper's synthetic set (`synthetic_l1inf`, {_TASKS} tasks, {_FEATURES} features),
W <- P(W - eta0 / sqrt(t) G), eta0 of {", ".join(f"{eta:g}" for eta in cell.ETAS)} by the objective of {cell.TRIAL} steps, as the paper
chooses it, then {cell.LENGTH:,} steps of the chosen one; an accuracy eps is reached at the first step whose objective is within a relative
eps of the proven bound on the optimum; eps that all draws reached count. An iteration: a subgradient, a step and a projection, while the
examples a task, the features or the tasks grow and the others are {_EXAMPLES}, {_FEATURES} and {_TASKS}. A time is the least processor
time of several calls in a cell, in one thread. Exponents are slopes of logarithms, fitted to each draw: they describe these sizes on this
machine, caches and all, not what happens beyond them. The claimed law is fitted like a cost: n log n has an exponent a little above 1.""",
    scales={
        "small": Scale(_grid(_HALVES[:7:2], _HALVES[4:7], 5, (40,), 2, 1), "up to a million entries, one draw: a minute."),
        "full": Scale(_grid(_HALVES, _HALVES[4:], 9, (10, 40, 160), 5, 3), "up to ten million, four decades: 10 minutes on two cores."),
    },
    compute=cell.compute,
    values=values,
    claims=published("quattoni2009_cost"),
    sections=(
        Table("Time of the projection: exponents", ("exponent of seconds of a projection",), ("matrix",), ("method",), name="time",
              digits=3, words=f"{_EXPONENTS} An upper bound counts operations; a matrix that no longer fits into a cache has slower ones."),
        Lines("Time of a projection", ("seconds of a projection",), "entries", "method", "matrix", name="projection", log="xy",
              ticks=False),
        Table("Time of the projection: nanoseconds an entry", ("nanoseconds an entry",), ("matrix",), ("method",), name="entry", digits=1,
              at={"size": label(_HALVES[-1]), "method": [*cell.METHODS, *cell.L1_METHODS]}, words="Of ten million entries."),
        Table("Memory of the projection: exponents", ("exponent of bytes of a projection",), ("matrix",), ("method",), digits=3,
              name="memory", words=_EXPONENTS),
        Table("Memory of the projection: bytes an entry", ("bytes an entry",), ("matrix", "method"), ("size",), name="bytes", digits=1,
              at={"method": cell.METHODS}, words="The growth of the largest resident memory during one projection; an entry has 8."),
        Table("Iterations to an accuracy: exponents in 1/eps", ("exponent of iterations",), ("examples",), ("over",), name="steps",
              digits=2, words=f"{_EXPONENTS} An easier problem may be solved faster than a bound says."),
        Lines("Iterations to a relative accuracy eps", ("iterations",), "1/eps", "examples", name="accuracy", log="xy", ticks=False,
              words="A line for each number of examples a task."),
        Table("Time of an iteration: exponents", ("exponent of seconds of an iteration",), ("axis", "method"), ("over",), name="iteration",
              digits=3, words=f"{_EXPONENTS} Where the examples grow the projection is a fixed cost, which makes the exponent smaller."),
        Lines("Time of an iteration", ("seconds of an iteration",), "size", "method", "axis", name="growth", log="xy", ticks=False),
    ),
    subjects=(cell.MERGE, cell.NEWTON, cell.SORT, cell.PIVOT, DESCENT, ALONE, LAW),
    subject="method",
    protocols={"matrix": cell.MATRICES},
    main={"over": ALL},
    labels={cell.MERGE: "the papers' algorithm", cell.NEWTON: "Newton's method", cell.SORT: "l1, sorting", cell.PIVOT: "l1, pivots",
            ALONE: "no projection", LAW: "the claimed law"},
    titles={"axis": "What grows", "examples": "Examples a task", "over": "Sizes"},
    uses=("l1inf_hinge", "working_set"),
)  # fmt: skip
