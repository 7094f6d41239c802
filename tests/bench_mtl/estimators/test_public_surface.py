"""What a reader of `help()` and of an error message sees of the public estimators."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline

import bench_mtl.estimators
from bench_mtl.estimators import DirtyRegressor, L1InfClassifier, L1InfRegressor, OneNormClassifier

ESTIMATORS = [getattr(bench_mtl.estimators, name) for name in bench_mtl.estimators.__all__]

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)


@every_estimator
def test_the_docstring_lists_every_parameter(estimator: Any) -> None:
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\w[^\n]*\n-+\n|\Z)", inspect.getdoc(estimator) or "", re.DOTALL)
    assert section is not None
    headings = [line for line in section[1].splitlines() if line and not line.startswith(" ")]
    assert sorted(name for line in headings for name in line.split(" : ")[0].split(", ")) == sorted(estimator().get_params())


@every_estimator
def test_an_unknown_keyword_is_refused_in_the_name_of_the_public_class(estimator: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{estimator.__name__}\.__init__\(\) got an unexpected keyword argument 'gamma'"):
        estimator(gamma=1.0)


@every_estimator
def test_what_a_model_has_of_its_own_comes_before_what_all_share(estimator: Any) -> None:
    shared = ("fit_intercept", "intercept_scaling", "solver", "solver_options", "tol", "max_iter", "max_seconds")
    is_shared = [name in shared for name in inspect.signature(estimator).parameters if name != "random_state"]
    assert is_shared == sorted(is_shared)


@every_estimator
def test_it_prints_in_two_lines_at_most(estimator: Any) -> None:
    assert repr(estimator()) == f"{estimator.__name__}()"
    changed = estimator(**{name: f"a long text that is the value of {name}" for name in estimator().get_params()})
    lines = repr(changed).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{estimator.__name__}(")
    assert lines[1].endswith(" ...)")
    assert max(map(len, lines)) <= 100


def test_what_fits_into_two_lines_is_printed_whole() -> None:
    model = L1InfClassifier(
        radius=3.0, reduction="sum", loss="logistic", solver="working_set", solver_options={"memory_gib": 2.0}, tol=1e-6
    )
    assert " ".join(repr(model).split()) == (
        "L1InfClassifier(loss='logistic', radius=3.0, reduction='sum', solver='working_set', solver_options={'memory_gib': 2.0}, tol=1e-06)"
    )
    assert "L1InfClassifier(radius=3.0)" in repr(make_pipeline(L1InfClassifier(radius=3.0)))


@every_estimator
def test_notebooks_show_it(estimator: Any) -> None:
    page = estimator()._repr_html_()
    assert estimator.__name__ in page
    for name in estimator().get_params():
        assert name in page
    assert "text/html" in estimator()._repr_mimebundle_()


def test_notebooks_show_a_fitted_one_in_a_pipeline() -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    page = make_pipeline(L1InfRegressor(radius=2.0).fit(X, X[:, :2]))._repr_html_()
    assert "L1InfRegressor" in page


def test_tasks_have_the_names_of_their_columns() -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((30, 3)), columns=["a", "b", "c"])
    Y = pd.DataFrame(X.to_numpy()[:, :2] + 0.1, columns=["left", "right"], index=X.index)
    model = DirtyRegressor().fit(X, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.task_names_.tolist() == ["left", "right"]
    assert not hasattr(model.fit(X, Y.to_numpy()), "task_names_")
    assert not hasattr(model.fit(X, Y).fit_tasks([X, X], [Y["left"], Y["right"]]), "task_names_")
    assert not hasattr(model.fit(X, Y.set_axis([0, 1], axis=1)), "task_names_")
    labels = OneNormClassifier().fit(X, Y > 0.0)
    assert is_classifier(labels)
    assert labels.task_names_.tolist() == ["left", "right"]
    classes = pd.DataFrame({"class": ["x", "y", "z"] * 10})
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        assert not hasattr(labels.fit(X, classes), "task_names_")  # its tasks are the classes
