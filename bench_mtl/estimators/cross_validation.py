"""Cross-validation along regularisation paths, every fit of it proven: `PathCV`, and for which of the plain models there is one."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY
from functools import cache, partial
from inspect import signature
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, _num_samples

from bench_mtl.core.checks import is_sparse, number_or_share, one_of, real_number, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data import TaskData
from bench_mtl.data.readers.common import naming
from bench_mtl.engine.proofs import format_gap
from bench_mtl.estimators import models
from bench_mtl.estimators.distant import near
from bench_mtl.estimators.examples import fitting, observed
from bench_mtl.estimators.fitting import whole_or_as_before
from bench_mtl.estimators.linear import (
    Examples,
    HingeClassifier,
    LinearTaskRegressor,
    LossRegressor,
    SquaresClassifier,
    linear_model,
    require_lists,
)
from bench_mtl.estimators.solved import SolvedTasks, Specification
from bench_mtl.model.intercepts import centred
from bench_mtl.model.norms import L1, L1Inf, Norm, Trace

#: How many values a grid has where nobody says, and each of two parameters that are chosen together.
_VALUES, _OF_TWO = 10, 5
#: The smallest value of a grid over the largest one, of penalties and of radii. The largest radius is the norm under the smallest penalty.
_PENALTIES, _RADII = 1e-3, 1e-2
#: How a setting is chosen.
_SELECTIONS = ("best", "one_standard_error")
#: Parameters of the last fit alone.
_OF_LAST_FIT = ("callback", "warm_start")
#: The relative gap to which that fit is solved.
_OF_LARGEST = 1e-2


class Fold(NamedTuple):
    """A part of the examples that is left out."""

    read: Callable[[Any], Examples]
    """Has a model read all the others."""
    score: Callable[[Any], float]
    """Scores a fitted model on those left out."""


@linear_model
class PathCV(SolvedTasks):
    """A linear model whose regularisation is chosen by cross-validation.

    In every fold a path of fits goes from the simplest setting to the richest; each fit begins at the solution of the one before and ends
    when its own gap is proven (`bench_mtl.engine.regularisation_path`). The setting with the best mean score is fitted to all examples.

    A grid is a list of values, or a number of them, which are even on a log scale: penalties go down from the smallest with which what they
    penalise can be 0, and radii up to the norm of the coefficients under a thousandth of that penalty. Penalties may be shares of that
    largest one, such as "0.1 max". A list may have a single value. The value chosen has the name of its parameter, such as `radius_`, and
    `radius_grid_` has the values of the settings, one a row of `cv_scores_`.

    Parameters
    ----------
    grid_ratio : float, optional
        Where a grid is given as a number of values, its smallest value over its largest one, between 0 and 1; by default 0.001 for
        penalties and 0.01 for radii.
    cv : int, splitter or iterable, optional
        As in scikit-learn: a number of folds (5 by default; of classes in equal shares, rows in their order), a splitter, or pairs of rows
        to fit to and rows to score on.
    scoring : str or callable, optional
        As in scikit-learn; by default `score`, which takes targets that are not all observed.
    selection : {"best", "one_standard_error"}
        The setting with the best mean score; or the simplest one whose mean is at most one standard error of the best mean below it. Of
        two parameters that are chosen together the simplest setting has the smallest sum of its places in both grids.
    n_jobs : int, optional
        Folds that are fitted at a time, by joblib; as in scikit-learn. The numbers are the same.
    callback : callable, optional
        Of the last fit, the one to all examples.

    Attributes
    ----------
    cv_scores_ : ndarray, settings x folds
    cv_gaps_ : ndarray, settings x folds
        The proven relative gap of every fit.
    cv_converged_ : ndarray of bool, settings x folds
        Whether it is within `tol`. If one is not, there is a ConvergenceWarning.
    best_index_ : int
        The setting chosen; of equal ones the simplest.
    best_score_ : float
        Its mean score.
    best_params_ : dict
        The parameters of that setting.
    """

    _: KW_ONLY
    grid_ratio: float | None = None
    cv: Any = None
    scoring: Any = None
    selection: str = "best"
    n_jobs: int | None = None

    takes_shards = False  # folds are of rows

    plain: ClassVar[type[Any]]
    """The model without the choice."""
    tuned: ClassVar[tuple[str, ...]]
    """Its parameters that are chosen, each from the grid of its name; paths go along the last one."""
    are_alternatives: ClassVar[bool] = False
    """Whether only one of them is chosen, by default the first."""
    norm: ClassVar[Norm]
    """What a radius bounds."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the parameters, and find the coefficients, for targets or labels of the same examples.

        Parameters
        ----------
        X, y : as the plain model takes them
        sample_weight : as the plain model takes it; scores are weighted too
        groups : of the examples, for a splitter that keeps those of a group together, such as `GroupKFold`

        Raises
        ------
        InputError : a ValueError; what the plain model refuses, in a fold too, which is named; a grid, `cv` or `scoring` that is not
            allowed.
        """
        with whole_or_as_before(self):
            examples = self._read(X, y, sample_weight)
            X, y, groups = indexable(X, near("y", y, may_lack=True), groups)
            weights = None if sample_weight is None else np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
            scorer = self._scorer(weights is not None)

            def fold(f: int, rows: NDArray[np.intp], others: NDArray[np.intp]) -> Fold:
                if weights is not None and not weights[others].any():
                    raise InputError(f"cv: the examples to score on in fold {f} have no weight")
                weighed, options = (None, {}) if weights is None else (weights[rows], {"sample_weight": weights[others]})
                return Fold(
                    lambda model: model._read(_safe_indexing(X, rows), _safe_indexing(y, rows), weighed),
                    lambda model: float(scorer(model, _safe_indexing(X, others), _safe_indexing(y, others), **options)),
                )

            self._choose(examples.data, [fold(f, *split) for f, split in enumerate(self._splits(X, y, groups))])
            return self._learn(examples)

    def fit_tasks(
        self, Xs: Sequence[Any], ys: Sequence[Any], sample_weight: Sequence[Any] | None = None, groups: Sequence[Any] | None = None
    ) -> Self:
        """Do the same for tasks that have examples of their own: a fold leaves out some of each task's.

        Parameters
        ----------
        Xs, ys : as the plain model takes them
        sample_weight : None, since the scores of tasks have no weights
        groups : for each task those of its examples

        Raises
        ------
        InputError : as `fit` does, the task is named; weights, a `scoring` (the score is `score_tasks`), a `cv` of rows.
        """
        if sample_weight is not None:
            raise InputError("sample_weight must be None: the scores of tasks with rows of their own have no weights")
        with whole_or_as_before(self):
            examples = self._read_tasks(Xs, ys, None)
            if self.scoring is not None:
                raise InputError("scoring must be None for tasks with rows of their own: their score is score_tasks")
            if not (self.cv is None or isinstance(self.cv, Integral) or hasattr(self.cv, "split")):
                raise InputError("cv must be a number of folds or a splitter for tasks with rows of their own")
            pairs = [indexable(X, near("y", y, may_lack=True)) for X, y in zip(Xs, ys, strict=True)]
            groups = [None] * len(pairs) if groups is None else groups
            require_lists(groups=groups)
            if len(groups) != len(pairs):
                raise InputError("groups", len(groups), f"have an entry for each of the {len(pairs)} tasks")
            splits = [self._splits(X, y, of_task) for (X, y), of_task in zip(pairs, groups, strict=True)]
            if len({len(each) for each in splits}) > 1:
                raise InputError(f"cv must give every task as many folds, not {', '.join(str(len(each)) for each in splits)}")
            if is_regressor(self) and any(all(len(split[f][1]) == 1 for split in splits) for f in range(len(splits[0]))):
                raise InputError("cv must leave two examples of a task at least to score in each fold: of one there is no R^2")

            def parts(f: int, side: int) -> list[list[Any]]:
                rows = [split[f][side] for split in splits]
                return [[_safe_indexing(pair[i], some) for pair, some in zip(pairs, rows, strict=True)] for i in (0, 1)]

            def fold(f: int) -> Fold:
                return Fold(lambda model: model._read_tasks(*parts(f, 0), None), lambda model: model.score_tasks(*parts(f, 1)))

            self._choose(examples.data, [fold(f) for f in range(len(splits[0]))])
            return self._learn(examples)

    def _specification(self) -> Specification:
        """Return the problem at the chosen parameters."""
        return self._model(self.best_params_)._specification()

    def _model(self, values: Mapping[str, Any]) -> Any:
        """Return the plain model with these parameters and, for the rest, those that it shares with this one in every fit."""
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in self.plain().get_params(deep=False) if name in own and name not in _OF_LAST_FIT}
        return self.plain(**{**shared, **values})

    def _splits(self, X: Any, y: Any, groups: Any) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Return rows to fit to and rows to score on, fold by fold."""
        try:
            table = observed(y)[0]  # which scikit-learn need not look at where it has columns
            has_columns = np.ndim(table) == 2 and np.shape(table)[1] > 1
            folds = check_cv(5 if self.cv is None else self.cv, table, classifier=is_classifier(self) and not has_columns)
            splits = [(np.asarray(rows), np.asarray(others)) for rows, others in folds.split(X, table, groups)]
        except (TypeError, ValueError) as error:
            raise InputError(f"cv: {error}") from None
        if not splits:
            raise InputError("cv gives no folds: it is empty, or an iterator that an earlier fit has used up")
        n = _num_samples(X)
        for part in itertools.chain(*splits):
            is_mask, is_of_numbers = part.dtype == np.bool_ and part.shape == (n,), part.ndim == 1 and part.dtype.kind in "iu"
            if not (is_mask or (is_of_numbers and np.all((part >= -n) & (part < n)))):
                raise InputError(f"cv must give rows of the {n} examples")
            if not (part.any() if is_mask else len(part)):
                raise InputError("cv must leave rows to fit to and rows to score on in each fold")
        return splits

    def _scorer(self, is_weighted: bool) -> Callable[..., float]:
        """Return what scores a model, and says so if it cannot weigh examples that are weighted; by all classes, which a fold may lack."""
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise InputError("scoring", self.scoring, "the name of a score, a callable, or None")
        try:
            scorer: Any = check_scoring(self._model({}), self.scoring)
        except ValueError as error:
            raise InputError(f"scoring: {error}") from None
        if is_weighted and self.scoring is not None and "sample_weight" not in signature(scorer).parameters:
            raise InputError("scoring must take a keyword sample_weight where examples are weighted")
        asked, classes = getattr(scorer, "_response_method", ()), getattr(self, "classes_", None)
        if not isinstance(classes, np.ndarray) or "predict_proba" not in asked or "labels" not in signature(scorer._score_func).parameters:
            return scorer
        options = {"greater_is_better": scorer._sign > 0, "response_method": asked, "labels": classes, **scorer._kwargs}
        return make_scorer(scorer._score_func, **options)

    # Grids

    def _grids(self, data: TaskData) -> dict[str, Array]:
        """Return the values of every parameter that is chosen, from the simplest fit to the richest."""
        grids = {name: getattr(self, f"{name}_grid") for name in self.tuned}
        if self.are_alternatives:
            grids = {name: grid for name, grid in grids.items() if grid is not None}
            if len(grids) > 1:
                raise InputError(f"give at most one of {' and '.join(f'{name}_grid' for name in grids)}")
            grids = grids or {self.tuned[0]: _VALUES}
        return {name: self._values(name, grid, cache(partial(self._largest, name, data))) for name, grid in grids.items()}

    def _values(self, parameter: str, grid: Any, largest: Callable[[], float]) -> Array:
        """Return the values of a grid, each once: radii rise, penalties fall. Where it is a number of values these are even on a log scale.

        `largest` computes the largest value where it is needed; where it is 0 all values give the same fit, and 1 is in its place.
        """
        name, is_penalty = f"{parameter}_grid", parameter != "radius"
        ratio = _PENALTIES if is_penalty else _RADII
        if self.grid_ratio is not None:
            ratio = real_number("grid_ratio", self.grid_ratio, strict=True, below=1.0)
        if isinstance(grid, (int, np.integer)):
            count, top = whole_number(name, grid, minimum=2), largest() or 1.0
            values = np.geomspace(ratio * top, top, count)
        elif isinstance(grid, (str, bytes, Mapping)) or is_sparse(grid) or not isinstance(grid, Iterable):
            raise InputError(name, grid, "a number of values or a list of values")
        else:
            read = (number_or_share(name, value, largest) if is_penalty else real_number(name, value) for value in grid)
            values = np.array(sorted(set(read)))
        if not len(values):
            raise InputError(name, 0, "have at least one value")
        return values[::-1] if is_penalty else values

    def _largest(self, name: str, data: TaskData) -> float:
        """Return the largest value of a grid: the smallest penalty with which what it penalises can be 0, that is "1 max"; of radii the
        norm of the coefficients under a thousandth of that."""
        if name != "radius":
            return float(getattr(self._model({name: "1 max"})._specification_for(data).on(data), name))
        model = self._penalised(f"{_PENALTIES} max").set_params(tol=_OF_LARGEST, max_iter=self.max_iter, max_seconds=self.max_seconds)
        least = model._specification_for(data).on(data).penalty
        return self.norm.value(model.set_params(penalty=least)._fit_data(data).coefficients) if least > 0.0 else 0.0

    def _penalised(self, penalty: str) -> Any:
        """Return the model with a penalty in place of the radius."""
        return self._model({"penalty": penalty, "solver": None, "solver_options": None})

    # The choice

    def _choose(self, data: TaskData, folds: Sequence[Fold]) -> None:
        """Fit and score every setting in every fold, and keep the best."""
        one_of("selection", self.selection, _SELECTIONS)
        if len(folds) < 2 and self.selection != _SELECTIONS[0]:
            raise InputError("selection must be 'best' with a single fold, whose scores have no standard error")
        with fitting(data):
            grids = self._grids(data)
            settings = [dict(zip(grids, map(float, values), strict=True)) for values in itertools.product(*grids.values())]
            length = len(grids[next(reversed(grids))])
            paths = [settings[start : start + length] for start in range(0, len(settings), length)]
            reader, classes = self._model(settings[0]), getattr(self, "classes_", None)
            jobs = (delayed(_outcomes)(f, fold, paths, reader, classes) for f, fold in enumerate(folds))
            outcomes = Parallel(n_jobs=self.n_jobs)(jobs)
        self.cv_scores_, self.cv_gaps_, met = np.array(outcomes).transpose(2, 1, 0)
        self.cv_converged_ = met.astype(bool)
        means = self.cv_scores_.mean(axis=1)
        missing = np.count_nonzero(np.isnan(means))
        if missing == len(means):
            raise InputError("scoring gives no number for any setting: each has a fold whose score is NaN")
        if missing:
            message = f"{missing} of the {len(means)} settings have a fold whose score is NaN, and are not chosen"
            warnings.warn(message, UserWarning, stacklevel=3)
        places = np.indices([len(grid) for grid in grids.values()]).reshape(len(grids), -1).sum(axis=0)
        least = np.nanmax(means)
        self.best_index_ = _simplest(places, means >= least)
        if self.selection == "one_standard_error":
            scores = self.cv_scores_[self.best_index_]
            self.best_index_ = _simplest(places, means >= least - scores.std(ddof=1) / np.sqrt(len(scores)))
        self.best_score_, self.best_params_ = float(means[self.best_index_]), settings[self.best_index_]
        for name in self.tuned:
            self.__dict__.pop(f"{name}_", None)
            self.__dict__.pop(f"{name}_grid_", None)
        for name, value in self.best_params_.items():
            setattr(self, f"{name}_", value)
            setattr(self, f"{name}_grid_", np.array([setting[name] for setting in settings]))
        if not self.cv_converged_.all():
            unmet, largest = np.count_nonzero(~self.cv_converged_), format_gap(self.cv_gaps_.max())
            message = f"{unmet} of the {self.cv_gaps_.size} fits in folds ended above tol = {self.tol:g}: proven gaps reach {largest}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)


