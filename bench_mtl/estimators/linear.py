"""Linear models of many tasks as estimators of scikit-learn: what they take, what they predict, and tasks with rows of their own."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import isabstract, signature
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from bench_mtl.core.checks import is_sparse, require_shape, true_or_false
from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Certificate, Matrix
from bench_mtl.data import TaskData
from bench_mtl.estimators.distant import distant_data, distant_outputs, is_distant, near, require_near, require_unchanged
from bench_mtl.estimators.docstrings import Text, completed
from bench_mtl.estimators.examples import (
    apart,
    are_counts,
    classes_of,
    counted,
    fitting,
    observed,
    of_classes,
    repeated,
    require_class_weight,
    require_range,
    scaled,
    weighted,
    weights_of,
)
from bench_mtl.estimators.fitting import scaling_advice, warn_unproven, whole_or_as_before
from bench_mtl.model.intercepts import Centres, centred
from bench_mtl.model.task_data import require_comparable


class Examples(NamedTuple):
    """What a model is fitted to."""

    data: TaskData
    """Real targets, or labels -1 and +1; weights are in the rows, or in the data. Centred where `centres` are given."""
    as_vector: bool = False
    """Whether there is one task and its coefficients are to be a vector."""
    centres: Centres | None = None


@dataclass(frozen=True)
class FittedTasks:
    """Coefficients of every task, and how they were found."""

    coefficients: Array
    """d x m."""
    n_iter: int
    is_met: bool
    """Whether the fit ended as it should."""
    message: str
    certificate: Certificate | None = None
    """None where the model is not convex."""
    intercepts: Array | None = None
    """m numbers, where the fit has found them itself."""
    parts: Mapping[str, Array] = field(default_factory=dict)
    """Matrices whose sum the coefficients are, d x m, by the name of their attribute."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Further attributes of the estimator, by name."""

    def with_last_as_intercepts(self, value: float) -> FittedTasks:
        """Return the fit with the coefficients of the last feature, which is `value` in all examples, as intercepts."""
        W = self.coefficients
        return replace(self, coefficients=np.ascontiguousarray(W[:-1]), intercepts=value * W[-1])


