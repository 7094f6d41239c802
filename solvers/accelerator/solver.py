"""The solvers whose loops run on an accelerator: what they take, how their data are moved, and how their iterates come back."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bench_mtl.core.checks import one_of, real_number, unless_none
from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SPARSE_PLUS_LOW_RANK, Hinges, LinearForm, hinges_under, loss_under
from bench_mtl.model.norms import L1, L12, L1Inf
from bench_mtl.model.protocols import AnyKind, IterativeSolver, Problem
from bench_mtl.model.regularisers import Stacked
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.model.task_balls import L1TaskBalls, TaskBalls
from bench_mtl.solvers.accelerator.device import DEVICES, call, first_device, move, obstacle, on_device, put, version

#: Rounds between two iterates: at least one, and about this share of the rounds so far.
_SHARE_OF_ROUNDS = 0.05
#: An iterate has its dual point where the gap is that of the run, or has fallen to this share since the last that had one.
_FALL = 0.1
#: Arrays shaped like the targets, and like W, that a run has on the device, those of a step included.
_OUTPUTS, _POINTS = 16, 24


@dataclass(frozen=True)
class AcceleratorSolver(SteppingSolver):
    """The options of all of them, and what they ask of a problem."""

    device: str = "cpu"
    target: float | None = None
    """The relative gap at which the loop ends; that of the run by default."""

    def __post_init__(self) -> None:
        one_of("device", self.device, DEVICES)
        unless_none(real_number, "target", self.target, strict=True)

    @property
    def label(self) -> str:
        return self.name if self.device == "cpu" else f"{self.name}_{self.device}"

    @property
    def version(self) -> str:
        return version()

    @property
    @abstractmethod
    def kernels(self) -> Any:
        """The module whose `begin` and `advance` make its states."""

    def aimed_at(self, relative_gap: float) -> Self:
        return self if self.target is not None else replace(self, target=relative_gap)

    def rehearsed(self) -> tuple[IterativeSolver, ...]:
        """None: a program is compiled for every shape of data anew, while the clock is stopped."""
        return ()

    def warm_up(self) -> None:
        first_device(self.device)
        assert self.kernels

    def objection(self, problem: Problem) -> str | None:
        form = problem.form(LinearForm)
        reason = _misfit(form) or obstacle(self.device, self.bytes_needed(form))
        return None if reason is None else f"{self.label} {reason}"

    def bytes_needed(self, form: LinearForm) -> int:
        """Return about what a run holds on the device."""
        design = form.design
        outputs = design.n_tasks * max(design.sizes)
        entries = outputs * design.n_features if _layout(design) == "cube" else design.n_stored
        # Every entry times what it is multiplied by, and both orders.
        products = entries * (design.n_tasks if design.is_shared else 1) + 4 * entries if design.is_sparse else 0
        return 8 * (entries + products + _OUTPUTS * outputs + _POINTS * design.n_features * design.n_tasks)

    def stepper(self, problem: Problem) -> DeviceStepper:
        return DeviceStepper(self, problem.form(LinearForm))


@dataclass(frozen=True)
class AcceleratorPDHG(AcceleratorSolver):
    """`PDHG` with reflected Halpern steps, by JAX: hinges under norms of rows or with an l1 ball for every task.

    A step is two passes over the data, and every eighth is followed by a look at the gap and the residual, which come from what the step
    has. The loop runs on the device until the gap is that of the run, or for some rounds of eight steps.

    Parameters
    ----------
    device : "cpu" or "gpu", the first one of that kind; there is no other where it is missing

    Notes
    -----
    Data are one matrix for all tasks or one for every task, dense or sparse; features are taken as they are. Dense matrices of unlike sizes
    take as much memory as if all had the examples of the largest.
    The norms of the data are estimated from below, by power iterations, and enlarged where a step finds them too small.

    References
    ----------
    Lu, Yang, arXiv:2407.16144, algorithm 2, and Lu, Peng, Yang, arXiv:2507.14051 (restarted reflected Halpern).
    """

    name: ClassVar[str] = "accelerator_pdhg"
    takes: ClassVar[tuple[AnyKind, ...]] = (*map(hinges_under, (L1Inf, L12)), hinges_under(L1TaskBalls))

    @property
    def kernels(self) -> Any:
        from bench_mtl.solvers.accelerator.kernels import halpern

        return halpern


@dataclass(frozen=True)
class AcceleratorGradient(AcceleratorSolver):
    """`AcceleratedGradient` with restart, by JAX: squared and logistic losses under norms of rows or of entries, and least squares of
    a sparse plus a low-rank matrix.

    A step is two passes over the data, for predictions are linear in the point ahead; the gap is looked at after every eighth.

    Parameters
    ----------
    device : "cpu" or "gpu", the first one of that kind; there is no other where it is missing

    Notes
    -----
    Data are as in `AcceleratorPDHG`. Intercepts are free with the squared loss alone. The Lipschitz constant is estimated from below, by
    power iterations, and enlarged where a step finds it too small.

    References
    ----------
    O'Donoghue, Candes, Foundations of Computational Mathematics 15, 2015 (restart).
    """

    name: ClassVar[str] = "accelerator_gradient"
    takes: ClassVar[tuple[AnyKind, ...]] = (
        *(loss_under(loss, norm) for loss in ("squared", "logistic") for norm in (L1Inf, L12, L1)),
        SPARSE_PLUS_LOW_RANK,
    )
    takes_intercept: ClassVar[bool] = True

    @property
    def kernels(self) -> Any:
        from bench_mtl.solvers.accelerator.kernels import accelerated

        return accelerated


class State(NamedTuple):
    """Where a run is: arrays on the device, and what the host has to know."""

    arrays: Any
    rounds: int = 0
    work: float = 0.0
    shows_dual: bool = False
    gap_shown: float = math.inf
    """Of the last state whose iterate has its dual point."""


class DeviceStepper(Stepper):
    """Moves the data once; a step is a call of some rounds, from which one number comes back."""

    def __init__(self, solver: AcceleratorSolver, form: LinearForm) -> None:
        self._aim, self._form, self._kernels = solver.target or 0.0, form, solver.kernels
        self._device = first_device(solver.device)
        self._kind, data = _parts(form)
        self._data = move(data, self._device)

    def start(self, at: Iterate) -> State:
        form, kernels = self._form, self._kernels
        points: tuple[Any, ...] = at.primal, np.random.default_rng(0).standard_normal(at.primal.shape[-2:])
        if isinstance(form, Hinges):
            dual = np.zeros(form.fit.targets.shape) if at.dual is None else form.fit.targets * at.dual
            points = *points, _arranged(form.design, dual), np.bool_(at.dual is not None)
        arrays = self._call(kernels.begin, self._data, *self._put(points))
        return State(arrays, 0, kernels.POWERS + 2.0)

    def step(self, now: State) -> State | None:
        rounds = 1 + int(_SHARE_OF_ROUNDS * now.rounds)
        limits = self._put((np.float64(self._aim), np.float64(rounds)))
        arrays = self._call(self._kernels.advance, self._data, self._put(now.arrays), *limits)
        with on_device():  # what it has no memory for comes to light here
            passed, gap = int(arrays.steps) // self._kernels.STEPS - now.rounds, float(arrays.gap)
        if not math.isfinite(gap):  # out of the range of doubles
            return None
        shows = self._shows(gap, now.gap_shown)
        work = now.work + float(passed * self._kernels.STEPS)
        return State(arrays, now.rounds + passed, work, shows, gap if shows else now.gap_shown)

    def _shows(self, gap: float, shown: float) -> bool:
        """Return whether an iterate of this gap has its dual point, where the last that had one has the other gap."""
        return gap <= max(self._aim, _FALL * shown)

    def iterate(self, now: State) -> Iterate:
        W, dual = self._points(now.arrays)
        of_host = None
        if now.shows_dual:
            r = np.array(dual) if self._form.design.is_shared else np.array(dual)[_is_example(self._form.design)]
            of_host = r * self._form.fit.targets if isinstance(self._form, Hinges) else r
        steps, gap = now.rounds * self._kernels.STEPS, float(now.arrays.gap)
        return Iterate(np.array(W), of_host, steps, now.work, f"on {self._device.device_kind}", claim=gap if now.shows_dual else math.inf)

    def _points(self, arrays: Any) -> tuple[Any, Any]:
        return (arrays.stepped.W, arrays.stepped.b) if isinstance(self._form, Hinges) else (arrays.point, arrays.dual)

    def _put(self, values: Any) -> Any:
        return put(values, self._device)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return call(function, self._kind, *arguments)


def _misfit(form: LinearForm) -> str | None:
    """Return why intercepts or norm do not fit, as the end of a sentence; None where they do."""
    if form.has_intercept and form.fit.loss.name != "squared":
        return "takes free intercepts with the squared loss alone"
    if isinstance(form.norm, L1) and (form.norm.nonneg or (form.norm.balls == "task" and form.radius is None)):
        return "takes no sign constraint, and balls of tasks as constraints alone"
    return None


def _layout(design: Design) -> str:
    return ("sparse" if design.is_sparse else "shared") if design.is_shared else "blocks" if design.is_sparse else "cube"


def _parts(form: LinearForm) -> tuple[Any, Any]:
    """Return what programs are compiled for, and the problem's arrays on the host."""
    from bench_mtl.solvers.accelerator.kernels.parts import Data, Kind

    design, fit, regulariser = form.design, form.fit, form.regulariser
    if isinstance(regulariser, TaskBalls):
        norm, size = "tasks", np.array(regulariser.radii, dtype=np.float64)
    elif isinstance(regulariser, Stacked):
        norm, size = "split", np.array(form.penalty_and_radius, dtype=np.float64)
    else:
        norm = {L1Inf: "l1inf", L12: "l12", L1: "l1"}[type(form.norm)]
        size = np.array(form.radius if form.penalty is None else form.penalty, dtype=np.float64)
        if isinstance(form.norm, L1) and form.norm.balls == "task":
            norm, size = "tasks", np.full(design.n_tasks, size)
    weights, targets = np.broadcast_to(fit.weights, fit.targets.shape), fit.targets
    if form.has_intercept:
        means = design.task_sums(weights * targets) / design.task_sums(weights)
        targets = targets - design.per_example(means)
    arranged = _arranged(design, weights)
    arranged = arranged[:1, :1] if np.all(arranged == arranged[0, 0]) else arranged  # one number need not be read again and again
    data = Data(_matrices(design), _arranged(design, targets), np.ascontiguousarray(arranged), size)
    return Kind(fit.loss.name, norm, form.penalty is not None, _layout(design), form.has_intercept), data


