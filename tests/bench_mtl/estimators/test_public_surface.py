"""What a reader of `help()` and of an error message sees of the public estimators."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import bench_mtl.estimators

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
