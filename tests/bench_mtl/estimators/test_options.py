"""Losses, options of problems, warm starts, callbacks, folds in processes, and the rule of one standard error."""

from typing import Any

import numpy as np
import pytest
from estimator_table import CHOICES, LABELS, X, Y
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import bench_mtl.estimators as public
from bench_mtl import InputError, TaskData
from bench_mtl.estimators.cross_validation import _simplest
from bench_mtl.estimators.fitting import Progress

WIDE = np.random.default_rng(0).standard_normal((60, 200))


def residuals(model: Any) -> np.ndarray:
    return Y - X @ model.coef_.T - model.intercept_


def huber(r: np.ndarray, delta: float) -> np.ndarray:
    return np.where(np.abs(r) <= delta, 0.5 * r**2, delta * np.abs(r) - 0.5 * delta**2)


# Losses


@pytest.mark.parametrize(
    ("model", "norm"),
    [
        (public.L1InfRegressor(penalty=0.05), lambda m: 0.05 * np.abs(m.coef_).max(axis=0).sum()),
        (public.L12Regressor(penalty=2.0, reduction="sum"), lambda m: 2.0 * np.linalg.norm(m.coef_, axis=0).sum()),
        (public.OneNormRegressor(2.0), lambda m: 2.0 * np.abs(m.coef_).sum()),
        (public.TraceNormRegressor(penalty=2.0), lambda m: 2.0 * np.linalg.norm(m.coef_, "nuc")),
        (public.DirtyRegressor(0.1, 0.05), lambda m: 0.1 * np.abs(m.shared_coef_).max(axis=0).sum() + 0.05 * np.abs(m.own_coef_).sum()),
        (public.SparseLowRankRegressor(1.0, 3.0), lambda m: np.abs(m.sparse_coef_).sum()),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_huber_fit_is_what_its_formula_says(model: Any, norm: Any) -> None:
    loss, delta = ("huber", 1.0) if isinstance(model, public.OneNormRegressor) else ("huber:0.3", 0.3)
    fitted = clone(model).set_params(loss=loss, tol=1e-4).fit(X, Y)
    assert fitted.gap_ <= 1e-4
    losses = huber(residuals(fitted), delta)
    is_mean = getattr(fitted, "reduction", "sum") == "mean"
    assert fitted.objective_ == pytest.approx((losses.mean(axis=0) if is_mean else losses).sum() + norm(fitted), rel=1e-9)
    outlying = Y + 1e3 * (np.arange(60) == 0)[:, None]
    robust, squares = (clone(model).set_params(loss=name).fit(X, outlying) for name in (loss, "squared"))
    assert np.abs(robust.predict(X) - Y)[1:].mean() < np.abs(squares.predict(X) - Y)[1:].mean()


def test_losses_are_those_of_the_kind_of_targets() -> None:
    wrong = {"logistic": public.L1InfRegressor(), "huber": public.L1InfClassifier(), "quantile": public.DirtyRegressor()}
    for loss, model in [*wrong.items(), ("huber", public.L1BallClassifierCV())]:
        known = "hinge" if isinstance(model, public.L1BallClassifierCV) else ""
        with pytest.raises(InputError, match=f"loss must be one of .*{known}.*, not '{loss}'"):
            model.set_params(loss=loss).fit(X, LABELS)
    with pytest.raises(InputError, match="delta"):
        public.L1InfRegressor(loss="huber:-1").fit(X, Y)
    assert public.L1InfRegressorCV([0.5, 2.0], cv=2, loss="huber").fit(X, Y).cv_gaps_.max() <= 1e-3
    assert public.SparseLowRankRegressorCV(["0.1 max"], 2, cv=2, loss="huber", tol=1e-2).fit(X, Y).radius_ > 0.0


@pytest.mark.parametrize("estimator", [public.L1InfRegressor, public.L12Regressor])
def test_a_fit_of_quantiles_leaves_its_share_of_the_targets_below(estimator: Any) -> None:
    model = estimator(penalty="0.1 max", loss="quantile:0.8", tol=1e-2).fit(X, Y)
    assert model.gap_ <= 1e-2
    r = residuals(model)
    norm = np.abs(model.coef_).max(axis=0) if estimator is public.L1InfRegressor else np.linalg.norm(model.coef_, axis=0)
    penalty = 0.1 * estimator(penalty="1 max", loss="quantile:0.8")._specification().on(TaskData.shared(X, Y), intercept=True).penalty
    assert model.objective_ == pytest.approx(np.maximum(0.8 * r, -0.2 * r).mean(axis=0).sum() + penalty * norm.sum(), rel=1e-6)
    np.testing.assert_allclose((r < 0.0).mean(axis=0), 0.8, atol=0.1)


# Options of problems


def test_factors_of_features_ridges_and_signs_are_what_their_formulas_say() -> None:
    factors = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    for model, norm in (
        (public.L1InfRegressor(penalty=0.05), lambda m: 0.05 * factors @ np.abs(m.coef_).max(axis=0)),
        (public.L12Regressor(penalty=0.05), lambda m: 0.05 * factors @ np.linalg.norm(m.coef_, axis=0)),
        (public.OneNormRegressor(1.0), lambda m: factors @ np.abs(m.coef_).sum(axis=0)),
    ):
        fitted = model.set_params(feature_factors=factors, ridge=0.3, nonnegative=True, tol=1e-6).fit(X, Y)
        assert fitted.gap_ <= 1e-6
        assert fitted.coef_.min() >= 0.0
        losses = 0.5 * residuals(fitted) ** 2
        losses = losses if isinstance(model, public.OneNormRegressor) else losses.mean(axis=0)
        assert fitted.objective_ == pytest.approx(losses.sum() + norm(fitted) + 0.15 * (fitted.coef_**2).sum(), rel=1e-9)
        free = clone(model).set_params(feature_factors=factors * (factors > 1.0), nonnegative=False).fit(X, Y)
        assert np.abs(free.coef_[:, factors <= 1.0]).max(axis=0).min() > 0.0
    low_rank = public.TraceNormRegressor(penalty=2.0, ridge=0.3, tol=1e-6).fit(WIDE, Y)
    rest = 0.5 * (Y - WIDE @ low_rank.coef_.T - low_rank.intercept_) ** 2
    norms = 2.0 * np.linalg.norm(low_rank.coef_, "nuc") + 0.15 * (low_rank.coef_**2).sum()
    assert low_rank.objective_ == pytest.approx(rest.sum() + norms, rel=1e-9)
    chosen = public.L1InfRegressorCV(penalty_grid=["0.5 max", "0.05 max"], ridge=0.1, nonnegative=True, cv=2).fit(X, Y)
    assert chosen.coef_.min() >= 0.0


def test_options_that_change_nothing_are_those_of_no_problem_and_hinges_have_none() -> None:
    plain = public.L1InfClassifier(penalty="0.1 max", ridge=0, nonnegative=False, feature_factors=None).fit(X, LABELS)
    np.testing.assert_array_equal(plain.coef_, public.L1InfClassifier(penalty="0.1 max").fit(X, LABELS).coef_)
    for options, message in (
        ({"ridge": 0.1, "nonnegative": True}, "(ridge and nonnegative|nonnegative and ridge) must be left out with hinges"),
        ({"feature_factors": np.ones(6)}, "feature_factors must be left out with hinges"),
    ):
        with pytest.raises(InputError, match=message):
            public.L12Classifier(penalty="0.1 max", **options).fit(X, LABELS)


# Warm starts and callbacks


@pytest.mark.parametrize(
    "model",
    [
        public.L12Regressor(penalty="0.05 max"), public.OneNormRegressor(1.0), public.TraceNormRegressor(penalty=2.0),
        public.SparseLowRankRegressor(1.0, 3.0), public.DirtyClassifier("0.05 max", "0.05 max", loss="logistic"),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_a_warm_start_goes_on_from_the_last_fit(model: Any) -> None:
    rows = WIDE if isinstance(model, public.TraceNormRegressor) else X  # in the space of whose rows it is solved
    y = LABELS if is_classifier(model) else Y
    cold = clone(model).set_params(tol=1e-6, solver="accelerated_gradient", solver_options={"restart": "gradient"}).fit(rows, y)
    warm = clone(cold).set_params(warm_start=True).fit(rows, y)
    assert warm.n_iter_ == cold.n_iter_
    steps = warm.set_params(tol=1e-5).fit(rows, y).n_iter_
    assert steps <= 0.2 * cold.n_iter_
    assert warm.gap_ <= 1e-5
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-5)
    fewer = warm.fit(rows[:, :4], y[:, :2])  # of another shape
    np.testing.assert_array_equal(fewer.coef_, clone(warm).fit(rows[:, :4], y[:, :2]).coef_)
    assert warm.set_params(solver=None, solver_options=None).fit(rows[:, :4], y[:, :2]).converged_


def test_a_callback_hears_of_each_certificate_and_may_end_the_fit() -> None:
    heard: list[Progress] = []
    model = public.L12Regressor(penalty="0.01 max", tol=1e-8, solver="accelerated_gradient", callback=heard.append).fit(X, Y)
    assert [p.iteration for p in heard] == sorted(p.iteration for p in heard)
    assert all(p.bound <= p.objective and p.seconds >= 0.0 for p in heard)
    assert (heard[-1].objective, heard[-1].bound, heard[-1].iteration) == (model.objective_, model.dual_bound_, model.n_iter_)
    assert heard[-1].gap <= 1e-8 < heard[0].gap

    class Log(list[Progress]):
        def __call__(self, progress: Progress) -> None:
            self.append(progress)

    log = Log()  # empty, and so false
    public.L12Regressor(penalty="0.01 max", callback=log).fit(X, Y)
    assert log
    with pytest.warns(ConvergenceWarning, match="the callback ended it"):
        ended = model.set_params(callback=lambda progress: progress.gap < 0.5).fit(X, Y)
    assert 1e-8 < ended.gap_ < 0.5
    assert ended.n_iter_ < heard[-1].iteration

    def fail(progress: Progress) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model.set_params(callback=fail).fit(X, Y)
    last: list[Progress] = []
    chosen = public.L1InfRegressorCV([0.5, 2.0], cv=2, callback=last.append, warm_start=True).fit(X, Y)
    assert last[-1].objective == chosen.objective_  # it hears of the last fit alone


# Choices


def test_folds_in_processes_have_the_same_numbers() -> None:
    model, y = clone(CHOICES["DirtyClassifierCV"]).set_params(cv=3), LABELS
    alone, together = clone(model).fit(X, y), clone(model).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(alone.cv_scores_, together.cv_scores_)
    np.testing.assert_array_equal(alone.cv_gaps_, together.cv_gaps_)
    np.testing.assert_array_equal(alone.coef_, together.coef_)
    with pytest.raises(InputError, match=r"fold [012]: "):
        clone(model).set_params(n_jobs=2, tol=-1.0).fit(X, y)


def test_within_a_standard_error_the_simplest_setting_is_chosen() -> None:
    noisy = Y + 3.0 * np.random.default_rng(2).standard_normal(Y.shape)
    best = public.L1InfRegressorCV(8, cv=5).fit(X, noisy)
    simple = public.L1InfRegressorCV(8, cv=5, selection="one_standard_error").fit(X, noisy)
    np.testing.assert_array_equal(best.cv_scores_, simple.cv_scores_)
    means, spread = best.cv_scores_.mean(axis=1), best.cv_scores_[best.best_index_].std(ddof=1) / np.sqrt(5)
    expected = next(i for i in range(8) if means[i] >= means.max() - spread)
    assert simple.best_index_ == expected < best.best_index_
    assert (simple.radius_, simple.best_score_) == (best.radius_grid_[expected], means[expected])
    with pytest.raises(InputError, match="selection must be one of best, one_standard_error, not 'first'"):
        public.L1InfRegressorCV(2, selection="first").fit(X, Y)
    with pytest.raises(InputError, match="selection must be 'best' with a single fold"):
        public.L1InfRegressorCV(2, cv=[(np.arange(40), np.arange(40, 60))], selection="one_standard_error").fit(X, Y)


def test_of_two_parameters_the_simplest_setting_has_the_smallest_sum_of_places() -> None:
    noisy = Y + 3.0 * np.random.default_rng(2).standard_normal(Y.shape)
    model = public.SparseLowRankRegressorCV(3, 3, cv=3, selection="one_standard_error").fit(X, noisy)
    means = model.cv_scores_.mean(axis=1)
    spread = model.cv_scores_[means.argmax()].std(ddof=1) / np.sqrt(3)
    sums = [i // 3 + i % 3 for i in range(9)]
    assert model.best_index_ == min((i for i in range(9) if means[i] >= means.max() - spread), key=lambda i: (sums[i], i))
    places, are_good = np.array([0, 1, 2, 1, 2, 3]), np.array([False, False, True, True, False, True])
    assert _simplest(places, are_good) == 3


@pytest.mark.parametrize("options", [{"ridge": 0.1}, {"feature_factors": [1.0] * 5 + [2.0]}, {"ridge": 0.1, "feature_factors": [2.0] * 6}])
def test_what_only_penalties_have_is_refused_with_radii_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(
        InputError, match=f"^{' and '.join(options)} must be left out with radii: give penalty_grid in place of radius_grid"
    ):
        public.L1InfRegressorCV(cv=2, **options).fit(X, Y)
