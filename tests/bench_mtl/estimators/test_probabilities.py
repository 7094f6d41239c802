"""Probabilities of classifiers with the logistic loss, in the shapes that scikit-learn knows, and none with other losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import bench_mtl.estimators
from bench_mtl.estimators import DirtyClassifier, L1InfClassifier, OneNormClassifier
from bench_mtl.estimators.linear import LinearTaskClassifier
from bench_mtl.estimators.probabilities import of_one_against_all, of_two_classes

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4))
SCORES = X @ RNG.standard_normal((4, 3)) + 0.5 * RNG.standard_normal((50, 3))
LABELS = (SCORES > 0.0).astype(int)
CLASSES = np.array(["a", "b", "c"])[SCORES.argmax(axis=1)]
MODEL = L1InfClassifier(3.0, loss="logistic", fit_intercept=True)

LINEAR = [
    each
    for each in (getattr(bench_mtl.estimators, name) for name in bench_mtl.estimators.__all__)
    if is_classifier(each()) and issubclass(each, LinearTaskClassifier)
]


def test_of_two_classes() -> None:
    y = np.array(["no", "yes"])[LABELS[:, 0]]
    model = MODEL.fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-model.decision_function(X))))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


def test_of_several_classes() -> None:
    model = MODEL.fit(X, CLASSES)
    alone = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
    p = model.predict_proba(X)
    np.testing.assert_allclose(p, alone / alone.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert log_loss(CLASSES, p) < np.log(3.0)


def test_of_many_labels_and_of_tasks_with_rows_of_their_own() -> None:
    model = MODEL.fit(X, LABELS)
    scores = model.decision_function(X)
    assert scores.shape == (50, 3)
    for k, (p, logs) in enumerate(zip(model.predict_proba(X), model.predict_log_proba(X), strict=True)):
        assert p.shape == (50, 2)
        np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-scores[:, k])))
        np.testing.assert_allclose(np.log(p), logs)
    model.fit_tasks([X[:20], X[20:]], [LABELS[:20, 0], np.array(["no", "yes"])[LABELS[20:, 1]]])
    first, second = model.predict_proba_tasks([X[:7], X])
    assert (first.shape, second.shape) == ((7, 2), (50, 2))
    np.testing.assert_array_equal(model.classes_[1][second.argmax(axis=1)], model.predict_tasks([X[:7], X])[1])
    np.testing.assert_allclose(second, model.predict_proba(X)[1])


@pytest.mark.filterwarnings("error")
def test_of_scores_far_from_0() -> None:
    far = np.array([-1000.0, 0.0, 1000.0])
    logs = of_two_classes(far)
    np.testing.assert_allclose(logs, [[0.0, -1000.0], [-np.log(2.0)] * 2, [-1000.0, 0.0]])
    none = of_one_against_all(np.array([[-1000.0, -1001.0], [1000.0, -1000.0]]))
    np.testing.assert_allclose(np.exp(none).sum(axis=1), 1.0)
    assert np.isfinite(none).all()


@pytest.mark.parametrize("kind", LINEAR, ids=lambda kind: kind.__name__)
def test_only_the_logistic_loss_has_any(kind: Any) -> None:
    for loss in ("hinge", "squared", "squared_hinge", "logistic"):
        model = kind(loss=loss) if "loss" in kind().get_params() else kind()
        is_there = model.loss == "logistic"
        for method in ("predict_proba", "predict_log_proba", "predict_proba_tasks"):
            assert hasattr(model, method) == is_there
        if not is_there:
            with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
                model.predict_proba(X)
            assert str(caught.value.__cause__) == (
                f"{kind.__name__} has probabilities with loss='logistic', and none with the loss {model.loss!r}"
            )


def test_scores_of_scikit_learn_take_what_there_is() -> None:
    logistic = DirtyClassifier(loss="logistic")
    assert cross_val_score(logistic, X, CLASSES, scoring="neg_log_loss", cv=2).min() > -1.1
    assert cross_val_score(logistic, X, LABELS, scoring="roc_auc", cv=2).min() > 0.7  # of many labels, by the decision function
    assert cross_val_score(OneNormClassifier(), X, LABELS[:, 0], scoring="average_precision", cv=2).min() > 0.7
