"""What other libraries have too: their time, the gap proven of their answer, and ours, `python -m benchmarks.features`.

Each feature is one problem on data of scikit-learn: weights of examples and classes, factors of features, W >= 0, a ridge beside a norm,
and losses with outliers. Libraries run at a tolerance of 1e-8 if they have one, and `auto` to a relative gap of 1e-6. A time is the fastest
of three whole calls, from the data on, after one that compiles.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from celer import Lasso as CelerLasso
from skglm import GeneralizedLinearEstimator
from skglm.datafits import Huber
from skglm.penalties import L1
from skglm.solvers import AndersonCD
from sklearn import linear_model as sk
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import PolynomialFeatures, scale
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench_mtl import TaskData, certify, run
from bench_mtl.model.protocols import Problem
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l12_glm import L12GLM

TOL, GAP, ROUNDS, SECONDS = 1e-8, 1e-6, 3, 5.0


class Feature(NamedTuple):
    """A feature, the model of another library that has it, and the same problem here."""

    name: str
    library: str
    fit: Callable[[], Any]
    make: Callable[[], Problem]
    judge: str = "auto"
    """The solver of the bound that `certify` is told."""


def features() -> Iterator[Feature]:
    """Yield what is compared: 442 examples of 65 features, 569 of 30 in two classes, and 600 of 64 in ten tasks."""
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(PolynomialFeatures(2, include_bias=False).fit_transform(X)), scale(y)
    Z, sick = load_breast_cancer(return_X_y=True)
    Z, n, d = scale(Z), len(X), X.shape[1]
    D, digits = load_digits(return_X_y=True)
    D, Y = scale(D[:600]), (digits[:600, None] == np.arange(10)).astype(float)
    rng = np.random.default_rng(0)
    weights, factors = rng.exponential(size=n), rng.uniform(0.5, 2.0, d)
    plain, options = TaskData.shared(X, y), {"tol": TOL, "max_iter": 10**6}
    balanced = len(sick) / (2.0 * np.bincount(sick))[sick]
    labelled = TaskData.shared(Z, 2.0 * sick - 1.0, weights=balanced)

    yield Feature(
        "weights of examples", "scikit-learn Lasso", lambda: sk.Lasso(0.02, **options).fit(X, y, sample_weight=weights),
        lambda: L1BallGLM(TaskData.shared(X, y, weights=weights), penalty=0.02 * weights.sum(), intercept=True),
    )  # fmt: skip
    yield Feature(
        "weights of classes", "scikit-learn LogisticRegression, saga",
        lambda: sk.LogisticRegression(
            C=0.1, l1_ratio=1.0, solver="saga", class_weight="balanced", fit_intercept=False, random_state=0, **options
        ).fit(Z, sick),
        lambda: L1BallGLM(labelled, loss="logistic", penalty=10.0 / balanced.sum()),
    )  # fmt: skip
    yield Feature(
        "factors of features", "celer Lasso", lambda: CelerLasso(0.02, weights=factors, tol=TOL).fit(X, y),
        lambda: L1BallGLM(plain, penalty=0.02 * n, feature_factors=factors, intercept=True),
    )  # fmt: skip
    yield Feature(
        "W >= 0", "scikit-learn Lasso", lambda: sk.Lasso(0.02, positive=True, **options).fit(X, y),
        lambda: L1BallGLM(plain, penalty=0.02 * n, nonneg=True, intercept=True),
    )  # fmt: skip
    yield Feature(
        "a ridge beside l1", "scikit-learn ElasticNet", lambda: sk.ElasticNet(0.04, l1_ratio=0.5, **options).fit(X, y),
        lambda: L1BallGLM(plain, penalty=0.02 * n, ridge=0.02 * n, intercept=True),
    )  # fmt: skip
    yield Feature(
        "a ridge beside l1,2", "scikit-learn MultiTaskElasticNet", lambda: sk.MultiTaskElasticNet(0.02, l1_ratio=0.5, **options).fit(D, Y),
        lambda: L12GLM(TaskData.shared(D, Y), penalty=0.01 * len(D), ridge=0.01 * len(D), reduction="sum", intercept=True),
    )  # fmt: skip
    yield Feature(
        "Huber loss", "skglm", lambda: GeneralizedLinearEstimator(Huber(0.5), L1(0.02), AndersonCD(tol=TOL, fit_intercept=False)).fit(X, y),
        lambda: L1BallGLM(plain, loss="huber:0.5", penalty=0.02 * n),
    )  # fmt: skip
    yield Feature(
        "quantiles", "scikit-learn QuantileRegressor", lambda: sk.QuantileRegressor(quantile=0.8, alpha=0.02).fit(X, y),
        lambda: L1InfGLM(plain, loss="quantile:0.8", penalty=0.02, intercept=True), "clarabel",
    )  # fmt: skip


def fastest(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of the fastest of some calls after a first one, and what it returned."""
    result, seconds = call(), []
    for _ in range(ROUNDS):
        began = perf_counter()
        result = call()
        seconds.append(perf_counter() - began)
    return min(seconds), result


def main() -> None:
    rows = []
    warnings.simplefilter("ignore")  # of solvers that end before their own tolerance: the gap says it
    with threadpool_limits(1):
        for name, library, fit, make, judge in features():
            theirs, model = fastest(fit)
            problem = make()
            ours, record = fastest(lambda make=make: run(make(), "auto", tolerance=GAP, limits=SECONDS))  # type: ignore[misc]
            certifying, enclosure = fastest(lambda problem=problem, model=model, judge=judge: certify(problem, model, solver=judge))  # type: ignore[misc]
            gap = record.best.relative_gap if record.best is not None else np.nan
            rows.append((name, library, theirs, enclosure.relative_gap, certifying, ours, gap))
    heads = ["feature", "library", "its s", "its proven gap", "certify, s", "`auto`, s", "its gap"]
    print(tabulate(rows, heads, "github", floatfmt=".2g"))


if __name__ == "__main__":
    main()