def _is_example(design: Design) -> Any:
    """Return which entries of outputs of tasks of their own, m x n, are examples."""
    return np.arange(max(design.sizes)) < np.array(design.sizes)[:, None]


def _arranged(design: Design, outputs: Array) -> Array:
    """Return outputs as programs have them: n x m, or m x n with 0 beyond the examples of a task."""
    if design.is_shared:
        return outputs
    arranged = np.zeros((design.n_tasks, max(design.sizes)))
    arranged[_is_example(design)] = outputs
    return arranged


def _matrices(design: Design) -> tuple[Any, ...]:
    """Return the X of `Data`."""
    match _layout(design):
        case "shared":
            return (design.block(0),)
        case "cube":
            cube = np.zeros((design.n_tasks, max(design.sizes), design.n_features))
            for k, size in enumerate(design.sizes):
                cube[k, :size] = design.block(k)
            return (cube,)
        case "sparse":
            X = design.block(0)
            return (*_entries(X), *_entries(X.T.tocsr(), is_transposed=True))
    X, examples = design.stacked(), np.flatnonzero(_is_example(design)).astype(np.int32)
    values, rows, columns = _entries(X)
    by_column, their_rows, their_columns = _entries(X.T.tocsr(), is_transposed=True)
    return values, examples[rows], columns, by_column, examples[their_rows], their_columns


def _entries(X: Any, *, is_transposed: bool = False) -> tuple[Any, Any, Any]:
    """Return values, rows and columns of a CSR matrix in its order, or those of the matrix whose transpose it is."""
    lines, places = np.repeat(np.arange(X.shape[0], dtype=np.int32), np.diff(X.indptr)), X.indices.astype(np.int32)
    return (X.data, places, lines) if is_transposed else (X.data, lines, places)