def _simplest(places: NDArray[np.intp], are_good: NDArray[np.bool_]) -> int:
    """Return the good setting with the smallest sum of places in the grids, the first of equal ones."""
    good = np.flatnonzero(are_good)
    return int(good[np.argmin(places[good])])


def _outcomes(
    f: int, fold: Fold, paths: Sequence[Sequence[Mapping[str, float]]], reader: Any, classes: Any
) -> list[tuple[float, float, bool]]:
    """Return the score, the gap and whether it is met of every setting in fold f, in their order, for a model that knows these classes."""
    reader, along, found = copy.copy(reader), list(paths[0][0])[-1], list[tuple[float, float, bool]]()
    if classes is not None:
        reader._classes_of_all = classes if isinstance(classes, list) else [classes]
    with naming(f"fold {f}"):
        examples = fold.read(reader)
        with fitting(examples.data):
            for path in paths:
                fits = copy.copy(reader).set_params(**path[0])._fit_path(examples.data, along, [setting[along] for setting in path])
                for setting in path:
                    model, fitted = copy.copy(reader).set_params(**setting), fits[setting[along]]
                    model._keep(fitted, examples)
                    _know(model, classes)
                    found.append((fold.score(model), fitted.certificate.relative_gap, fitted.is_met))
    return found