@dataclass(eq=False, repr=False, kw_only=True)
class LinearTasks(BaseEstimator, ABC):  # type: ignore[misc]
    """Scores x.w_k + b_k of m tasks over the same d features.

    Parameters
    ----------
    fit_intercept : bool, default True
        Whether scores are x.w_k + b_k. The b_k are free: no norm restricts or penalises them, and the gap of a fit covers them. With the
        squared loss the examples are centred, which makes sparse ones dense unless they would be much larger.
    tol : float
        The relative gap, (objective - lower bound) / objective, to prove. Where the objective is below a thousandth of that of zero
        coefficients (with the squared loss a millionth), `tol` times that will do: an absolute tolerance, for separable classes.
    max_iter : int
        Solver iterations, at most.

    Attributes
    ----------
    coef_ : ndarray, tasks x features; features where a regressor was fitted to a vector
    intercept_ : ndarray, tasks; a number where `coef_` is a vector. Zeros without `fit_intercept`
    n_tasks_ : int
        Several classes are a task each, two are one.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X has such names
    task_names_ : ndarray of str, where y is a frame whose columns are the tasks and have such names
    classes_ : of classifiers, ndarray of labels, ascending; for labels in many columns, and for tasks with rows of their own, a list with
        the two labels of every task
    objective_ : float
        At the coefficients, recomputed from the data by the problem.
    dual_bound_ : float
        A proven lower bound on the smallest objective; absent where a model is not convex, and so is `gap_`.
    gap_ : float
        (objective_ - dual_bound_) / objective_, 0 where both are 0: the fit is proven to be no further from the optimum. It may be above
        `tol` where the objective is almost 0, see there.
    n_iter_ : int
        Iterations of the solver.
    converged_ : bool
        Whether the fit ended as it should. If not, there is a ConvergenceWarning.
    message_ : str
        How the fit ended.
    """

    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 100_000

    # None of these is a parameter unless a subclass makes it one.
    loss = "squared"
    counts_weights = False  # whether its fit takes data with weights of any size, whatever the loss
    class_weight = task_weights = None
    reduction = "sum"
    """Whether the objective has the "sum" or the "mean" of a task's losses; it matters to weights of squares alone."""
    takes_shards = False
    """Whether `fit` takes examples that are not in memory."""
    _is_numeric = True
    """Whether targets are numbers."""

    @abstractmethod
    def _fit_data(self, data: TaskData) -> FittedTasks:
        """Return the coefficients for these data: real targets, or labels -1 and +1; intercepts too where there are to be any, unless
        `_is_centred` says that the data are centred."""

    @abstractmethod
    def _targets_of(self, y: NDArray[Any]) -> Array:
        """Return the targets of checked ones, or labels -1 and +1 of classes, which are kept: a vector, or examples x tasks."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the coefficients for targets, or labels, of the same examples.

        Parameters
        ----------
        X : examples x features, dense or sparse; a Dask array or frame, or a design in shards, where the model takes such
        y : of regressors a target for each example, or examples x tasks; of classifiers a class for each, or examples x tasks of two labels
            each, such as 0 and 1 or words. NaN, None and NA are not observed: the task does without the example. (A vector of classes
            needs all.)
        sample_weight : of the losses of an example, at least 0; one of weight 3 counts as three. `ASOClassifier` takes whole numbers alone
            with a loss that is not squared.

        Raises
        ------
        InputError : a ValueError; a parameter that is not allowed, a task with a single class, weights that are all zero or that the loss
            does not take.
        """
        with whole_or_as_before(self):
            return self._learn(self._read(X, y, sample_weight))

    def fit_tasks(self, Xs: Sequence[Any], ys: Sequence[Any], sample_weight: Sequence[Any] | None = None) -> Self:
        """Fit tasks that have examples of their own.

        Parameters
        ----------
        Xs : for each task its examples x features
        ys : for each task a target for each of its examples, or a label of two classes, which may be other ones in other tasks; examples
            whose target is not observed are left out
        sample_weight : for each task weights of its examples (or None), as `fit` takes them

        Raises
        ------
        InputError : as `fit` does; the task is named.
        """
        with whole_or_as_before(self):
            return self._learn(self._read_tasks(Xs, ys, sample_weight))

    def score_tasks(self, Xs: Sequence[Any], ys: Sequence[Any]) -> float:
        """Return the score of every task for examples of its own, averaged over the tasks that have observed ones: the accuracy, or R^2,
        which for a task whose targets are all the same is 1 where they are met and else 0."""
        predictions, tasks = self.predict_tasks(Xs), list[Any]()
        self._require_tasks("ys", ys)
        for k, (y, p) in enumerate(zip(ys, predictions, strict=True)):
            target, missing = observed(near(f"y of task {k}", y, may_lack=True))
            target = np.asarray(target)
            target = target.ravel() if target.shape[1:] == (1,) else target
            require_shape(f"y of task {k}", target, p.shape, why=" to match its X")
            tasks.append((target, p, None if missing is None else missing.ravel()))
        return self._mean_score(tasks)

    def _mean_score(self, tasks: Iterable[tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_] | None]], weights: Any = None) -> float:
        """Return the mean of the scores of those tasks that have observed ones of their targets, beside predictions and what is missing."""
        scores = []
        for y, predictions, missing in tasks:
            seen = np.ones(len(y), dtype=np.bool_) if missing is None else ~missing
            if weights is not None:
                seen = seen & (np.asarray(weights) > 0.0)
            if seen.any():
                scores.append(self._score_of(y[seen], predictions[seen], None if weights is None else np.asarray(weights)[seen]))
        if not scores:
            raise InputError("y has no observed value to score")
        return float(np.mean(scores))

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Examples:
        """Check what `fit` is given, keep what is known of it as attributes, and return what is fitted to."""
        columns = y
        if is_distant(X):
            if not self.takes_shards:
                require_near(f"X of {type(self).__name__}", X)
            for name, value in (("sample_weight", sample_weight), ("class_weight", self.class_weight), ("task_weights", self.task_weights)):
                if value is not None:
                    raise InputError(f"{name} must be None where X is a Dask collection or a design in shards")
            self._keep_task_names(columns, len(getattr(columns, "columns", ())))  # for messages
            data, as_vector = distant_data(self, X, y)
            self._keep_task_names(columns, data.n_tasks)
            return self._examples(data, [None], as_vector=self._is_numeric and as_vector)
        y, missing = observed(near("y", y, may_lack=True))
        options: dict[str, Any] = {"multi_output": True, "y_numeric": self._is_numeric}
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, **options)
        y = np.asarray(y.toarray() if is_sparse(y) else y)
        self._require_numbers("y", y)
        if missing is not None and not self._is_numeric and y.shape[1:] in ((), (1,)):
            row = int(np.flatnonzero(missing)[0])
            raise InputError(f"y has no value (NaN) in row {row}: classes in one vector need that of each example")
        X, y, missing, weights = counted(X, y, missing, sample_weight, "sample_weight")
        if missing is not None:
            seen = [np.flatnonzero(~gone) for gone in missing.T]
            parts = [(X[rows], y[rows, k], None if weights is None else weights[rows]) for k, rows in enumerate(seen)]
            return self._examples_of_tasks(parts, columns)
        ys = list(y.reshape(len(y), -1).T)
        self._keep_task_names(columns, len(ys))  # for messages
        data = TaskData.shared(X, self._targets_of(y))
        self._keep_task_names(columns, data.n_tasks)  # the classes of one column are tasks without names
        weighed = self._with_classes(ys, [weights] * len(ys))
        each = weights if all(some is weights for some in weighed) else np.stack([np.asarray(some) for some in weighed], axis=1)
        return self._examples(data, [each], as_vector=self._is_numeric and y.ndim == 1)

    def _read_tasks(self, Xs: Sequence[Any], ys: Sequence[Any], sample_weight: Sequence[Any] | None) -> Examples:
        """Do the same for `fit_tasks`: examples of weight above 0 count; the first task's rows say what the features are."""
        require_lists(Xs=Xs, ys=ys)
        if len(Xs) != len(ys):
            raise InputError(f"Xs has {len(Xs)} tasks, but ys has {len(ys)}")
        if not len(Xs):
            raise InputError("Xs has no task: at least one is needed")
        if sample_weight is not None:
            require_lists(sample_weight=sample_weight)
            if len(sample_weight) != len(Xs):
                raise InputError("sample_weight", len(sample_weight), f"have an entry for each of the {len(Xs)} tasks")
        parts = []
        for k, (X, y) in enumerate(zip(Xs, ys, strict=True)):
            y, missing = observed(near(f"y of task {k}", y, may_lack=True))
            X, y = self._checked_task(k, X, y, reset=k == 0, y_numeric=self._is_numeric)
            self._require_numbers(f"y of task {k}", y)
            weights = None if sample_weight is None else sample_weight[k]
            X, y, _, weights = counted(X, y, missing, weights, f"sample_weight of task {k}")
            parts.append((X, y, weights))
        return self._examples_of_tasks(parts, None)

    def _require_numbers(self, name: str, y: NDArray[Any]) -> None:
        """Raise InputError for the text 'nan' among numbers, which becomes NaN only after `observed` has looked for it."""
        if self._is_numeric and np.any(np.isnan(y) if y.dtype.kind == "f" else y.dtype.kind in "OU" and y == "nan"):
            raise InputError(f"{name} has the text 'nan': a target that is not observed is None or NaN")

    def _examples_of_tasks(self, parts: Sequence[tuple[Matrix, NDArray[Any], Array | None]], columns: Any) -> Examples:
        """Return what is fitted to: the examples, targets and weights of each task."""
        Xs, ys, weights = zip(*parts, strict=True)
        for k, y in enumerate(ys):
            if not len(y):
                raise InputError(f"y of task {k} has no observed value in an example that counts")
        self._keep_task_names(columns, len(parts))
        targets = self._task_targets_of(ys)
        return self._examples(TaskData.per_task(Xs, targets), self._with_classes(ys, weights))

    def _with_classes(self, ys: Sequence[NDArray[Any]], weights: Sequence[Array | None]) -> Sequence[Array | None]:
        """Return the weights of the examples of some tasks times those of their classes."""
        return weights

    def _checked_task(self, k: int, X: Any, *y: Any, **options: Any) -> Any:
        require_near(f"X of task {k}", X)
        try:
            return validate_data(self, X, *y, accept_sparse="csr", dtype=np.float64, **options)
        except ValueError as error:
            raise InputError(f"{'' if y else 'X of '}task {k}: {' '.join(str(error).split())}") from None

    def _examples(self, data: TaskData, weights: Sequence[Array | None], *, as_vector: bool = False) -> Examples:
        """Return what is fitted to: its fit without weights is the one of the data with weights, of the examples of each block.

        Rows times roots stand for weights of squares. Of other losses, and of sparse examples that have an intercept and are not centred,
        copies stand for whole numbers, with the same coefficients to the last bit, and others, or many copies, are weights of the loss.
        Examples that are shared may have weights in each task, n x m: these are of the loss, or the tasks get examples of their own.
        """
        true_or_false("fit_intercept", self.fit_intercept)
        if self.class_weight is not None and self.loss != "squared" and not self.counts_weights:
            raise InputError(
                f"class_weight must be None with the loss '{self.loss}' of {type(self).__name__}: its sample weights must be whole numbers"
            )
        for some in weights:
            if some is not None:
                require_comparable("sample_weight, times class_weight," if self.class_weight is not None else "sample_weight", some)
        by_task = data.design.is_shared and weights[0] is not None and weights[0].ndim == 2 and weights[0].shape[1] > 1
        if by_task and not self.counts_weights:
            data, weights, by_task = apart(data), list(np.asarray(weights[0]).T), False
        weights = weights if by_task else [None if w is None else w.ravel() for w in weights]
        are_copies, centres = not by_task and all(w is None or are_counts(w, are_few=self.counts_weights) for w in weights), None
        is_off = by_task or not self._is_to_centre(data.design)
        stays = self._may_be_centred and is_off and (are_copies or self.counts_weights)
        if self._may_be_centred and not stays:
            require_range(data)
            data, centres = centred(data, lambda k: weights[k])
        if any(w is not None for w in weights):
            if self.loss == "squared" and not stays and not by_task:
                data = scaled(data, weights, self.reduction)
            elif are_copies or not self.counts_weights:
                data = repeated(data, weights, self.loss)
            else:
                data = weighted(data, weights)
        if self.task_weights is not None:
            data = data.with_task_weights(self.task_weights)
        return Examples(data, as_vector, centres)

    def _learn(self, examples: Examples) -> Self:
        """Fit, keep what was found, and warn the caller's caller of a fit that did not come to its end."""
        with fitting(examples.data):
            fitted = self._fit_data(examples.data)
        if not fitted.is_met:
            require_range(examples.data, of_small=True)
        require_unchanged(examples.data)
        self._keep(fitted, examples)
        if not fitted.is_met:
            if fitted.certificate is None:
                warnings.warn(fitted.message, ConvergenceWarning, stacklevel=3)
            else:
                message = fitted.message + scaling_advice(examples.data.design)
                warn_unproven(fitted.certificate.relative_gap, self.tol, message)
        return self

    def _keep(self, fitted: FittedTasks, examples: Examples) -> None:
        W = fitted.coefficients
        self.n_tasks_ = W.shape[1]
        intercepts = np.zeros(self.n_tasks_) if fitted.intercepts is None else fitted.intercepts
        if examples.centres is not None:
            intercepts = examples.centres.intercepts(W)
        self.intercept_ = float(intercepts[0]) if examples.as_vector else intercepts
        for name, part in {"coef_": W, **fitted.parts}.items():
            rows = np.ascontiguousarray(part.T)
            setattr(self, name, rows[0] if examples.as_vector else rows)
        for name, value in fitted.attributes.items():
            setattr(self, name, value)
        if fitted.certificate is not None:
            self.objective_, self.dual_bound_ = upper, lower = fitted.certificate.primal, fitted.certificate.dual
            self.gap_ = (upper - lower) / upper if 0.0 < upper - lower < np.inf else fitted.certificate.relative_gap
        self.n_iter_, self.converged_, self.message_ = fitted.n_iter, fitted.is_met, fitted.message

    def _keep_task_names(self, y: Any, n_tasks: int) -> None:
        """Keep the names of the columns of a frame of targets, where each column is a task."""
        self.__dict__.pop("task_names_", None)
        columns = list(getattr(y, "columns", ()))
        if len(columns) == n_tasks and all(isinstance(name, str) for name in columns):
            self.task_names_ = np.array(columns, dtype=object)

    @property
    def _may_be_centred(self) -> bool:
        """Whether centred data have the same coefficients."""
        return self.fit_intercept and self.loss == "squared"

    def _is_to_centre(self, design: Design) -> bool:
        """Whether examples are centred where they may be."""
        return True

    def _is_centred(self, data: TaskData) -> bool:
        """Whether data that were read are centred, which are dense then."""
        return self._may_be_centred and data.weights is None and not (data.design.is_in_shards or data.design.is_sparse)

    def _of_scores(self, X: Any, finish: Callable[[Array], Any]) -> Any:
        """Return what is made of the scores of X, n x m; of a Dask collection a Dask array that will be."""
        check_is_fitted(self)
        W = np.atleast_2d(self.coef_).T
        if is_distant(X):
            return distant_outputs(self, X, W, self.intercept_, finish)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return finish(np.asarray(X @ W) + self.intercept_)

    def _task_scores(self, Xs: Sequence[Any]) -> list[Array]:
        """Return the scores of every task on rows of its own, a vector of n_k each."""
        check_is_fitted(self)
        self._require_tasks("Xs", Xs)
        designs: list[Matrix] = [self._checked_task(k, X, reset=False) for k, X in enumerate(Xs)]
        pairs = zip(designs, np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_), strict=True)
        return [np.asarray(X @ w) + b for X, w, b in pairs]

    def _require_tasks(self, name: str, values: Sequence[Any]) -> None:
        require_lists(**{name: values})
        if len(values) != self.n_tasks_:
            raise InputError(name, len(values), f"have an entry for each of the {self.n_tasks_} tasks")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


