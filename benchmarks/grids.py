"""The cells to measure, which data at which radii, with the contestants; and the bars on what is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from bench_mtl import projections
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.l1inf_levels import Rows, kernels
from benchmarks.timing import Bar, Call, Cell, Effort, peak_bytes, timed


class Grid(NamedTuple):
    """Sizes, data and radii of the cells, and the time for each."""

    l1inf: tuple[tuple[int, int], ...]
    l1: tuple[int, ...]
    trace: tuple[tuple[int, int], ...]
    sparse: tuple[int, ...]  # non-zeros
    ratios: tuple[float, ...]
    matrices: tuple[str, ...]
    vectors: tuple[str, ...]
    effort: Effort


GRIDS = {
    "full": Grid(
        l1inf=((200, 60), (1000, 100), (1000, 1000), (10000, 100), (100000, 10), (10000, 1000)),
        l1=(10**4, 10**6, 10**7),
        trace=((1000, 100), (10000, 100), (1000, 1000)),
        sparse=(10**3, 10**4, 10**5, 10**6),
        ratios=(0.001, 0.01, 0.1, 0.5, 0.9),
        matrices=("gauss", "uniform", "zero rows"),
        vectors=("gauss", "uniform", "cauchy", "cauchy^3", "lognormal"),
        effort=Effort(15, 0.5),
    ),
    "quick": Grid(
        l1inf=((200, 60), (1000, 100), (1000, 1000), (100000, 10)),
        l1=(10**4, 10**6),
        trace=((1000, 100), (300, 300)),
        sparse=(10**3, 10**5),
        ratios=(0.01, 0.5),
        matrices=("gauss", "zero rows"),
        vectors=("gauss", "cauchy^3"),
        effort=Effort(9, 0.1),
    ),
    "smoke": Grid(((20, 6), (30, 10)), (1000,), ((20, 10),), (50,), (0.1,), ("gauss", "zero rows"), ("gauss", "cauchy"), Effort(2, 0.01)),
}

#: Dense data, which no code can skip parts of.
DENSE = ("gauss", "uniform")

HEAVY_TAILED = ("cauchy", "cauchy^3", "lognormal")

SEARCHES = ("newton", "sort", "pivot")
DECOMPOSITIONS = ("auto", "svd", "gram", "partial")

#: How many entries of a sparse vector an update changes.
_CHANGED = 100


def _zero_rows(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    A = rng.standard_normal(shape)
    A[rng.permutation(shape[0])[: round(0.95 * shape[0])]] = 0.0
    return A


def _low_rank(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    rank = max(1, min(shape) // 50)
    signal = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    return np.asarray(signal + 0.1 * rng.standard_normal(shape))


SAMPLERS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "gauss": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "zero rows": _zero_rows,
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "cauchy^3": lambda rng, shape: rng.standard_cauchy(shape) ** 3,
    "lognormal": lambda rng, shape: rng.lognormal(0.0, 3.0, shape) * rng.choice([-1.0, 1.0], shape),
    "low rank": _low_rank,
}


def sample(data: str, shape: tuple[int, ...]) -> Array:
    """Draw the data of a cell, the same in every run."""
    return np.ascontiguousarray(SAMPLERS[data](np.random.default_rng([*shape, *data.encode()]), shape))


def sorted_rows(A: Array, radius: float, out: Array) -> Array:
    """Write the projection onto the l1,inf ball into `out`, as one would in NumPy: sort the rows, sum, Newton on theta.

    The maximum of row j is max(0, max_k (S_jk - theta) / k), S_jk the sum of its k largest entries.
    """
    magnitude = np.abs(A)
    if magnitude.max(axis=1).sum() <= radius:
        out[...] = A
        return out
    sums = np.cumsum(-np.sort(-magnitude, axis=1), axis=1)
    count = np.arange(1.0, A.shape[1] + 1.0)
    theta = 0.0
    while True:
        lines = (sums - theta) / count
        best = lines.argmax(axis=1)
        maxima = np.maximum(np.take_along_axis(lines, best[:, None], axis=1), 0.0)
        step = (maxima.sum() - radius) / (1.0 / count[best[maxima[:, 0] > 0.0]]).sum()
        if step <= 1e-15 * theta:
            return np.copysign(np.minimum(magnitude, maxima), A, out=out)
        theta += step


class Ball(NamedTuple):
    """A ball with the ways to project onto it."""

    project: Callable[..., object]
    methods: tuple[str, ...]
    norm: Callable[[Array], float]


BALLS = {
    "l1inf": Ball(projections.project_l1inf_ball, ("newton", "merge"), projections.norm_l1inf),
    "l1": Ball(projections.project_l1_ball, SEARCHES, lambda v: float(np.abs(v).sum())),
    "trace": Ball(projections.project_trace_ball, DECOMPOSITIONS, projections.norm_trace),
}


def _ball_cells(family: str, grid: Grid, shapes: Sequence[tuple[int, ...]], kinds: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells of a ball: every way to project onto it, NumPy's where there is one, and a copy."""
    ball = BALLS[family]
    for shape in shapes:
        for data in kinds:
            A = sample(data, shape)
            out, size = np.empty_like(A), ball.norm(A)
            for ratio in grid.ratios:
                calls: dict[str, Call] = {"copy": partial(np.copyto, out, A)}
                calls |= {way: partial(ball.project, A, ratio * size, method=way, out=out) for way in ball.methods}
                calls |= {"numpy": partial(sorted_rows, A, ratio * size, out)} if family == "l1inf" else {}
                yield Cell(family, shape, data, ratio, timed(calls, grid.effort))