def _know(model: Any, classes: Any) -> None:
    """Have a fitted model of a fold know several classes: those that it has not seen have a score of -inf, and probability 0."""
    if not isinstance(classes, np.ndarray) or len(model.classes_) == len(classes):
        return
    W, b = model.coef_, model.intercept_
    if len(W) == 1:
        W, b = np.concatenate([-W, W]), np.concatenate([-b, b])
    places = np.searchsorted(classes, model.classes_)
    model.coef_, model.intercept_, model.classes_ = np.zeros((len(classes), W.shape[1])), np.full(len(classes), -np.inf), classes
    model.coef_[places], model.intercept_[places] = W, b


@linear_model
class _NormedCV(PathCV, models.Ridged):
    """
    Parameters
    ----------
    radius_grid, penalty_grid : int or list
        At most one of the two; 10 radii where there is none.
    """

    radius_grid: Any = None
    penalty_grid: Any = None

    tuned, are_alternatives = ("radius", "penalty"), True

    def _grids(self, data: TaskData) -> dict[str, Array]:
        asked = [
            name
            for name, default in (("ridge", 0.0), ("feature_factors", None))
            if not models.is_default(getattr(self, name, default), default)
        ]
        if asked and self.penalty_grid is None and self.loss != "hinge":
            raise InputError(f"{' and '.join(asked)} must be left out with radii: give penalty_grid in place of radius_grid")
        return super()._grids(data)


