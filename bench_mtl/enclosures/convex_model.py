"""A convex model of CVXPY as a problem, whose answers are enclosed: what `bench_mtl.compare` makes of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.enclosures.bounds import lower_bound, propagated, upper_bound
from bench_mtl.enclosures.cones import Cone
from bench_mtl.enclosures.inside import Inner
from bench_mtl.enclosures.programme import Chain, Programme, multipliers_of, programme_of
from bench_mtl.model.protocols import Capability, ConicModel, Problem

if TYPE_CHECKING:
    import cvxpy

#: What a kind of cone asks of a solver, as in `Problem.conic_forms`.
_NEEDS = {"zero": "linear", "nonneg": "linear", "soc": "quadratic", "psd": "psd", "exp": "exponential", "pow": "power"}


class ConvexModel(Problem):
    """The cone programme that CVXPY makes of a convex model, with the floats that it stores.

    ::

        min_x  1/2 x^T P x + c^T x + d   subject to   A x + b in K

    It minimises: values of a model that maximises are those of minus its objective. A point is x; a dual point holds the multipliers of all
    rows of A. Solvers that take cones take it (`conic`), and what they answer need not be feasible: its upper bound is the value of a
    feasible point that is proven to be near, and its lower bound that of multipliers near the answer's (`bench_mtl.certify`, by the answer
    alone). Violations are relative to the largest sum of the moduli of the terms of a row of the cone. Where the optimum is almost 0, gaps
    are relative to 1e-6 of `scale`, as of every problem (`Tolerance.allowed_gap`). Raises InputError: the model has no variables, has
    integers, or cones of another kind; or CVXPY refuses it.
    """

    name: ClassVar[str] = "convex_model"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.CONIC})

    def __init__(self, model: cvxpy.Problem) -> None:
        chain = Chain(model, "CLARABEL", gp=False, options={})
        self._programme = p = programme_of(chain, {}, {})
        needs = {"linear", *(_NEEDS[cone.kind] for cone in p.cones), *(["squares"] if p.P is not None else [])}
        self.conic_forms = {"standard": frozenset(needs)}  # type: ignore[misc] # that of the instance
        sign = -chain.in_terms_of_the_model(Interval.exact(-1.0))
        self.notes = ("The model maximises: values are those of minus its objective.",) if sign.ends[0] < 0.0 else ()

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        import cvxpy as cp

        A, x = rng.standard_normal((12, 4)), cp.Variable(4)
        yield cls(cp.Problem(cp.Minimize(cp.sum_squares(A @ x - A[:, 0]) + cp.norm1(x))))

    @property
    def point_shape(self) -> tuple[int, ...]:
        return self._programme.c.shape

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self._programme.b.shape

    @property
    def dimensions(self) -> Mapping[str, int]:
        """Rows of A, variables, and one task."""
        return {"n": len(self._programme.b), "d": len(self._programme.c), "m": 1}

    def repair(self, point: Array) -> Array:
        """Return the point itself: the feasible one near it is found when it is judged."""
        return point

    def infeasibility(self, point: Array) -> float:
        """Return the largest violation of a cone, in floats, over the largest sum of the moduli of a row's terms in it, if not 0."""
        p = self._programme
        with np.errstate(all="ignore"):
            sizes = self._row_sizes(point)
            slack = (p.A @ point + p.b) / np.where(sizes > 0.0, sizes, 1.0)
            return max((cone.violation(slack[cone.rows]) for cone in p.cones), default=0.0)

    def scale(self) -> float:
        """Return the modulus of the objective at a feasible point near 0, or that of its largest term for variables as large as their
        rows let them be: those of the tightest cone, each over the coefficient. Coefficients alone are in another unit. Where all of these
        are 0, variables have the sizes of `Programme`, and terms are at most its value's."""
        p = self._programme
        with np.errstate(all="ignore"):
            near = upper_bound(p, Inner(p, "answer"))
            x, A, sizes = self.zero() if near.point is None else near.point, sp.coo_array(p.A), np.full(len(p.c), np.inf)
            np.minimum.at(sizes, A.coords[1], self._row_sizes(x)[A.coords[0]] / np.abs(A.data))
            value, sizes = abs(near.value) if near.value < np.inf else 0.0, np.where(np.isfinite(sizes), sizes, np.abs(x))
            largest = max(value, self._largest_term(sizes))
        return largest or min(self._largest_term(p.sizes), p.scale)

    def _row_sizes(self, point: Array) -> Array:
        """Return the sum of the moduli of each row's terms, or the largest of those of its cone."""
        p = self._programme
        sizes = abs(p.A) @ np.abs(point) + np.abs(p.b)
        for cone in p.cones:
            sizes[cone.rows] = sizes[cone.rows].max(axis=1, keepdims=True)
        return np.asarray(sizes)

    def _largest_term(self, sizes: Array) -> float:
        """Return the modulus of the largest term of the objective for variables of these sizes."""
        p, D = self._programme, sp.diags_array(sizes)
        return max(float((np.abs(p.c) * sizes).max(initial=0.0)), 0.0 if p.P is None else float(abs(D @ p.P @ D).max()))

    def objective(self, point: Array) -> float:
        return self._judged(point, [])[0].ends[1]

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return self._judged(point, [dual])[1][0].ends[0]

    def _judged(self, point: Array, duals: Sequence[Array | None]) -> tuple[Interval, list[Interval]]:
        with np.errstate(all="ignore"):
            answers = [None if dual is None else self._programme.answered(point, dual) for dual in duals]
            some = next((p for p in answers if p is not None), self._programme.answered(point, np.zeros(self.dual_shape)))
            upper = upper_bound(some, Inner(some, "answer")).value
            free = np.full(self.point_shape, np.inf)
            box = propagated(some, -free, free, upper if some.curvature == 0.0 else np.inf)
            lower = [-np.inf if p is None else lower_bound(p, box, Inner(p, "answer")).value for p in answers]
        return Interval(upper, upper), [Interval(bound, bound) for bound in lower]

    def to_cvxpy(self, form: str) -> ConicModel:
        import cvxpy as cp

        p = self._programme
        x = cp.Variable(len(p.c))
        value = p.c @ x + p.d
        if p.P is not None:
            value = value + cp.quad_form(x, cp.psd_wrap(p.P)) / 2.0
        constraints = [_constraint(p, cone, x) for cone in p.cones]
        model = cp.Problem(cp.Minimize(value), constraints)

        def recover() -> tuple[Array, Array | None]:
            duals = model.solution.dual_vars or {}
            if not all(constraint.id in duals for constraint in constraints):
                return np.asarray(x.value), None
            y = np.zeros(len(p.b))
            for cone, constraint in zip(p.cones, constraints, strict=True):
                values = multipliers_of(constraint, np.ravel(np.asarray(duals[constraint.id], dtype=np.float64), order="F"))
                y[cone.rows] = values.reshape(cone.rows.shape)
            return np.asarray(x.value), np.nan_to_num(y)

        return ConicModel(model, recover)