_Model = TypeVar("_Model", bound=LinearTasks)

#: Parameters that are no problem's own, and that a signature shows after those of the model.
SHARED_PARAMETERS = frozenset({
    *(each.name for each in fields(LinearTasks)), "solver", "solver_options", "max_seconds", "loss", "class_weight", "task_weights",
    "warm_start", "callback",
})  # fmt: skip

#: What models and their families say of themselves.
_texts: dict[type, Text] = {}

#: What is said of parameters that most models have, each on its own.
_OF_SOLVERS = Text.of(
    """

    Parameters
    ----------
    solver : str, optional
        Name of a registered solver that can take the problem; by default one that suits it.
    solver_options : dict, optional
        Its options.
    max_seconds : float, optional
        Seconds of the solver, at most (roughly: a step is not broken off), beginning once its code is compiled. What proves the gap is
        not counted. Where a model is not convex they are all seconds of the fit from its data on.
    class_weight : "balanced", dict or None
        What the losses of the examples of a class are multiplied by, besides their weights: a dict of labels, 1 for those that it lacks,
        or "balanced", n / (classes * examples of the class), in every task of its own labels.
    task_weights : list of float, optional
        What the loss of each task is multiplied by, above 0.
    warm_start : bool, default False
        Whether a solver that has iterates begins at the coefficients of the last fit, where these are of as many tasks and features.
    callback : callable, optional
        Called with the progress of the fit after each certificate, an `estimators.fitting.Progress`. If it returns True the fit ends.
    ridge : float, default 0
        What is added to the objective is ridge/2 ||W||_F^2, with a penalty; not with hinges.
    feature_factors : list of float, optional
        What the norm multiplies the coefficients of each feature by, with a penalty; 0 (with a ridge) leaves it free. Not with hinges.
    nonnegative : bool, default False
        Whether coefficients are at least 0; not with hinges.
    """,
    has_summary=False,
)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def linear_model(cls: type[_Model]) -> type[_Model]:
    """Make a dataclass of a model, whose signature shows the model's own parameters first, and whose docstring says what its family does.

    Models are dataclasses: a field with an annotation is a parameter, as scikit-learn understands it. Every public model is decorated, so
    that it has an `__init__` of its own: an unknown keyword is refused in that model's name.
    """
    text = Text.of(cls.__doc__, has_summary=not cls.__name__.startswith("_"))  # a family is summed up by its models
    cls = dataclass(eq=False, repr=False)(cls)
    shown = signature(cls.__init__)
    late = SHARED_PARAMETERS - {"loss"}
    ordered = sorted(shown.parameters.values(), key=lambda parameter: (parameter.kind, parameter.name in late))
    cls.__init__.__signature__ = shown.replace(parameters=ordered)  # type: ignore[attr-defined]
    _texts[cls] = text
    if not isabstract(cls):
        names = [parameter.name for parameter in ordered if parameter.name != "self"]
        cls.__doc__ = completed(cls, _family(cls), [*_family(getattr(cls, "plain", LinearTasks)), _OF_SOLVERS], names)
    return cls


