"""Limits on ratios of timings, of fastest repeats taken in one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bench_mtl import projections
from bench_mtl.projections.l1inf_levels import Rows, kernels
from benchmarks.grids import DECOMPOSITIONS, DENSE, HEAVY_TAILED, sample
from benchmarks.timing import Cell, Effort, Measured, measure, peak_bytes

#: An earlier prototype at 100000 x 10, Gaussian, by C / norm: its time over that of a copy, on one thread.
PROTOTYPE_OF_TEN_COLUMNS = {0.001: 3.09 / 0.14, 0.01: 3.75 / 0.14, 0.1: 8.3 / 0.14, 0.5: 8.96 / 0.14, 0.9: 7.23 / 0.14}


@dataclass(frozen=True)
class Bar:
    """One figure and its limit."""

    name: str
    value: float | None
    """None where the run has no cell for it."""
    limit: float | None
    """None for a figure that is only reported."""
    at_least: bool
    """Whether the figure must not be below the limit (else: not above)."""
    cells: int
    detail: str = ""
    """The cell that is furthest on the wrong side, for bars over cells."""
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.value is None or self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def as_table(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def bars(cells: Sequence[Measured]) -> list[Bar]:
    """Return every bar on times."""
    l1inf = [cell for cell in cells if cell.family == "l1inf"]
    l1 = [cell for cell in cells if cell.family == "l1"]
    trace = [cell for cell in cells if cell.family == "trace"]
    large = [cell for cell in l1inf if cell.elements >= 10**5]
    largest = [cell for cell in l1inf if cell.shape == (10000, 1000) and cell.data in DENSE]
    narrow = [cell for cell in l1inf if cell.shape == (100000, 10) and cell.data == "gauss"]
    heavy = [cell for cell in l1 if cell.data in HEAVY_TAILED]

    def speed_up(cell: Measured) -> float:
        return cell.over("numpy", "newton")

    def over_tuned(cell: Measured) -> float:
        return cell.over("numpy, tuned", "newton")

    def over_copy(cell: Measured) -> float:
        return cell.over("newton", "copy")

    bars = [
        _bar("l1,inf: NumPy sort over newton, from 1e5 elements, geometric mean", large, speed_up, 60.0, at_least=True, mean=True),
        _bar("l1,inf: NumPy sort over newton, least of all cells", l1inf, speed_up, 8.0, at_least=True),
        _bar("l1,inf: the same for NumPy tuned, geometric mean", large, over_tuned, at_least=True, mean=True),
        _bar("l1,inf: newton over copy at 10000 x 1000 dense, most of all radii", largest, over_copy, 8.0),
        _bar(
            "l1,inf: prototype over newton at 100000 x 10, both relative to copy, geometric mean",
            narrow, lambda cell: PROTOTYPE_OF_TEN_COLUMNS[cell.ratio] / over_copy(cell), 3.0, at_least=True, mean=True,
        ),
    ]  # fmt: skip
    for n in (10**6, 10**7):
        gaussian = [cell for cell in l1 if cell.shape == (n,) and cell.data == "gauss"]
        bars.append(_bar(f"l1: newton over copy at {n:.0e} Gaussian, most of all radii".replace("e+0", "e"), gaussian, over_copy, 6.0))
    return [
        *bars,
        _bar("l1: newton over pivot on heavy tails, most of all cells", heavy, lambda cell: cell.over("newton", "pivot"), 1.0),
        _bar("trace: auto over the best of svd, gram and partial, most of all cells", trace, _over_best, 1.3),
    ]


def _over_best(cell: Measured) -> float:
    return max(cell.over("auto", other) for other in DECOMPOSITIONS[1:])


def _bar(
    name: str,
    cells: Sequence[Measured],
    figure: Callable[[Measured], float],
    limit: float | None = None,
    *,
    at_least: bool = False,
    mean: bool = False,
) -> Bar:
    if not cells:
        return Bar(name, None, limit, at_least, 0)
    figures = {f"{' x '.join(map(str, cell.shape))} {cell.data}, {cell.ratio:g}": figure(cell) for cell in cells}
    worst = (min if at_least else max)(figures, key=lambda cell: figures[cell])
    value = geometric_mean(list(figures.values())) if mean else figures[worst]
    return Bar(name, value, limit, at_least, len(cells), f"{worst}: {figures[worst]:.3g}", figures)


def resources() -> Iterable[Bar]:
    """The bars on overhead and on memory, which need measurements of their own."""
    A = sample("gauss", (200, 60))
    cell = measure(Cell("l1inf", A.shape, "gauss", 0.1, {"call": _projection(A, 0.1), "kernel": _kernels(A, 0.1)}), Effort(50, 0.5))
    overhead = 1e6 * (cell.times["call"].cpu - cell.times["kernel"].cpu)
    whole = f"the call takes {1e6 * cell.times['call'].cpu:.1f}"
    yield Bar("l1,inf: microseconds of a call on 200 x 60 beyond its compiled kernels", overhead, 20.0, False, 1, whole)
    for shape in ((1000, 1000), (100000, 10)):
        A = sample("gauss", shape)
        out = np.empty_like(A)
        for name, call in (
            ("project_l1inf_ball", _projection(A, 0.1)),
            ("prox_l1inf", lambda A=A, out=out: projections.prox_l1inf(A, 0.5, out=out)),
            ("project_l1_ball", lambda A=A, out=out: projections.project_l1_ball(A.ravel(), 10.0, out=out.ravel())),
        ):
            # What grows with the rows alone is no allocation of the size of the matrix: it is 1 / columns of it at least.
            limit = 100_000 + (0 if name == "project_l1_ball" else 64 * shape[0])
            title = f"{name}: bytes allocated in steady state with out at {' x '.join(map(str, shape))}, of {A.nbytes}"
            yield Bar(title, float(peak_bytes(call)), float(limit), False, 1)


def _projection(A: np.ndarray, ratio: float) -> Callable[[], object]:
    out, radius = np.empty_like(A), ratio * projections.norm_l1inf(A)
    return lambda: projections.project_l1inf_ball(A, radius, out=out)


def _kernels(A: np.ndarray, ratio: float) -> Callable[[], object]:
    """The compiled part of `_projection` alone."""
    out, radius = np.empty_like(A), ratio * projections.norm_l1inf(A)
    rows = Rows(A.reshape(-1), None, *A.shape)
    state, prediction = rows.state()

    def run() -> None:
        kernels().search(rows.matrix, rows.lanes, rows.d, radius, -1.0, False, prediction, state)
        kernels().clip(rows.matrix, rows.lanes, state[kernels().LEVEL], None, out.reshape(-1))

    return run