def _sparse_cells(grid: Grid) -> Iterator[Cell]:
    """Yield the cells of a vector with n non-zeros on the border of an l1 ball: two updates of some of them, there and back.

    The dense vector has ten times as many entries, and is projected after both.
    """
    for n in grid.sparse:
        rng = np.random.default_rng(n)
        values, chosen = rng.exponential(5.0, n) + 0.1, rng.permutation(n)[:_CHANGED]
        moves = rng.exponential(0.1, len(chosen)) * rng.choice([-1.0, 1.0], len(chosen))
        radius, calls = float(values.sum()), dict[str, Call]()
        for storage in projections.STORAGES:
            ball = projections.SparseBall(radius, storage=storage)
            ball.add(np.arange(n), values)
            calls[storage] = partial(_there_and_back, ball, chosen, moves)
        calls["dense newton"] = partial(_dense_there_and_back, np.pad(values, (0, 9 * n)), radius, chosen, moves)
        yield Cell("sparse", (n,), "exponential", 1.0, timed(calls, grid.effort))


def _there_and_back(ball: projections.SparseBall, chosen: AnyArray, moves: Array) -> None:
    ball.add(chosen, moves)
    ball.add(chosen, -moves)


def _dense_there_and_back(v: Array, radius: float, chosen: AnyArray, moves: Array) -> None:
    for each in (moves, -moves):
        v[chosen] += each
        v[:] = projections.project_l1_ball(v, radius)


FAMILIES: dict[str, Callable[[Grid], Iterator[Cell]]] = {
    "l1inf": lambda grid: _ball_cells("l1inf", grid, grid.l1inf, grid.matrices),
    "l1": lambda grid: _ball_cells("l1", grid, [(n,) for n in grid.l1], grid.vectors),
    "trace": lambda grid: _ball_cells("trace", grid, grid.trace, ("gauss", "low rank")),
    "sparse": _sparse_cells,
}


def bars(cells: Sequence[Cell]) -> list[Bar]:
    """Return every bar on times."""

    def figures(family: str, figure: Callable[[Cell], float], fits: Callable[[Cell], bool] = lambda _: True) -> dict[str, float]:
        return {str(cell): figure(cell) for cell in cells if cell.family == family and fits(cell)}

    def speed_up(cell: Cell) -> float:
        return cell.over("numpy", "newton")

    def over_copy(cell: Cell) -> float:
        return cell.over("newton", "copy")

    large = figures("l1inf", speed_up, lambda cell: math.prod(cell.shape) >= 10**5)
    largest = figures("l1inf", over_copy, lambda cell: cell.shape == (10000, 1000) and cell.data in DENSE)
    heavy = figures("l1", lambda cell: cell.over("newton", "pivot"), lambda cell: cell.data in HEAVY_TAILED)
    best = figures("trace", lambda cell: max(cell.over("auto", other) for other in DECOMPOSITIONS[1:]))
    return [
        Bar.over("l1,inf: NumPy sort over newton, from 1e5 elements, geometric mean", large, 60.0, at_least=True, mean=True),
        Bar.over("l1,inf: NumPy sort over newton, least of all cells", figures("l1inf", speed_up), 8.0, at_least=True),
        Bar.over("l1,inf: newton over copy at 10000 x 1000 dense, most of all radii", largest, 8.0),
        *(
            Bar.over(
                f"l1: newton over copy at {name} Gaussian, most of all radii",
                figures("l1", over_copy, lambda cell, n=n: (cell.shape, cell.data) == ((n,), "gauss")),  # type: ignore[misc]
                6.0,
            )
            for name, n in (("1e6", 10**6), ("1e7", 10**7))
        ),
        Bar.over("l1: newton over pivot on heavy tails, most of all cells", heavy, 1.0),
        Bar.over("trace: auto over the best of svd, gram and partial, most of all cells", best, 1.3),
    ]


def resources() -> Iterator[Bar]:
    """Yield the bars on overhead and on memory, which need measurements of their own."""
    A = sample("gauss", (200, 60))
    times = timed({"call": _projection(A), "kernel": _kernels(A)}, Effort(50, 0.5))
    overhead, detail = 1e6 * (times["call"].cpu - times["kernel"].cpu), f"the call takes {1e6 * times['call'].cpu:.1f}"
    yield Bar("l1,inf: microseconds of a call on 200 x 60 beyond its compiled kernels", overhead, 20.0, detail=detail)
    for shape in ((1000, 1000), (100000, 10)):
        A = sample("gauss", shape)
        out = np.empty_like(A)
        for name, call in (
            ("project_l1inf_ball", _projection(A)),
            ("prox_l1inf", partial(projections.prox_l1inf, A, 0.5, out=out)),
            ("project_l1_ball", partial(projections.project_l1_ball, A.ravel(), 10.0, out=out.ravel())),
        ):
            # What grows with the rows alone is no allocation of the size of the matrix: it is 1 / columns of it at least.
            limit = 100_000 + (0 if name == "project_l1_ball" else 64 * shape[0])
            title = f"{name}: bytes allocated in steady state with out at {' x '.join(map(str, shape))}, of {A.nbytes}"
            yield Bar(title, float(peak_bytes(call)), float(limit))


def _projection(A: Array) -> Call:
    return partial(projections.project_l1inf_ball, A, 0.1 * projections.norm_l1inf(A), out=np.empty_like(A))


def _kernels(A: Array) -> Call:
    """The compiled part of `_projection` alone."""
    out, radius = np.empty_like(A), 0.1 * projections.norm_l1inf(A)
    rows = Rows(A.reshape(-1), None, *A.shape)
    state, prediction = rows.state()

    def run() -> None:
        kernels().search(rows.matrix, rows.lanes, radius, -1.0, False, prediction, state)
        kernels().clip(rows.matrix, rows.lanes, state[kernels().LEVEL], None, out.reshape(-1))

    return run