def _family(model: type) -> list[Text]:
    return [_texts.get(base) or Text.of(base.__doc__) for base in model.__mro__ if issubclass(base, LinearTasks)]


class LinearTaskRegressor(RegressorMixin, LinearTasks):  # type: ignore[misc]
    """Linear regression for one target or many."""

    def _targets_of(self, y: NDArray[Any]) -> Array:
        return np.asarray(y, dtype=np.float64)

    def _task_targets_of(self, ys: Sequence[NDArray[Any]]) -> list[Array]:
        return [self._targets_of(y) for y in ys]

    def predict(self, X: Any) -> Array:
        """Return predictions of all tasks, examples x tasks; a vector where the fit was to a vector. Those of Dask collections are lazy."""
        return self._of_scores(X, self._predictions_of)

    def _predictions_of(self, scores: Array) -> Array:
        return scores[:, 0] if self.coef_.ndim == 1 else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 over the observed targets, averaged over the tasks that have some, as `score_tasks` does."""
        (y, missing), p = observed(near("y", y, may_lack=True)), near("predictions", self.predict(X))
        y = y.toarray() if is_sparse(y) else y
        if missing is None:
            return float(r2_score(y, p, sample_weight=sample_weight))
        if y.size != p.size or len(y) != len(p):
            raise InputError("y", y.shape, f"have shape {p.shape} to match X")
        return self._mean_score(zip(*(part.reshape(len(y), -1).T for part in (y, p, missing)), strict=True), sample_weight)

    def predict_tasks(self, Xs: Sequence[Any]) -> list[Array]:
        """Return predictions for examples of their own, task by task."""
        return self._task_scores(Xs)

    def _score_of(self, y: NDArray[Any], predictions: NDArray[Any], weights: Any = None) -> float:
        return float(r2_score(y, predictions, sample_weight=weights)) if len(y) > 1 else float(y[0] == predictions[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@linear_model
class LossRegressor(LinearTaskRegressor):
    """Linear regression with a choice of losses, by default squares."""

    loss: str = field(default="squared", kw_only=True)


def _has_probabilities(model: LinearTasks) -> bool:
    """Whether the loss is that of a likelihood; if not, an AttributeError says so."""
    if model.loss != "logistic":
        raise AttributeError(f"{type(model).__name__} has probabilities with loss='logistic', and none with the loss {model.loss!r}")
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class LinearTaskClassifier(ClassifierMixin, LinearTasks):  # type: ignore[misc]
    """Linear classification: of two classes, of several (a task each, one against all the others), or of many labels (a task each)."""

    class_weight: Any = None

    classes_: Any = field(init=False)
    _is_numeric = False
    _classes_of_all: ClassVar[Sequence[NDArray[Any]] | None] = None
    """Of a model of a fold the classes of every task, some of which the fold may lack."""

    def _targets_of(self, y: NDArray[Any]) -> Array:
        if y.ndim == 2 and y.shape[1] > 1:  # a task for each column
            return np.column_stack(self._task_targets_of(list(y.T)))
        self.classes_, numbers = classes_of(column_or_1d(y, warn=True), "y")
        check_classification_targets(y)
        if len(self.classes_) < 2:
            raise InputError(f"y has only one class, {self.classes_.tolist()[0]!r}: a classifier needs at least 2")
        if len(self.classes_) == 2:
            return np.where(numbers == 1, 1.0, -1.0)
        return np.where(numbers[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)

    def _task_targets_of(self, ys: Sequence[NDArray[Any]]) -> list[Array]:
        names = [repr(name) for name in getattr(self, "task_names_", ())] or range(len(ys))
        self.classes_ = [_pair(y, f"y of task {name}") for y, name in zip(ys, names, strict=True)]
        return [np.where(y == pair[1], 1.0, -1.0) for y, pair in zip(ys, self.classes_, strict=True)]

    def _with_classes(self, ys: Sequence[NDArray[Any]], weights: Sequence[Array | None]) -> Sequence[Array | None]:
        if self.class_weight is None:
            return weights
        classes = self.classes_ if self._is_per_task else [self.classes_]
        known = classes if self._classes_of_all is None else [*classes, *self._classes_of_all]
        require_class_weight(self.class_weight, {label for of_task in known for label in of_task.tolist()})
        return [of_classes(self.class_weight, *task) for task in zip(ys, classes, weights, strict=True)]

    @property
    def _is_per_task(self) -> bool:
        """Whether each task has two classes of its own."""
        return isinstance(self.classes_, list)

    def decision_function(self, X: Any) -> Array:
        """Scores, examples x tasks (or classes); of two classes a vector, above 0 for the second. Those of Dask collections are lazy."""
        return self._of_scores(X, self._decisions_of)

    def _decisions_of(self, scores: Array) -> Array:
        return scores if self._is_per_task or len(self.classes_) > 2 else scores[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """A class for each example; after a fit to many labels or tasks examples x tasks, the second label where the score is above 0.

        Of Dask collections they are lazy.
        """
        return self._of_scores(X, self._classes_of)

    def _classes_of(self, scores: Array) -> NDArray[Any]:
        scores = self._decisions_of(scores)
        if self._is_per_task:
            columns = [pair[above.astype(np.intp)] for pair, above in zip(self.classes_, (scores > 0.0).T, strict=True)]
            has_one_kind = len({pair.dtype.kind for pair in self.classes_}) == 1
            return np.stack(columns, axis=1, dtype=None if has_one_kind else object, casting="unsafe")  # numbers are not made words
        numbers = (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; for many labels the share of examples of which all observed ones are right, of those that have some."""
        (labels, missing), predictions = observed(near("y", y, may_lack=True)), near("predictions", self.predict(X))
        labels = np.asarray(labels.toarray() if is_sparse(labels) else labels)
        labels = labels.ravel() if predictions.ndim == 1 and labels.shape[1:] == (1,) else labels
        require_shape("y", labels, predictions.shape, why=" to match X")
        gone = np.zeros(labels.shape, dtype=np.bool_) if missing is None else missing.reshape(labels.shape)
        right, seen = (part.reshape(len(labels), -1) for part in ((labels == predictions) | gone, ~gone))
        right, rows = np.asarray(right.all(axis=1)), np.asarray(seen.any(axis=1))
        weights = None
        if sample_weight is not None:
            weights = weights_of(sample_weight, labels)
            rows = rows & (weights > 0.0)
        if not rows.any():
            raise InputError("y has no observed value to score")
        weights = None if weights is None else weights[rows]
        return float(accuracy_score(np.ones(int(rows.sum()), dtype=np.bool_), right[rows], sample_weight=weights))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array | list[Array]:
        """Return the logarithms of `predict_proba`."""
        return self._of_scores(X, self._log_probabilities_of)

    def _log_probabilities_of(self, scores: Array) -> Array | list[Array]:
        scores = self._decisions_of(scores)
        if self._is_per_task:
            return [of_two_classes(column) for column in scores.T]
        return of_two_classes(scores) if scores.ndim == 1 else of_one_against_all(scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array | list[Array]:
        """Return probabilities; only with the logistic loss.

        Of two classes they are 1 / (1 + exp(-score)) of the second, and what is missing to 1. Several classes have been learned one against
        all the others: their probabilities are divided by their sum.

        Returns
        -------
        Examples x classes, in the order of `classes_`. After a fit to many labels or tasks a list with an array, examples x 2, for each.
        """
        return self._of_scores(X, self._probabilities_of)

    def _probabilities_of(self, scores: Array) -> Array | list[Array]:
        logs = self._log_probabilities_of(scores)
        return [np.exp(each) for each in logs] if isinstance(logs, list) else np.exp(logs)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba_tasks(self, Xs: Sequence[Any]) -> list[Array]:
        """Return probabilities of the two labels of `predict_tasks` for examples of their own, n_k x 2, task by task."""
        return [np.exp(of_two_classes(scores)) for scores in self._task_scores(Xs)]

    def decision_function_tasks(self, Xs: Sequence[Any]) -> list[Array]:
        """Return scores for examples of their own, task by task."""
        return self._task_scores(Xs)

    def predict_tasks(self, Xs: Sequence[Any]) -> list[NDArray[Any]]:
        """Labels for examples of their own, task by task; for a task that is one class against all whether it is that class, 0 or 1."""
        scores, pairs = self._task_scores(Xs), self.classes_
        if not self._is_per_task:
            pairs = [pairs] if len(pairs) == 2 else [np.array([0, 1])] * len(pairs)
        return [pair[(s > 0.0).astype(np.intp)] for pair, s in zip(pairs, scores, strict=True)]

    def _score_of(self, y: NDArray[Any], predictions: NDArray[Any], weights: Any = None) -> float:
        return float(np.average(y == predictions, weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@linear_model
class HingeClassifier(LinearTaskClassifier):
    """A classifier with a choice of losses, by default hinges."""

    loss: str = field(default="hinge", kw_only=True)


@linear_model
class SquaresClassifier(LinearTaskClassifier):
    """A classifier with a choice of losses, by default squares."""

    loss: str = field(default="squared", kw_only=True)


def _pair(y: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the two labels of a task, ascending."""
    found = classes_of(y, name)[0]
    if len(found) != 2:
        what = f"only one class, {found.tolist()[0]!r}" if len(found) == 1 else f"{len(found)} classes"
        raise InputError(f"{name} has {what}: a task needs 2")
    return found


def require_lists(**values: Any) -> None:
    """Raises InputError where a value, by its name, is nothing that has an entry for each task."""
    for name, value in values.items():
        has_entries = hasattr(value, "__len__") and hasattr(value, "__getitem__")
        if not has_entries or isinstance(value, (str, bytes, Mapping)) or is_sparse(value):
            raise InputError(name, value, "a list with an entry for each task")


def of_two_classes(scores: Array) -> Array:
    """Return the logarithms of 1 / (1 + exp(score)) and 1 / (1 + exp(-score)), n x 2, for n scores of the second class."""
    return -np.logaddexp(0.0, np.stack([scores, -scores], axis=1))


def of_one_against_all(scores: Array) -> Array:
    """Return the logarithms of 1 / (1 + exp(-score)) over the sum of these over the classes, n x K: each class has been learned apart."""
    return np.asarray(log_softmax(-np.logaddexp(0.0, -scores), axis=1))
