"""An interior-point method under an l1,inf norm whose steps are programs on an accelerator, on rows that come and go."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges, LinearForm, hinges_under, loss_under
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.protocols import AnyKind, Problem
from bench_mtl.solvers.accelerator.device import obstacle
from bench_mtl.solvers.accelerator.solver import AcceleratorSolver, DeviceStepper
from bench_mtl.solvers.interior_point.fits import FitEquations
from bench_mtl.solvers.interior_point.hinges import HingeEquations
from bench_mtl.solvers.interior_point.solver import PATIENCE, SMALLEST_PENALTY
from bench_mtl.solvers.working_set.run import begins_anew, central_rows, changes
from bench_mtl.solvers.working_sets import Places

#: Rows of the first set at most, and padded rows at least.
_FIRST, _SMALLEST = 64, 32
#: A run ends at this relative gap: the rest is rounding, and further steps lose digits.
_SMALLEST_GAP = 1e-13
#: Arrays shaped like the outputs that a step has on the device, and matrices of D x D for every task.
_OUTPUTS, _MATRICES = 60, 6


@dataclass(frozen=True)
class AcceleratorInteriorPoint(AcceleratorSolver):
    """`WorkingSet` by JAX: predictor-corrector steps on the rows of W that matter, for hinges, squared and logistic losses under an
    l1,inf norm.

    A step is X^T E X of every task on these rows, its Cholesky factor, and some twenty products with them; one more, with all data, gives
    the gap, and the scores by which the host chooses the rows of the next step. Rows are padded to a power of two, so that programs are
    compiled for few sizes. Some twenty steps lead to a gap of 1e-6, and few more to 1e-9.

    Parameters
    ----------
    device : "cpu" or "gpu", the first one of that kind; there is no other where it is missing

    Notes
    -----
    Data are one matrix for all tasks, dense or sparse, or dense matrices of equally many examples for every task; of sparse data the
    columns of these rows are dense on the device. A run begins at zero, or near its start.

    References
    ----------
    Those of `WorkingSet`, and Mehrotra, SIAM J. Optim. 2(4), 1992.
    """

    name: ClassVar[str] = "accelerator_interior_point"
    takes: ClassVar[tuple[AnyKind, ...]] = (hinges_under(L1Inf), loss_under("squared", L1Inf), loss_under("logistic", L1Inf))

    @property
    def kernels(self) -> Any:
        from bench_mtl.solvers.accelerator.kernels import interior

        return interior

    def objection(self, problem: Problem) -> str | None:
        design = problem.form(LinearForm).design
        if not design.is_shared and (design.is_sparse or len(set(design.sizes)) > 1):
            return f"{self.label} takes one matrix for all tasks, or dense matrices of equally many examples"
        return super().objection(problem)

    def bytes_needed(self, form: LinearForm) -> int:
        return super().bytes_needed(form) + _bytes_of_rows(form, _padded_size(_FIRST, form.design.n_features))

    def stepper(self, problem: Problem) -> InteriorStepper:
        return InteriorStepper(self, problem.form(LinearForm))


class State(NamedTuple):
    """Where a run is: arrays on the device, or for it, and what the host has to know."""

    arrays: Any
    has_left: NDArray[np.bool_]
    """Which rows have left a set, each once at most."""
    rounds: int = 0
    work: float = 0.0
    shows_dual: bool = False
    gap_shown: float = math.inf
    """Of the last state whose iterate has its dual point."""
    best: float = math.inf
    waited: int = 0
    """Steps since the gap or the mean product has halved the least of all before, or rows have joined."""
    note: str = ""
    least: float = math.inf
    """The mean product of slacks and multipliers when `waited` was last 0."""


class InteriorStepper(DeviceStepper):
    """Moves the data once, and has the columns of the rows of a state beside them; the rows themselves are chosen on the host."""

    varying: ClassVar[tuple[str, ...]] = ("places", "x_W", "x_mu", "slack_u", "slack_v", "dual_u", "dual_v")

    def __init__(self, solver: AcceleratorInteriorPoint, form: LinearForm) -> None:
        super().__init__(solver, form)
        self._where, self._rows = solver.device, None
        self._set: tuple[Array, int] = np.zeros(0), 0

    def start(self, at: Iterate) -> State | None:  # type: ignore[override]
        form, d = self._form, at.primal.shape[0]
        W = self._put(at.primal)
        scores = np.abs(np.asarray(self._call(self._kernels.slopes_at_zero, self._data, W))).sum(axis=1)
        self._penalty = np.float64(0.0 if form.penalty is None else max(form.penalty, SMALLEST_PENALTY * scores.max()))
        if form.radius == 0.0 or not scores.any():
            return State(None, np.zeros(d, dtype=bool), work=1.0)  # W = 0 is optimal, which is shown once
        most = np.sort(np.argsort(-scores, kind="stable")[:_FIRST])
        first = np.union1d(np.flatnonzero(at.primal.any(axis=1)), most)
        if obstacle(self._where, _bytes_of_rows(form, _padded_size(len(first), d))) is not None:
            first = most
        return State(self._begun(first, at.primal), np.zeros(d, dtype=bool), work=1.0)

    def step(self, now: State) -> State | None:  # type: ignore[override]
        if now.arrays is None:
            return None if now.rounds else now._replace(rounds=1)
        if now.waited >= PATIENCE or now.best <= _SMALLEST_GAP:
            return None
        arrays = self._put(now.arrays)
        arrays = self._call(self._kernels.step, self._data, self._data_of_rows(arrays.places, arrays.count, arrays.point), arrays)
        gap = float(arrays.gap)
        if not math.isfinite(gap):  # rounding has taken over
            return None
        shows = self._shows(gap, now.gap_shown)
        work, shown = now.work + self._passes(len(arrays.places)), gap if shows else now.gap_shown
        average = float(arrays.average)  # before rows join: that of a set begun anew is 0
        arrays, has_left, joined, note = self._on_rows_that_matter(arrays, now.has_left, min(gap, 1.0))
        gains = joined or gap < 0.5 * now.best or average < 0.5 * now.least
        best, waited, least = min(gap, now.best), 0 if gains else now.waited + 1, average if gains else now.least
        return State(arrays, has_left, now.rounds + 1, work, shows, shown, best, waited, note, least)

    def iterate(self, now: State) -> Iterate:  # type: ignore[override]
        if now.arrays is None:
            form, (d, m) = self._form, (self._form.design.n_features, self._form.design.n_tasks)
            r = form.dual_at_zero()
            return Iterate(np.zeros((d, m)), r * form.fit.targets if isinstance(form, Hinges) else r, now.rounds, now.work, claim=0.0)
        shown = super().iterate(now)  # type: ignore[arg-type]
        return shown._replace(note=f"{shown.note}; {now.note}") if now.note else shown

    def _points(self, arrays: Any) -> tuple[Any, Any]:
        return arrays.point, arrays.dual

    def _on_rows_that_matter(self, arrays: Any, has_left: NDArray[np.bool_], gap: float) -> tuple[Any, NDArray[np.bool_], bool, str]:
        """Return a state on the rows of the next step, which rows have left a set, whether some have joined, and what there is to say.

        A set is made anew where rows join, or where fewer would be padded to a smaller size.
        """
        count, d = int(arrays.count), arrays.point.shape[0]
        rows = np.asarray(arrays.places)[:count]
        new, may_leave = changes(np.asarray(arrays.scores), rows, np.asarray(arrays.x.mu)[:count], float(arrays.theta), gap)
        leaves = may_leave & ~has_left[rows]
        chosen = np.union1d(rows[~leaves], new)
        size = _padded_size(len(chosen), d)
        if not len(new) and size >= len(arrays.places):
            return arrays, has_left, False, ""
        if size > len(arrays.places) and (reason := obstacle(self._where, _bytes_of_rows(self._form, size))) is not None:
            return arrays, has_left, False, f"without rows that it {reason}"
        if begins_anew(gap, count, len(chosen)):
            begun = self._begun(chosen, np.zeros(arrays.point.shape))
            parts = ("point", "dual", "G", "scores", "steps", "gap")
            arrays = begun._replace(**{name: getattr(arrays, name) for name in parts})
        else:
            arrays = self._moved(arrays, rows, chosen)
        has_left = has_left.copy()
        has_left[rows[leaves]] = True
        return arrays, has_left, len(new) > 0, ""

    def _begun(self, rows: Places, W: Array) -> Any:
        """Return the first state near W on these rows."""
        places, count = self._put(_padded(rows, len(W)))
        of_rows = self._data_of_rows(places, count, self._put(W))
        return self._call(self._kernels.begin, of_rows, places, count, *self._put((W, self._penalty)))

    def _data_of_rows(self, places: Any, count: Any, W: Any) -> Any:
        """Return the columns of these rows, which are made anew where others were used last."""
        rows = np.asarray(places), int(count)
        if self._rows is None or rows[1] != self._set[1] or not np.array_equal(rows[0], self._set[0]):
            self._rows = None  # its memory first
            self._rows, self._set = self._call(self._kernels.rows_of, self._data, places, count, W), rows
        return self._rows

    def _moved(self, arrays: Any, rows: Places, chosen: Places) -> Any:
        """Return a state on some rows as one on others: what joins begins on the central path, see `working_set.run.moved`."""
        x, G = arrays.x, np.asarray(arrays.G)
        stays = np.isin(chosen, rows, assume_unique=True)
        before = np.searchsorted(rows, chosen[stays])
        highest = HingeEquations.highest_norm if isinstance(self._form, Hinges) else FitEquations.highest_norm
        joining = central_rows(G[chosen[~stays]].T, float(arrays.theta), float(arrays.average), highest)
        places, count = _padded(chosen, len(G))

        def moved(values: Any, fresh: Array, fill: float) -> Array:
            result = np.full((len(places), *values.shape[1:]), fill)
            result[: len(chosen)][stays], result[: len(chosen)][~stays] = np.asarray(values)[before], fresh.T
            return result

        sides = []
        for part, fresh in ((x.slack, joining.slack), (x.dual, joining.dual)):
            sides.append(part._replace(u=moved(part.u, fresh[0], 1.0), v=moved(part.v, fresh[1], 1.0)))
        x = x._replace(W=moved(x.W, joining.W, 0.0), mu=moved(x.mu, joining.mu, 1.0), slack=sides[0], dual=sides[1])
        return arrays._replace(x=x, places=places, count=count)

    def _passes(self, size: int) -> float:
        """Return the work of a step: its products, and the operations of its factors in those of passes over the data."""
        design, kernels = self._form.design, self._kernels
        products = 0.5 * kernels.PRODUCTS + 0.25 * size * (1.0 + size / design.sizes[0])
        return 0.5 + size / design.n_features * products


def _padded_size(count: int, features: int) -> int:
    return min(features, max(_SMALLEST, 1 << (count - 1).bit_length()))


def _padded(rows: Places, features: int) -> tuple[NDArray[np.int32], np.int32]:
    """Return rows by number, padded, and how many they are."""
    places = np.zeros(_padded_size(len(rows), features), dtype=np.int32)
    places[: len(rows)] = rows
    return places, np.int32(len(rows))


def _bytes_of_rows(form: LinearForm, size: int) -> int:
    """Return about what steps on so many rows, padded ones included, need beside the data."""
    design = form.design
    examples = design.sizes[0] if design.is_shared else design.n_examples
    outputs = math.prod(design.output_shape)
    return 8 * (examples * size + design.sizes[0] * size + _MATRICES * design.n_tasks * size**2 + _OUTPUTS * outputs)
