"""The learners that are compared: group-sparse boosting under three norms, SAMME, ECOC over AdaBoost, AdaBoost.MH, all of stumps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers import Array
from papers.boosting.adaboost_mh import adaboost_mh

#: Stumps of any learner, at most.
MOST_STUMPS = 200
#: What is chosen from for the learners of ours: shares of the smallest penalty with which all weights are 0.
SHARES = (0.3, 0.1, 0.05, 0.02, 0.01)
#: The relative gap of our fits.
TOLERANCE = 1e-2
#: Words of a code, for every class.
CODE_SIZE = 2

Classes = NDArray[np.intp]
Predict = Callable[[Array], Classes]


class Machine(NamedTuple):
    """A fit."""

    predict: Predict
    cuts: frozenset[tuple[int, float]]  # of its stumps: feature and threshold
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Learner:
    """A learner with one parameter that is chosen on validation examples: a penalty, or the number of rounds."""

    title: str
    fit: Callable[[float, Array, Classes, int, int], Machine]
    """Of the parameter, the examples and their classes, the number of classes, and a seed."""
    tried: Callable[[Array, Classes, int, int, Array], Iterator[tuple[float, Classes]]]
    """Every value to choose from, the sparsest first, each with what a fit to these examples predicts of others."""


# Ours.


def _group_fit(norm: str, share: float, X: Array, y: Classes, classes: int, seed: int) -> Machine:
    from sklearn.exceptions import ConvergenceWarning

    from bench_mtl.estimators import GroupSparseBoostingClassifier
    from bench_mtl.weak_learners import Stumps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where there is room for no more stumps
        model = GroupSparseBoostingClassifier(f"{share:g} max", norm=norm, n_learners=MOST_STUMPS, tol=TOLERANCE, max_seconds=60.0)
        model.fit(X, y)
    assert isinstance(model.learners_, Stumps)
    used = np.count_nonzero(model.coef_ > 0.0, axis=1)
    details = {"relative_gap": model.gap_, "converged": model.converged_, "classes_a_stump": float(used.mean()) if len(used) else 0.0}
    return Machine(model.predict, _cuts(model.learners_.features, model.learners_.thresholds), details)


def _group_tried(norm: str, X: Array, y: Classes, classes: int, seed: int, others: Array) -> Iterator[tuple[float, Classes]]:
    for share in SHARES:
        yield share, _group_fit(norm, share, X, y, classes, seed).predict(others)


# The rivals. A number of rounds is chosen from all stages of one fit.


def _mh_fit(rounds: float, X: Array, y: Classes, classes: int, seed: int) -> Machine:
    votes = adaboost_mh(X, _signs(y, classes), int(rounds))
    return Machine(lambda Z: votes.staged_scores(Z)[-1].argmax(axis=1), _cuts(votes.stumps.features, votes.stumps.thresholds), {})


def _mh_tried(X: Array, y: Classes, classes: int, seed: int, others: Array) -> Iterator[tuple[float, Classes]]:
    return enumerate(adaboost_mh(X, _signs(y, classes), MOST_STUMPS).staged_scores(others).argmax(axis=2), start=1)


def _adaboost(rounds: int, seed: int) -> Any:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=rounds, random_state=seed)


def _samme_fit(rounds: float, X: Array, y: Classes, classes: int, seed: int) -> Machine:
    model = _adaboost(int(rounds), seed).fit(X, y)
    return Machine(model.predict, _tree_cuts(model.estimators_), {})


def _samme_tried(X: Array, y: Classes, classes: int, seed: int, others: Array) -> Iterator[tuple[float, Classes]]:
    return enumerate(_adaboost(MOST_STUMPS, seed).fit(X, y).staged_predict(others), start=1)


def _code(rounds: int, X: Array, y: Classes, seed: int) -> Any:
    from sklearn.multiclass import OutputCodeClassifier

    return OutputCodeClassifier(_adaboost(rounds, seed), code_size=CODE_SIZE, random_state=seed).fit(X, y)


def _ecoc_fit(rounds: float, X: Array, y: Classes, classes: int, seed: int) -> Machine:
    model = _code(int(rounds), X, y, seed)
    stumps = [tree for each in model.estimators_ for tree in getattr(each, "estimators_", ())]  # none for a word that is constant
    return Machine(model.predict, _tree_cuts(stumps), {})


def _ecoc_tried(X: Array, y: Classes, classes: int, seed: int, others: Array) -> Iterator[tuple[float, Classes]]:
    """Yield a few numbers of rounds a word, up to the largest with which all words have at most `MOST_STUMPS` stumps together."""
    most = max(1, MOST_STUMPS // (CODE_SIZE * classes))
    for rounds in sorted({max(1, round(most * share)) for share in (0.0, 0.25, 0.5, 1.0)}):
        yield rounds, _code(rounds, X, y, seed).predict(others)


def _signs(y: Classes, classes: int) -> Array:
    return np.where(y[:, None] == np.arange(classes), 1.0, -1.0)


def _cuts(features: Any, thresholds: Any) -> frozenset[tuple[int, float]]:
    return frozenset(zip(map(int, features), map(float, thresholds), strict=True))


def _tree_cuts(trees: Any) -> frozenset[tuple[int, float]]:
    """Return the cuts of trees of depth 1; a tree may be a leaf."""
    return frozenset((int(tree.tree_.feature[0]), float(tree.tree_.threshold[0])) for tree in trees if tree.tree_.node_count > 1)


_OURS = {"l12": "group-sparse, l1,2", "l1inf": "group-sparse, l1,inf", "l1": "L1-AdaBoost"}
LEARNERS: Mapping[str, Learner] = {
    **{norm: Learner(title, partial(_group_fit, norm), partial(_group_tried, norm)) for norm, title in _OURS.items()},
    "samme": Learner("SAMME", _samme_fit, _samme_tried),
    "ecoc": Learner("ECOC", _ecoc_fit, _ecoc_tried),
    "mh": Learner("AdaBoost.MH", _mh_fit, _mh_tried),
}
