"""The cells to measure: which data, at which radii, and the contestants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench_mtl import projections
from benchmarks import numpy_sort
from benchmarks.timing import Call, Cell, Effort

Sampler = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class Grid:
    """Sizes, data and radii of the cells, and the time for each."""

    l1inf: tuple[tuple[int, int], ...]
    l1: tuple[int, ...]
    trace: tuple[tuple[int, int], ...]
    ratios: tuple[float, ...]
    matrices: tuple[str, ...]
    vectors: tuple[str, ...]
    effort: Effort


RATIOS = (0.001, 0.01, 0.1, 0.5, 0.9)

GRIDS = {
    "full": Grid(
        l1inf=((200, 60), (1000, 100), (1000, 1000), (10000, 100), (100000, 10), (10000, 1000)),
        l1=(10**4, 10**6, 10**7),
        trace=((1000, 100), (10000, 100), (1000, 1000)),
        ratios=RATIOS,
        matrices=("gauss", "uniform", "zero rows"),
        vectors=("gauss", "uniform", "cauchy", "cauchy^3", "lognormal"),
        effort=Effort(15, 0.5),
    ),
    "quick": Grid(
        l1inf=((200, 60), (1000, 100), (1000, 1000), (100000, 10)),
        l1=(10**4, 10**6),
        trace=((1000, 100), (300, 300)),
        ratios=(0.01, 0.5),
        matrices=("gauss", "zero rows"),
        vectors=("gauss", "cauchy^3"),
        effort=Effort(9, 0.1),
    ),
    "smoke": Grid(((20, 6), (30, 10)), (1000,), ((20, 10),), (0.1,), ("gauss", "zero rows"), ("gauss", "cauchy"), Effort(2, 0.01)),
}

#: Dense data, which no code can skip parts of.
DENSE = ("gauss", "uniform")

HEAVY_TAILED = ("cauchy", "cauchy^3", "lognormal")


def _zero_rows(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    A = rng.standard_normal(shape)
    A[rng.permutation(shape[0])[: round(0.95 * shape[0])]] = 0.0
    return A


def _low_rank(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    rank = max(1, min(shape) // 50)
    signal = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    return np.asarray(signal + 0.1 * rng.standard_normal(shape))


SAMPLERS: dict[str, Sampler] = {
    "gauss": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "zero rows": _zero_rows,
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "cauchy^3": lambda rng, shape: rng.standard_cauchy(shape) ** 3,
    "lognormal": lambda rng, shape: rng.lognormal(0.0, 3.0, shape) * rng.choice([-1.0, 1.0], shape),
    "low rank": _low_rank,
}


def sample(data: str, shape: tuple[int, ...]) -> np.ndarray:
    """Draw the data of a cell, the same in every run."""
    return np.ascontiguousarray(SAMPLERS[data](np.random.default_rng([*shape, *data.encode()]), shape))


def l1inf_cells(grid: Grid) -> Iterator[Cell]:
    """The l1,inf ball: this code, its merge method, NumPy, and a copy."""
    for shape in grid.l1inf:
        for data in grid.matrices:
            A = sample(data, shape)
            out, norm = np.empty_like(A), projections.norm_l1inf(A)
            for ratio in grid.ratios:
                project = partial(projections.project_l1inf_ball, A, ratio * norm, out=out)
                calls: dict[str, Call] = {
                    "copy": partial(np.copyto, out, A),
                    "newton": project,
                    "merge": partial(project, method="merge"),
                    "numpy": partial(numpy_sort.plain, A, ratio * norm, out),
                    "numpy, tuned": partial(numpy_sort.tuned, A, ratio * norm, out),
                }
                yield Cell("l1inf", shape, data, ratio, calls)


def l1_cells(grid: Grid) -> Iterator[Cell]:
    """The l1 ball: the three searches and a copy."""
    for n in grid.l1:
        for data in grid.vectors:
            v = sample(data, (n,))
            out, norm = np.empty_like(v), float(np.abs(v).sum())
            for ratio in grid.ratios:
                calls: dict[str, Call] = {
                    name: partial(projections.project_l1_ball, v, ratio * norm, method=name, out=out) for name in SEARCHES
                }
                yield Cell("l1", (n,), data, ratio, {"copy": partial(np.copyto, out, v), **calls})


def trace_cells(grid: Grid) -> Iterator[Cell]:
    """The trace ball: the three decompositions and the choice among them."""
    for shape in grid.trace:
        for data in ("gauss", "low rank"):
            A = sample(data, shape)
            out, norm = np.empty_like(A), projections.norm_trace(A)
            for ratio in grid.ratios:
                calls: dict[str, Call] = {
                    name: partial(projections.project_trace_ball, A, ratio * norm, method=name, out=out) for name in DECOMPOSITIONS
                }
                yield Cell("trace", shape, data, ratio, {"copy": partial(np.copyto, out, A), **calls})


SEARCHES = ("newton", "sort", "pivot")
DECOMPOSITIONS = ("auto", "svd", "gram", "partial")

FAMILIES: dict[str, Callable[[Grid], Iterator[Cell]]] = {"l1inf": l1inf_cells, "l1": l1_cells, "trace": trace_cells}
