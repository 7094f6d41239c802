"""Multiclass boosting whose classes share their weak learners, as an estimator of scikit-learn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.estimators.boosting_fits import Boosted, ColumnGeneration, GroupBoostingModel, drop_negligible_weights, fit_dictionary
from bench_mtl.estimators.distant import near
from bench_mtl.estimators.examples import classes_of
from bench_mtl.estimators.fitting import Budget, Preferred, solver_for, warm_up, warn_unproven, whole_or_as_before
from bench_mtl.model.forms import ROW_NORMS
from bench_mtl.model.losses import MarginLoss
from bench_mtl.weak_learners import Oracle, StumpOracle, TreeOracle, WeakLearners, draw_stumps, grow_trees

WEAK_LEARNERS = ("stump", "tree")
CANDIDATES = ("all", "drawn")

#: Where no solver is named the first of these that can take the problem, with its options.
_PREFERRED: Preferred = (
    ("smoothed_gradient", {}),  # takes the hinge alone
    ("multiboost_group", {}),
    ("multiboost_l1", {}),
    ("accelerated_gradient", {"step_rule": "line_search", "restart": "gradient"}),
)

#: For at most this number of scores (examples x classes) Newton steps solve the hinge sooner than smoothing, which for few examples may
#: hardly converge; but not under the l1,inf norm, whose kinks cost them more.
_FEW_SCORES = 1000


@dataclass(eq=False, repr=False)
class GroupSparseBoostingClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Multiclass boosting over weak learners h_j(x) = -1 or +1 that the classes share.

    The weights W (learners x classes) of the scores sum_j h_j(x) W_jr minimise, up to a proven gap,

        f(H W) + penalty sum_j ||W_j||   subject to  W >= 0,        H_ij = h_j(x_i)

    with a loss f of the margins between the score of an example's class and those of the others. The norm of a row W_j makes whole rows
    zero ("l12", "l1inf"): a learner is used by several classes or by none. "l1" has no such effect. A fit is totally corrective: the
    weights of all learners found are fitted anew whenever learners come in. The problem is `group_boosting`, which has the formulas.

    There are no class probabilities: losses of pairs of classes are not likelihoods, and scores are not calibrated
    (`sklearn.calibration.CalibratedClassifierCV` does that). There are no sample weights either: the problem has none.

    Parameters
    ----------
    penalty : float or str, default "0.05 max"
        Weight of the norms, the paper's nu, or a share of the smallest for which all weights are zero (over the candidates).
        Smaller: more learners. With 0 a gap can be proven only where the learners separate the classes.
    norm : {"l12", "l1inf", "l1"}
    loss : {"logistic", "squared_hinge", "exponential", "hinge"} or `bench_mtl.model.losses.MarginLoss`
    weak_learner : {"stump", "tree"}
        One feature against a threshold, or a decision tree of depth `max_depth`.
    candidates : {"all", "drawn"} or `bench_mtl.weak_learners.WeakLearners`
        Which learners there are to choose from. "all": all of that kind, those of use being found by an oracle in rounds (column
        generation). "drawn": `n_learners` of them, stumps drawn at random or trees grown at random. Or these given ones.
    n_learners : int
        How many learners are drawn, or are found at most.
    learners_per_round : int
        How many of those that an oracle finds come in at once, at most.
    max_depth : int
        Of trees.
    solver : str, optional
        Name of a registered solver; by default one that suits the loss.
    solver_options : dict, optional
        Its options.
    tol : float
        The relative gap, (objective - lower bound) / objective, to prove.
    max_iter : int
        Solver iterations in all, at most.
    max_seconds : float, optional
        Seconds of a fit, at most (roughly: a round is not broken off while the oracle searches), beginning once code is compiled.
    random_state : int, RandomState or None
        Of the drawing of learners, and of ties in trees.

    Attributes
    ----------
    classes_ : ndarray of labels, ascending
    class_count_ : ndarray of int
        How many examples of each there were.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X has such names
    learners_ : `WeakLearners`
        Those with a weight above zero. With candidates "all" in the order in which they were found, else by descending norm of their
        weights.
    coef_ : ndarray, learners x classes
        Their weights, at least 0, and no row without one above 0.
    penalty_ : float
        The penalty's weight as a number.
    objective_ : float
        At `coef_`.
    dual_bound_ : float
        A proven lower bound on the smallest objective that there is over the learners of `gap_covers_`.
    gap_ : float
        (objective_ - dual_bound_) / objective_: the fit is proven to be no further from the optimum.
    gap_covers_ : {"all stumps", "learners drawn", "learners given", "trees found"}
        What the optimum is over. The oracle of stumps is exact, so the gap holds over every stump that splits the examples,
        found or not. That of trees is a heuristic: the gap holds over the trees found, and the search ends where it finds no other that
        would lower the objective by more than `tol`.
    n_iter_ : int
        Iterations of the solver in all.
    rounds_ : tuple of `bench_mtl.estimators.boosting_fits.Round`
        One for each question to the oracle; empty where there is none.
    converged_ : bool
        Whether the fit ended as it should. If not, there is a ConvergenceWarning.
    message_ : str
        How the fit ended.

    References
    ----------
    Paisitkriangkrai, Shen, van den Hengel, "Sharing features in multi-class boosting via group sparsity", CVPR 2012. The
    norm l1: Shen, Hao, "A direct formulation for totally-corrective multi-class boosting", CVPR 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bench_mtl.estimators import GroupSparseBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GroupSparseBoostingClassifier().fit(X, y)
    >>> bool(model.gap_ <= 1e-3), model.gap_covers_
    (True, 'all stumps')
    """

    penalty: float | str = "0.05 max"
    _: KW_ONLY
    norm: str = "l12"
    loss: str | MarginLoss = "logistic"
    weak_learner: str = "stump"
    candidates: str | WeakLearners = "all"
    n_learners: int = 1000
    learners_per_round: int = 20
    max_depth: int = 2
    solver: str | None = None
    solver_options: dict[str, Any] | None = None
    tol: float = 1e-3
    max_iter: int = 20_000
    max_seconds: float | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> GroupSparseBoostingClassifier:
        """Find the weak learners and their weights.

        Parameters
        ----------
        X : examples x features, dense or sparse
        y : a label for each example, of two classes at least

        Raises
        ------
        InputError : a ValueError; a parameter that is not allowed, a single class, no feature with two different values.
        """
        with whole_or_as_before(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> GroupSparseBoostingClassifier:
        X, y = validate_data(self, X, near("y", y), accept_sparse="csr", dtype=np.float64)
        self.classes_, numbers = classes_of(y, "y")
        check_classification_targets(y)
        self.class_count_ = np.bincount(numbers)
        if len(self.classes_) < 2:
            raise InputError(f"y has only one class, {self.classes_.tolist()[0]!r}: a classifier needs at least 2")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        labels = np.where(numbers[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        model = GroupBoostingModel(labels, self.norm, self.loss)
        self._check_parameters()
        newton_first = self.norm != "l1inf" and labels.size <= _FEW_SCORES
        preferred = (*_PREFERRED[1:], _PREFERRED[0]) if newton_first else _PREFERRED
        solver = solver_for(model.problem(None, 0.0), self.solver, self.solver_options, preferred)
        warm_up(solver, model.problem(None, 0.0), StumpOracle)
        budget, is_stump = Budget(self.max_iter, self.max_seconds), self.weak_learner == "stump"  # its clock begins here
        if isinstance(self.candidates, str) and self.candidates == "all":
            spread = X.shape[1] >= self.learners_per_round  # few features have more than one good threshold
            oracle: Oracle = StumpOracle(X, one_per_feature=spread) if is_stump else TreeOracle(X, self.max_depth, seed)
            self.penalty_ = float(model.problem(None, self.penalty, lambda R: oracle.highest(R, self.norm)).penalty)
            self.gap_covers_ = "all stumps" if is_stump else "trees found"
            sizes = {"per_round": self.learners_per_round, "most": self.n_learners}
            found = ColumnGeneration(model, X, oracle, self.penalty_, solver, **sizes).run(self.tol, budget)
        else:
            learners, self.gap_covers_ = self.candidates, "learners given"
            if isinstance(learners, str):
                self.gap_covers_ = "learners drawn"
                count, depth = self.n_learners, self.max_depth
                learners = draw_stumps(X, count, seed) if is_stump else grow_trees(X, numbers, count, depth, seed)
            H = learners.outputs(X)
            self.penalty_ = float(model.problem(H, self.penalty).penalty)
            found = fit_dictionary(model, learners, H, self.penalty_, solver, self.tol, budget)
        self._keep(drop_negligible_weights(model, self.penalty_, found, self.tol))
        self.n_iter_ = budget.steps
        if not self.converged_:
            warn_unproven(self.gap_, self.tol, self.message_)
        return self

    def _check_parameters(self) -> None:
        """Check what the problem does not look at."""
        one_of("norm", self.norm, ROW_NORMS)
        one_of("weak_learner", self.weak_learner, WEAK_LEARNERS)
        if isinstance(self.candidates, WeakLearners):
            if not len(self.candidates):
                raise InputError("candidates are no weak learner at all")
        elif not isinstance(self.candidates, str) or self.candidates not in CANDIDATES:
            raise InputError("candidates", self.candidates, f"one of {', '.join(CANDIDATES)}, or WeakLearners")
        for name in ("n_learners", "learners_per_round", "max_depth"):
            whole_number(name, getattr(self, name), minimum=1)
        real_number("tol", self.tol, strict=True)

    def _keep(self, found: Boosted) -> None:
        self.learners_, self.coef_ = found.learners, found.weights
        self.objective_, self.dual_bound_, self.gap_ = found.certificate.primal, found.certificate.dual, found.certificate.relative_gap
        self.converged_, self.message_, self.rounds_ = found.is_met, found.message, found.rounds

    def decision_function(self, X: Any) -> Array:
        """Return scores of the classes, examples x classes; of two classes the second's minus the first's, a vector."""
        return self._decisions(self._outputs(X) @ self.coef_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of the highest score; of several the one with most examples in training, and of these the first.

        So a fit without learners, all of whose scores are 0, says the most frequent class. Of two classes it is the second where
        `decision_function` is above 0, and else the first, as everywhere in scikit-learn.
        """
        return self._predicted_classes(self.decision_function(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield `decision_function` of the first learner, of the first two, and so on.

        The learners come in the order of `learners_` and have their final weights: a stage is not a fit with that
        number of learners. The last stage is the fit. Nothing comes where there is no learner.
        """
        H = self._outputs(X)
        scores = np.zeros((H.shape[0], len(self.classes_)))
        for outputs, weights in zip(H.T, self.coef_, strict=True):
            scores = scores + outputs[:, None] * weights
            yield self._decisions(scores)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield `predict` of the stages of `staged_decision_function`."""
        return map(self._predicted_classes, self.staged_decision_function(X))

    def staged_score(self, X: Any, y: Any) -> Iterator[float]:
        """Yield the accuracy of the stages of `staged_decision_function`."""
        for predictions in self.staged_predict(X):
            yield float(accuracy_score(near("y", y), predictions))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy."""
        return float(accuracy_score(near("y", y), self.predict(X), sample_weight=sample_weight))

    def transform(self, X: Any) -> Array:
        """Return what the learners say, examples x learners, -1 or +1: features for another model, named by `get_feature_names_out`."""
        return self._outputs(X)

    def _outputs(self, X: Any) -> Array:  # which, unlike those of `transform`, are no frame
        check_is_fitted(self)
        return self.learners_.outputs(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return where every learner says +1, such as "petal width (cm) > 0.8".

        Parameters
        ----------
        input_features : names of the features; by default those that X had in `fit`, or else x0, x1, ...

        Raises
        ------
        ValueError : not as many names as features, or other ones than X had.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        lines = [re.sub(r"x\[(\d+)\]", lambda found: str(names[int(found[1])]), line) for line in self.learners_.names()]
        times = Counter(lines)  # thresholds are rounded, and columns of a frame had better have different names
        return np.array([line if times[line] == 1 else f"{line} ({j})" for j, line in enumerate(lines)], dtype=object)

    @property
    def shared_by_(self) -> NDArray[np.bool_]:
        """Which classes use which learner, learners x classes."""
        check_is_fitted(self)
        return self.coef_ > 0.0

    @property
    def feature_importances_(self) -> Array:
        """For each feature of X the norms of the weights of the learners that look at it, over the sum of them all.

        A learner that examines several features counts for each of them in equal parts. All zero where there is no learner.
        """
        check_is_fitted(self)
        norms = np.linalg.norm(self.coef_, ord={"l12": 2, "l1inf": np.inf, "l1": 1}[self.norm], axis=1)
        importances = np.zeros(self.n_features_in_)
        for j, norm in enumerate(norms):
            features = list(self.learners_.features_of(j))
            importances[features] += norm / max(len(features), 1)
        return importances / (importances.sum() or 1.0)

    def _decisions(self, scores: Array) -> Array:
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _predicted_classes(self, decisions: Array) -> NDArray[Any]:
        if decisions.ndim == 1:
            return self.classes_[(decisions > 0.0).astype(np.intp)]
        frequent_first = np.argsort(-self.class_count_, kind="stable")
        return self.classes_[frequent_first[decisions[:, frequent_first].argmax(axis=1)]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