def _constraint(p: Programme, cone: Cone, x: Any) -> Any:
    """Return A x + b in some cones as a constraint of CVXPY."""
    import cvxpy as cp

    def slack(rows: Any) -> Any:
        return p.A[rows] @ x + p.b[rows]

    k, dim = cone.rows.shape
    if cone.kind in ("zero", "nonneg"):
        return (cp.Zero if cone.kind == "zero" else cp.NonNeg)(slack(cone.rows.ravel()))
    if cone.kind == "soc":
        return cp.SOC(slack(cone.rows[:, 0]), cp.reshape(slack(cone.rows[:, 1:].ravel()), (dim - 1, k), order="F"))
    if cone.kind == "psd":  # rows are those of S_ij + S_ji
        i, j = cone.triangle
        size, twice = int(j[-1]) + 1, np.tile(np.arange(dim), 2)
        T = sp.csr_array((np.full(2 * dim, 0.5), (np.concatenate((i + j * size, j + i * size)), twice)), shape=(size * size, dim))
        rows = cone.rows[0]
        return cp.PSD(cp.reshape((T @ p.A[rows]) @ x + T @ p.b[rows], (size, size), order="F"))
    parts = [slack(rows) for rows in cone.rows.T]
    return cp.ExpCone(*parts) if cone.alpha is None else cp.PowCone3D(*parts, cone.alpha)
