"""Least squares for tasks whose relationships are learned with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval, enclose_dot
from bench_mtl.core.spectral_bounds import enclose_trace_norm, singular_value_bounds
from bench_mtl.core.types import Array
from bench_mtl.model.composite_problem import model_unit
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.forms import RelationshipForm
from bench_mtl.model.linear_loss import OF_WEIGHTS
from bench_mtl.model.losses import Squared
from bench_mtl.model.protocols import Capability, ConicModel, Form
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import FEATURES, TASKS, one_task, tiny_data
from bench_mtl.projections import norm_trace, prox_squared_trace


class TaskRelationships(FitProblem):
    """Multi-task relationship learning (MTRL)::

        min_{W, Omega}  sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + ridge/2 ||W||_F^2 + coupling/2 tr(W Omega^-1 W^T)
                        subject to  Omega positive semidefinite, m x m, tr Omega = 1

    The best Omega for a W is (W^T W)^(1/2) / ||W||_*, and leaves a convex problem in W alone, which is the one solved::

        min_W  F(W) = sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + ridge/2 ||W||_F^2 + coupling/2 ||W||_*^2

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss in the
    predictions, 2/n_k (y - t). With the singular values s of G = (X_k^T r_k)_k the bound is

        D(r) = <r, y> - sum_k n_k/4 ||r_k||^2 - g*(s),       g*(s) = max_{b >= 0} s.b - ridge/2 ||b||^2 - coupling/2 (sum b)^2

    at the best multiple of r, which is <r, y>^2 / (4 (sum_k n_k/4 ||r_k||^2 + g*(s))) where <r, y> > 0. docs/adr 0027 derives it.

    Parameters
    ----------
    data : TaskData with real targets
    ridge : lambda_1, at least 0
    coupling : lambda_2, at least 0; one of the two is above 0
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : a negative weight, both of them 0.

    References
    ----------
    Zhang, Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010, without offsets.
    """

    name: ClassVar[str] = "task_relationships"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.CONIC})
    forms: ClassVar[tuple[type[Form], ...]] = (RelationshipForm,)
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"nuclear_norm": frozenset({"linear", "quadratic", "psd"})}

    def __init__(self, data: TaskData, *, ridge: float, coupling: float, intercept: bool = False) -> None:
        self.ridge, self.coupling = real_number("ridge", ridge), real_number("coupling", coupling)
        if self.ridge == 0.0 and self.coupling == 0.0:
            raise InputError("ridge and coupling are both 0: one of them must be above 0")
        shares = data.design.per_example(2.0 / np.asarray(data.design.sizes))
        weights = np.ascontiguousarray(np.broadcast_to(shares, data.targets.shape))
        super().__init__(data, Squared(), frozen(weights), intercept=intercept, is_always_centred=True)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        W = np.outer(rng.standard_normal(FEATURES), rng.standard_normal(TASKS)) + 0.2 * rng.standard_normal((FEATURES, TASKS))
        data = tiny_data(rng, W)
        yield cls(one_task(data.shared), ridge=0.1, coupling=0.2)
        yield cls(data.shared, ridge=0.2, coupling=0.1)
        yield cls(TaskData.shared(data.shared.design.block(0)[:4], data.shared.targets[:4], name="tiny wide"), ridge=0.05, coupling=0.5)
        yield cls(data.per_task, ridge=0.1, coupling=0.1)
        yield cls(data.shared_csr, ridge=0.0, coupling=0.3)
        yield cls(data.per_task_csr, ridge=0.3, coupling=0.0)
        yield cls(data.shared_csr, ridge=0.2, coupling=0.1, intercept=True)

    def repair(self, point: Array) -> Array:
        return point

    def infeasibility(self, point: Array) -> float:
        return 0.0

    def enclose_objective_at(self, point: Array, predictions: Array, error: Array) -> Interval:
        fit = self.fit.enclose(Interval.around(predictions, error))
        trace = enclose_trace_norm(point) if self.coupling > 0.0 else Interval(0.0, 0.0)
        penalties = enclose_dot(point, point) * (0.5 * self.ridge) + trace.square() * (0.5 * self.coupling)
        return ((fit + penalties) * OF_WEIGHTS).positive_part()

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        r = self.dual_at(point) if dual is None else dual
        size = float(np.abs(r).max())
        if size == 0.0:
            return Interval(0.0, 0.0)
        r = r / size  # only its direction matters, and squares of tiny or huge entries would leave the range of doubles
        slope = enclose_dot(r, self.fit.targets).positive_part()
        if not slope.upper > 0.0:
            return Interval(0.0, 0.0)
        values = singular_value_bounds(self.design.enclose_adjoint(r))
        conjugate = squared_norms_conjugate(values, self.ridge, self.coupling)
        curvature = (Interval.exact(r).square() / self.fit.weights).sum() * 0.5 + conjugate
        return (slope * slope / curvature * (0.25 * OF_WEIGHTS)).positive_part()

    def prox(self, point: Array, step_size: float) -> Array:
        """point / (1 + step_size ridge), of which the proximal operator of the squared trace norm makes the rest."""
        shrink = 1.0 / (1.0 + step_size * self.ridge)
        return np.asarray(prox_squared_trace(shrink * point, shrink * step_size * self.coupling))

    def prox_value(self, point: Array) -> float:
        trace = norm_trace(point) if self.coupling > 0.0 else 0.0
        return 0.5 * self.ridge * float((point**2).sum()) + 0.5 * self.coupling * trace**2

    def make_forms(self) -> tuple[Form, ...]:
        return (RelationshipForm(self.fit, self.ridge, self.coupling),)

    def to_cvxpy(self, form: str | None = None, *, unit: float | None = None) -> ConicModel:
        """The problem with `cvxpy.normNuc`, and the residuals as variables, so that their constraint's multiplier is a dual point."""
        import cvxpy as cp

        design, y = self.design, self.design.stack(self.fit.targets)
        W, r = cp.Variable(self.point_shape), cp.Variable(len(y))
        unit = model_unit(design) if unit is None else unit
        fit = r == y - design.stacked() @ (unit * cp.vec(W, order="F"))
        objective = 0.5 * cp.sum(cp.multiply(design.stack(self.fit.weights), cp.square(r)))
        objective += 0.5 * unit * unit * (self.ridge * cp.sum_squares(W) + self.coupling * cp.square(cp.normNuc(W)))

        def recover() -> tuple[Array, Array | None]:
            multiplier = fit.dual_value
            return unit * np.asarray(W.value), None if multiplier is None else design.unstack(-np.asarray(multiplier))

        return ConicModel(cp.Problem(cp.Minimize(objective), [fit]), recover, unit)


