"""A loss with norms of rows or entries in features that are scaled to one size, for methods that need nothing but operators."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.intercepts import centred_norms
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.solvers.dual_newton.terms import terms_of
from bench_mtl.solvers.units import scaled_features, scaled_sparse, stays_sparse

#: Entries of the scaled features, which are a dense copy, at most: 1 GiB.
_MOST_ENTRIES = 2**27


class ScaledProblem:
    """F(W) with W_j = t_j V_j, as a function of V: the operators of a problem, for units t in which the features have about norm 1.

    The norms of rows and entries become weighted ones, whose proximal maps are as simple.
    """

    def __init__(self, problem: FitProblem) -> None:
        self._problem, self._fit = problem, problem.fit
        scale = scaled_sparse if stays_sparse(problem.design) else scaled_features
        self._design, units = scale(problem.design, centre=problem.fit.intercept)
        terms = terms_of(problem.regulariser, units)
        assert terms is not None
        self._terms = terms
        self.point_shape = problem.point_shape

    def _parts(self, point: Array) -> Array:
        return point if point.ndim == 3 else point[None]

    def scaled(self, W: Array) -> Array:
        """Return V of a point W, or of a stack of them."""
        return np.stack([term.point_of(part) for term, part in zip(self._terms, self._parts(W), strict=True)]).reshape(W.shape)

    def unscaled(self, V: Array) -> Array:
        """Return the point W of V."""
        return np.stack([term.coefficients(part) for term, part in zip(self._terms, self._parts(V), strict=True)]).reshape(V.shape)

    def repair(self, point: Array) -> Array:
        return self.scaled(self._problem.repair(self.unscaled(point)))

    def objective(self, point: Array) -> float:
        return self._problem.objective(self.unscaled(point))

    def lipschitz(self) -> float:
        """The curvature of the loss times the largest squared norm of a task, for each matrix of a stack."""
        weights = np.broadcast_to(self._fit.weights, self._design.output_shape)
        largest = np.array([self._design.task_outputs(weights, k).max() for k in range(self._design.n_tasks)])
        curvature = self._fit.loss.curvature
        assert curvature is not None
        norms = centred_norms(self._design) if self._fit.intercept and self._design.is_sparse else self._design.norms()
        return len(self._terms) * curvature * float((largest * norms**2).max())

    def smooth_value(self, point: Array) -> float:
        return self._fit.value(self._design.forward(self._parts(point).sum(axis=0)))

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        value, derivatives = self._fit.value_and_derivatives(self._design.forward(self._parts(point).sum(axis=0)))
        return value, np.broadcast_to(self._design.adjoint(derivatives), self.point_shape)

    def prox(self, point: Array, step_size: float) -> Array:
        parts = [term.shrink(part, step_size).point for term, part in zip(self._terms, self._parts(point), strict=True)]
        return np.stack(parts).reshape(point.shape)


def scaling_objection(solver: Solver, problem: Problem) -> str | None:
    """Return why a problem cannot be had in scaled features, as a sentence; None where it can."""
    if not isinstance(problem, FitProblem) or not problem.is_composite or problem.fit.loss.curvature is None or problem.is_in_shards:
        return f"{solver.label} scales the features of a loss of linear predictions in memory, which {problem.name} is not"
    terms = terms_of(problem.regulariser, np.ones(problem.design.n_features))
    if terms is None or any(term.own_units for term in terms):
        return f"{solver.label} scales features under norms of rows and entries, which {problem.name} has not"
    entries = problem.design.n_features * sum(problem.design.sizes[: 1 if problem.design.is_shared else None])
    if entries > _MOST_ENTRIES and not stays_sparse(problem.design):
        return f"{solver.label} copies the features, which are too many in {problem.name}"
    return None
