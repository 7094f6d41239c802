"""Multiclass boosting with group sparsity: classes that share their weak learners."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import number_or_share, one_of
from bench_mtl.core.designs import Design, frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.model.forms import ROW_NORMS, GroupForm
from bench_mtl.model.losses import MarginLoss
from bench_mtl.model.margins import HingeFit, PairwiseFit, multiclass_fit
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.model.protocols import Capability, ConicModel, Form, NotOfferedError, PredictingProblem
from bench_mtl.model.task_data import TaskData, class_indicators

_PENALTY_CONES = {"l12": frozenset({"linear", "quadratic"}), "l1inf": frozenset({"linear"}), "l1": frozenset({"linear"})}


class GroupBoosting(PredictingProblem):
    """Multiclass boosting over given weak learners with a penalty that makes classes share them.

    ::

        min_W  f(H W) + penalty sum_j ||W_j||   subject to  W >= 0

    H (n x J) has the outputs of J weak learners on n examples, W (J x K) their weights in the scores H W of K classes, and the norm of a
    row is l2 ("l12"), l-infinity ("l1inf") or l1 ("l1": no sharing, as in MultiBoost-l1). With the margins rho_ir = S_i,y_i - S_ir of
    scores S,

        logistic        f(S) = 1/(n K) sum_ir log(1 + exp(-rho_ir))
        squared_hinge   f(S) = 1/(n K) sum_ir max(0, 1 - rho_ir)^2
        exponential     f(S) = 1/(n K) sum_ir exp(-rho_ir)
        hinge           f(S) = 1/n sum_i max_r (1[r != y_i] - rho_ir)

    or 1/(n K) sum_ir l(rho_ir) for any `MarginLoss`. The sums over r take in r = y_i, which adds l(0) / K.

    A point is W. A dual point is U, n x K, of which entries at labels do not count: at the optimum U_ir = -l'(rho_ir) / (n K), or for the
    hinge a row of 1/n times probabilities. With R_ir = -U_ir, R_i,y_i = sum_{r != y_i} U_ir and G = H^T R the bounds are, for the best
    c >= 0 with c ||max(G_j, 0)||_* <= penalty for every j (dual norms l2, l1 and l-infinity),

        D(c) = l(0) / K + 1/(n K) sum_{r != y_i} g(c n K U_ir),     g(u) = -l*(-u);      hinge:  D(c) = c sum_{r != y_i} U_ir,  c <= 1

    with g(u) = H(u) = -u log u - (1-u) log(1-u) for logistic, u - u^2/4 for squared_hinge, u - u log u for exponential. Because of
    W >= 0 only positive parts count.

    Parameters
    ----------
    data : TaskData with a shared design H and labels of one class a row. Classes without an example are allowed, and noted.
    penalty : nu in the paper, at least 0; or "0.1 max", a share of the smallest penalty known to give W = 0 (that of the duals at W = 0).
        With 0 no entry of G may be above 0, which rounding leaves to nearly no U but c = 0: then the bound is l(0) / K (of the hinge 0),
        the least that the loss can be, and a gap is proven only where that is approached: where some W >= 0 separates the examples
    norm : "l12", "l1inf" or "l1"
    loss : "logistic", "squared_hinge", "exponential" or "hinge"; from Python also a `bench_mtl.model.losses.MarginLoss`
    others : from Python, what weak learners outside H ask for: a function of R (n x K) that gives their largest ||max(h^T R, 0)||_*. Bounds
        then hold for the problem over all of them. (`penalty` as a share takes them into account.)

    Raises
    ------
    InputError : labels without exactly one class a row, a single class, designs that are not shared, a negative penalty, an unknown norm or
        loss.

    References
    ----------
    Paisitkriangkrai, Shen, van den Hengel, "Sharing features in multi-class boosting via group sparsity", CVPR 2012, and its appendix,
    equations 1, 6, 7, 8, 11, 12 and 14. The l1 penalty: Shen, Hao, CVPR 2011.
    """

    name: ClassVar[str] = "group_boosting"
    offers: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.SMOOTH, Capability.SUBGRADIENT, Capability.SMOOTHED, Capability.PROX, Capability.CONIC}
    )
    forms: ClassVar[tuple[type[Form], ...]] = (GroupForm,)
    aliases: ClassVar[Mapping[str, str]] = {"nu": "penalty"}
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"epigraph": frozenset({"linear", "quadratic", "exponential"})}

    def __init__(
        self,
        data: TaskData,
        *,
        penalty: float | str,
        norm: str = "l12",
        loss: str | MarginLoss = "logistic",
        others: Callable[[Array], float] | None = None,
    ) -> None:
        if data.n_tasks < 2:
            raise InputError("group_boosting needs at least 2 classes, but the data have 1")
        if others is not None and not callable(others):
            raise InputError("others", others, "a function of residuals, from Python only")
        indicators, self.notes = class_indicators(data)
        self.design: Design = data.design
        self.norm = one_of("norm", norm, ROW_NORMS)
        self._others = others
        fit = multiclass_fit(data.design, frozen(indicators.argmax(axis=1)), loss)
        self._form = GroupForm(fit, 0.0, norm)
        self.penalty = number_or_share("penalty", penalty, self._largest_penalty)
        self._form = GroupForm(fit, self.penalty, norm)
        absent = np.flatnonzero(indicators.sum(axis=0) == 0.0)
        if len(absent):
            have = "has" if len(absent) == 1 else "have"
            self.notes = (*self.notes, f"{len(absent)} of {data.n_tasks} classes {have} no example: the first is number {absent[0]}.")
        held = data.held_out
        self._held_out = None if held is None else (held.design, class_indicators(held)[0].argmax(axis=1))
        # What this form has of all that the class offers.
        own = {Capability.SMOOTH} if isinstance(fit, PairwiseFit) else {Capability.SUBGRADIENT, Capability.SMOOTHED}
        cones = fit.loss.cones if isinstance(fit, PairwiseFit) else frozenset({"linear"})
        conic = {Capability.CONIC} if cones else set()
        self.offers = frozenset({Capability.PROX} | own | conic)  # type: ignore[misc]
        self.conic_forms = {"epigraph": cones | _PENALTY_CONES[norm]} if cones else {}  # type: ignore[misc]

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        n, J, K = 14, 5, 3
        H = np.where(rng.random((n, J)) < 0.5, 1.0, -1.0)
        H[:, -1] = H[:, 0]  # a learner twice
        sparse = sp.csr_array(rng.standard_normal((n, J)) * (rng.random((n, J)) < 0.6))
        scores = H @ rng.exponential(size=(J, K)) + 0.5 * rng.standard_normal((n, K))
        labels = np.where(np.arange(K) == scores.argmax(axis=1)[:, None], 1.0, -1.0)
        dense, csr = TaskData.shared(H, labels, name="tiny"), TaskData.shared(sparse, labels, name="tiny CSR")
        yield cls(dense, penalty=0.02)
        yield cls(dense, penalty=0.02, norm="l1inf")
        yield cls(csr, penalty=0.01, norm="l1")
        yield cls(dense, penalty=0.05, loss="squared_hinge")
        yield cls(csr, penalty=0.03, loss="squared_hinge", norm="l1inf")
        yield cls(dense, penalty=0.05, loss="exponential")
        yield cls(dense, penalty=0.05, loss="exponential", norm="l1inf")
        yield cls(dense, penalty=0.1, loss="hinge")
        yield cls(csr, penalty=0.05, loss="hinge", norm="l1inf")
        yield cls(dense, penalty=0.05, loss="hinge", norm="l1")

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.design.n_features, self.design.n_tasks)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self.design.output_shape

    @property
    def dimensions(self) -> Mapping[str, int]:
        return {"n": self.design.sizes[0], "d": self.design.n_features, "m": self.design.n_tasks}

    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        """The scores."""
        return self.design.forward_with_error(point)

    def enclose_objective_at(self, point: Array, predictions: Array, error: Array) -> Interval:
        return self._form.enclose_objective(point, Interval.around(predictions, error))

    def repair(self, point: Array) -> Array:
        return np.maximum(point, 0.0)

    def infeasibility(self, point: Array) -> float:
        return max(0.0, -float(point.min())) if np.isfinite(point).all() else np.inf

    def dual_of(self, predictions: Array) -> Array:
        """Return the dual point of the scores, minus the derivative of f."""
        return self._form.fit.duals(predictions)

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        return self._form.enclose_bound(self.dual_at(point) if dual is None else dual, self._others)

    def measures(self, point: Array) -> Mapping[str, float]:
        """Entries and rows (weak learners) above a millionth of the largest entry, and the classes that share such a row on average;
        the share of held-out examples that get another class."""
        used = point > NEGLIGIBLE_ENTRY * point.max()
        learners = int(used.any(axis=1).sum())
        found = {
            "non-zeros": float(used.sum()),
            "features used": float(learners),
            "classes a feature": float(used.sum() / learners) if learners else 0.0,
        }
        if self._held_out is not None:
            design, classes = self._held_out
            found["held-out error"] = float(np.mean(design.forward(point).argmax(axis=1) != classes))
        return found

    # SMOOTH

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        scores = self.design.forward(point)
        return self._form.fit.value(scores), self.design.adjoint(self._form.fit.derivatives(scores))

    def smooth_value(self, point: Array) -> float:
        return self._form.fit.value(self.design.forward(point))

    @property
    def gradient_is_lipschitz(self) -> bool:
        return self._curvature is not None

    def lipschitz(self) -> float:
        """sigma_max(H)^2 / n times the largest second derivative of l."""
        if self._curvature is None:
            raise NotOfferedError(self, Capability.SMOOTH)
        return self._curvature * self._squared_norm

    # SUBGRADIENT, SMOOTHED: the hinge

    def value_and_subgradient(self, point: Array) -> tuple[float, Array, Array]:
        fit, scores = self._form.fit, self.design.forward(point)
        dual = fit.duals(scores)
        return fit.value(scores), -self.design.adjoint(fit.residuals(dual)), dual

    def smoothed(self, point: Array, smoothing: float) -> tuple[float, Array, Array]:
        """With smoothing/2 times the squared l2 norm of a row of the dual point taken off; below the hinge by at most smoothing / 2."""
        fit = self._form.fit
        if not isinstance(fit, HingeFit):
            raise NotOfferedError(self, Capability.SMOOTHED)
        value, dual = fit.smoothed(self.design.forward(point), smoothing)
        return value, -self.design.adjoint(fit.residuals(dual)), dual

    def smoothed_lipschitz(self, smoothing: float) -> float:
        """sigma_max(H)^2 / (n smoothing)."""
        return self._squared_norm / smoothing

    # PROX, GROUP

    def prox(self, point: Array, step_size: float) -> Array:
        """Rows of max(point, 0) shrunk: block soft threshold (l12), row-wise prox of the maximum (l1inf), soft threshold (l1)."""
        return self._form.prox(point, step_size)

    def prox_value(self, point: Array) -> float:
        return self._form.penalty(point)

    def make_forms(self) -> tuple[Form, ...]:
        return (self._form,)

    def to_cvxpy(self, form: str = "epigraph") -> ConicModel:
        """The problem with scores S = H W as variables, so that the multiplier of that equation has the dual point off the labels."""
        import cvxpy as cp

        one_of("form", form, tuple(self.conic_forms))
        fit, (n, K) = self._form.fit, self.dual_shape
        W, S = cp.Variable(self.point_shape, nonneg=True), cp.Variable(self.dual_shape)
        scores = self.design.block(0) @ W == S
        margins = _margin_map(fit.classes, K) @ cp.vec(S, order="C")
        if isinstance(fit, PairwiseFit):
            constant = n * float(fit.loss.value(np.zeros(1))[0])
            loss, constraints = (fit.loss.margin_model(margins) + constant) / (n * K), [scores]
        else:
            xi = cp.Variable(n, nonneg=True)
            loss, constraints = cp.sum(xi) / n, [scores, sp.kron(sp.eye_array(n), np.ones((K - 1, 1))) @ xi >= 1.0 - margins]
        rows = {"l12": lambda: cp.norm(W, 2, axis=1), "l1inf": lambda: cp.max(W, axis=1), "l1": lambda: cp.sum(W, axis=1)}
        problem = cp.Problem(cp.Minimize(loss + self.penalty * cp.sum(rows[self.norm]())), constraints)

        def recover() -> tuple[Array, Array | None]:
            multiplier = scores.dual_value
            return np.asarray(W.value), None if multiplier is None else np.asarray(multiplier)

        return ConicModel(problem, recover)

    @property
    def _curvature(self) -> float | None:
        return self._form.fit.loss.curvature if isinstance(self._form.fit, PairwiseFit) else None

    @property
    def _squared_norm(self) -> float:
        """sigma_max(H)^2 / n: the star of a label and the other classes, whose Laplacian has norm K, cancels the 1/K of the mean."""
        return float(self.design.norms().max()) ** 2 / self.design.sizes[0]

    def _largest_penalty(self) -> float:
        """The smallest penalty known to give W = 0."""
        R = self._form.fit.residuals(self._form.fit.duals(np.zeros(self.dual_shape)))
        largest = float(self._form.dual_norms(self.design.adjoint(R)).max(initial=0.0))
        return max(largest, 0.0 if self._others is None else self._others(R))


def _margin_map(classes: NDArray[np.intp], K: int) -> sp.csr_array:
    """Of scores, row after row, to the margins of every example with the K - 1 other classes."""
    n = len(classes)
    off = np.flatnonzero((np.arange(K) != classes[:, None]).ravel())
    own = np.repeat(np.arange(n) * K + classes, K - 1)
    rows, ones = np.arange(len(off)), np.ones(len(off))
    return sp.csr_array((np.concatenate([ones, -ones]), (np.tile(rows, 2), np.concatenate([own, off]))), shape=(len(off), n * K))