@np.errstate(all="ignore")
def squared_norms_conjugate(values: Array, ridge: float, coupling: float) -> float:
    """Return an upper bound on g*(s) = max_{b >= 0} s.b - ridge/2 ||b||^2 - coupling/2 (sum b)^2, for descending s >= 0.

    This is the conjugate of ridge/2 ||W||_F^2 + coupling/2 ||W||_*^2 at a matrix of these singular values. It is found by water-filling::

        g*(s) = min_level  sum_i max(s_i - level, 0)^2 / (2 ridge) + level^2 / (2 coupling)

    whose best level is coupling S_k / (ridge + k coupling) for the k values above it, of sum S_k. Any level gives an upper bound of g*, so
    it may be rounded; its value is rounded upward. Without a ridge the level is s_1, without coupling it is 0.
    """
    if not values.any():
        return 0.0
    if coupling == 0.0:
        return _unlevelled(values, ridge)
    flat = float((Interval.exact(values[0]).square() * 0.5 / coupling).upper)
    if ridge == 0.0:
        return flat
    counts = np.arange(1, len(values) + 1)
    levels = np.cumsum(values) * (coupling / (ridge + coupling * counts))
    level = levels[max(1, int(np.count_nonzero(values > levels))) - 1]
    above = (Interval.exact(values) - level).positive_part()
    filled = above.square().sum() * 0.5 / ridge + Interval.exact(level).square() * 0.5 / coupling
    candidates = [flat, float(filled.upper), _unlevelled(values, ridge)]  # each an upper bound, and each may overflow
    return min((candidate for candidate in candidates if not np.isnan(candidate)), default=np.inf)


def _unlevelled(values: Array, ridge: float) -> float:
    """Return an upper bound on ||s||^2 / (2 ridge), the value at level 0."""
    return float((Interval.exact(values).square().sum() * 0.5 / ridge).upper)
