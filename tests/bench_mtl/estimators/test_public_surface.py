"""What a reader of `help()` and of an error message sees of the public estimators, and which have probabilities."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import bench_mtl.estimators
from bench_mtl.estimators import DirtyClassifier, DirtyRegressor, L1InfClassifier, OneNormClassifier
from bench_mtl.estimators.linear import LinearTaskClassifier, of_one_against_all, of_two_classes

ESTIMATORS = [getattr(bench_mtl.estimators, name) for name in bench_mtl.estimators.__all__]

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4))
SCORES = X @ RNG.standard_normal((4, 3)) + 0.5 * RNG.standard_normal((50, 3))
LABELS = (SCORES > 0.0).astype(int)
CLASSES = np.array(["a", "b", "c"])[SCORES.argmax(axis=1)]


@every_estimator
def test_the_docstring_lists_every_parameter(estimator: Any) -> None:
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\w[^\n]*\n-+\n|\Z)", inspect.getdoc(estimator) or "", re.DOTALL)
    assert section is not None
    headings = [line for line in section[1].splitlines() if line and not line.startswith(" ")]
    assert sorted(name for line in headings for name in line.split(" : ")[0].split(", ")) == sorted(estimator().get_params())


@every_estimator
def test_calls_print_and_notebooks(estimator: Any) -> None:
    """A model's own parameters come first, unknown ones are refused in its name, it prints in two lines at most, and as a page."""
    with pytest.raises(TypeError, match=rf"^{estimator.__name__}\.__init__\(\) got an unexpected keyword argument 'gamma'"):
        estimator(gamma=1.0)
    shared = ("fit_intercept", "intercept_scaling", "solver", "solver_options", "tol", "max_iter", "max_seconds")
    is_shared = [name in shared for name in inspect.signature(estimator).parameters if name != "random_state"]
    assert is_shared == sorted(is_shared)
    assert repr(estimator()) == f"{estimator.__name__}()"
    changed = estimator(**{name: f"a long text that is the value of {name}" for name in estimator().get_params()})
    first, second = repr(changed).splitlines()
    assert first.startswith(f"{estimator.__name__}(")
    assert second.endswith(" ...)")
    assert max(len(first), len(second)) <= 100
    page = estimator()._repr_html_()
    assert all(name in page for name in (estimator.__name__, *estimator().get_params()))


def test_tasks_have_the_names_of_their_columns() -> None:
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    Y = pd.DataFrame(SCORES[:, :2], columns=["left", "right"], index=frame.index)
    model = DirtyRegressor().fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.task_names_.tolist() == ["left", "right"]
    assert not hasattr(model.fit(frame, Y.to_numpy()), "task_names_")
    assert not hasattr(model.fit(frame, Y).fit_tasks([frame, frame], [Y["left"], Y["right"]]), "task_names_")
    assert not hasattr(model.fit(frame, Y.set_axis([0, 1], axis=1)), "task_names_")
    labels = OneNormClassifier().fit(frame, Y > 0.0)
    assert labels.task_names_.tolist() == ["left", "right"]
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        assert not hasattr(labels.fit(frame, pd.DataFrame({"class": CLASSES})), "task_names_")  # its tasks are the classes


# Probabilities


def test_probabilities() -> None:
    model = L1InfClassifier(3.0, loss="logistic")
    y = np.array(["no", "yes"])[LABELS[:, 0]]
    for targets in (y, CLASSES):
        p = model.fit(X, targets).predict_proba(X)
        alone = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
        expected = np.stack([1.0 - alone, alone], axis=1) if alone.ndim == 1 else alone / alone.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(p, expected)
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert log_loss(CLASSES, p) < np.log(3.0)
    scores = model.fit(X, LABELS).decision_function(X)
    for k, (p, logs) in enumerate(zip(model.predict_proba(X), model.predict_log_proba(X), strict=True)):
        np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-scores[:, k])))
        np.testing.assert_allclose(np.log(p), logs)
    model.fit_tasks([X[:20], X[20:]], [LABELS[:20, 0], np.array(["no", "yes"])[LABELS[20:, 1]]])
    first, second = model.predict_proba_tasks([X[:7], X])
    assert (first.shape, second.shape) == ((7, 2), (50, 2))
    np.testing.assert_array_equal(model.classes_[1][second.argmax(axis=1)], model.predict_tasks([X[:7], X])[1])
    np.testing.assert_allclose(second, model.predict_proba(X)[1])


@pytest.mark.filterwarnings("error")
def test_probabilities_of_scores_far_from_0() -> None:
    np.testing.assert_allclose(of_two_classes(np.array([-1000.0, 0.0, 1000.0])), [[0.0, -1000.0], [-np.log(2.0)] * 2, [-1000.0, 0.0]])
    none = of_one_against_all(np.array([[-1000.0, -1001.0], [1000.0, -1000.0]]))
    np.testing.assert_allclose(np.exp(none).sum(axis=1), 1.0)
    assert np.isfinite(none).all()


@every_estimator
def test_only_the_logistic_loss_has_probabilities(estimator: Any) -> None:
    if not (is_classifier(estimator()) and issubclass(estimator, LinearTaskClassifier)):
        return
    for loss in ("hinge", "squared", "squared_hinge", "logistic"):
        model = estimator(loss=loss) if "loss" in estimator().get_params() else estimator()
        for method in ("predict_proba", "predict_log_proba", "predict_proba_tasks"):
            assert hasattr(model, method) == (model.loss == "logistic")
        if model.loss != "logistic":
            with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
                model.predict_proba(X)
            message = f"{estimator.__name__} has probabilities with loss='logistic', and none with the loss {model.loss!r}"
            assert str(caught.value.__cause__) == message


def test_scores_of_scikit_learn_take_what_there_is() -> None:
    logistic = DirtyClassifier(loss="logistic")
    assert cross_val_score(logistic, X, CLASSES, scoring="neg_log_loss", cv=2).min() > -1.1
    assert cross_val_score(logistic, X, LABELS, scoring="roc_auc", cv=2).min() > 0.7  # of many labels, by the decision function