@linear_model
class _L1InfCV(_NormedCV, models.Factored, models.Reduced):
    norm = L1Inf()


@linear_model
class L1InfRegressorCV(_L1InfCV, LossRegressor):
    """`L1InfRegressor` with a radius, or a penalty, chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.preprocessing import scale
    >>> from bench_mtl.estimators import L1InfRegressorCV
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = L1InfRegressorCV(radius_grid=4, cv=3).fit(scale(X), scale(Y))
    >>> model.cv_scores_.shape, bool(model.cv_gaps_.max() <= 1e-3), bool(model.radius_ == model.radius_grid_[model.best_index_])
    ((4, 3), True, True)
    """

    plain = models.L1InfRegressor


@linear_model
class L1InfClassifierCV(_L1InfCV, HingeClassifier):
    plain = models.L1InfClassifier


@linear_model
class _L1BallCV(PathCV):
    """The norm is the largest one of a task; for the hinge it is that of least squares of the labels."""

    radius_grid: Any = _VALUES

    tuned, norm = ("radius",), L1("task")

    def _largest(self, name: str, data: TaskData) -> float:
        """Data that were read for hinges are not centred, as squares take them."""
        is_off = self.loss == "hinge" and self.fit_intercept and data.weights is None and not data.design.is_sparse
        return super()._largest(name, centred(data)[0] if is_off else data)

    def _penalised(self, penalty: str) -> SolvedTasks:
        """Hinges have no penalised problem of their own: squares of the same labels tell how long coefficients are."""
        self._model({})._specification()  # refuses an unknown loss by the names of this model
        return models.OneNormClassifier(penalty, loss="squared" if self.loss == "hinge" else self.loss, fit_intercept=self.fit_intercept)


@linear_model
class L1BallRegressorCV(_L1BallCV, LinearTaskRegressor):
    plain = models.L1BallRegressor


@linear_model
class L1BallClassifierCV(_L1BallCV, HingeClassifier):
    plain = models.L1BallClassifier


@linear_model
class TraceNormRegressorCV(_NormedCV, LossRegressor):
    plain, norm = models.TraceNormRegressor, Trace()


@linear_model
class TraceNormClassifierCV(_NormedCV, SquaresClassifier):
    plain, norm = models.TraceNormClassifier, Trace()


@linear_model
class _SparseLowRankCV(PathCV):
    """Each pair of values is a setting. Radii go up to the trace norm of the coefficients of `TraceNormRegressor`. A path goes along the
    radii, for every penalty.
    """

    penalty_grid: Any = _OF_TWO
    radius_grid: Any = _OF_TWO

    tuned, norm = ("penalty", "radius"), Trace()

    def _penalised(self, penalty: str) -> SolvedTasks:
        """Return the low-rank part alone."""
        low_rank = models.TraceNormRegressor if self._is_numeric else models.TraceNormClassifier
        return low_rank(penalty=penalty, loss=self.loss, fit_intercept=self.fit_intercept)

    def _largest(self, name: str, data: TaskData) -> float:
        """Of penalties the largest entry of the gradient at 0: the plain model takes no shares."""
        if name == "radius":
            return super()._largest(name, data)
        return float(np.abs(self._model({})._specification_for(data).on(data).gradient_at_zero()).max())


@linear_model
class SparseLowRankRegressorCV(_SparseLowRankCV, LossRegressor):
    plain = models.SparseLowRankRegressor


@linear_model
class SparseLowRankClassifierCV(_SparseLowRankCV, SquaresClassifier):
    plain = models.SparseLowRankClassifier


@linear_model
class _DirtyCV(PathCV, models.Reduced):
    """Each pair of values is a setting. A path goes along the penalties of entries, for every one of rows. In part of the settings one
    of the two parts is 0: see `DirtyRegressor`.
    """

    row_penalty_grid: Any = _OF_TWO
    entry_penalty_grid: Any = _OF_TWO

    tuned = ("row_penalty", "entry_penalty")


@linear_model
class DirtyRegressorCV(_DirtyCV, LossRegressor):
    plain = models.DirtyRegressor


@linear_model
class DirtyClassifierCV(_DirtyCV, SquaresClassifier):
    plain = models.DirtyClassifier
