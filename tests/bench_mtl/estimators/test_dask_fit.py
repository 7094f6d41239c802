"""Fits to examples that are not in memory: those of the data in memory up to what is proven, with the same bits whoever computes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from shared_cluster import SharedCluster
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bench_mtl.estimators as public
from bench_mtl.core.errors import InputError
from bench_mtl.data import load, write_shards
from bench_mtl.estimators import L1InfClassifier, L1InfRegressor, L1InfRegressorCV

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask has no arrays")
dd = pytest.importorskip("dask.dataframe", reason="Dask has no frames")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

N, D, M = 240, 10, 3
CHUNKS = (90, 1, 100, 49)

rng = np.random.default_rng(0)
A = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7) + 0.2
TRUE = rng.standard_normal((D, M)) * (rng.random((D, 1)) < 0.5)
Y = A @ TRUE + 0.5 * rng.standard_normal((N, M)) + 1.0
CLASSES = np.array(["ape", "bee", "cat"])[Y.argmax(axis=1)]
PAIR = np.where(Y[:, 0] > 1.0, "yes", "no")
LABELS = (Y > 1.0).astype(int)
FRAME = pd.DataFrame(A, columns=[f"feature {j}" for j in range(D)])

MODELS: dict[str, tuple[Any, np.ndarray]] = {
    "l1inf hinge, classes": (L1InfClassifier(3.0), CLASSES),
    "l1inf hinge, two classes": (L1InfClassifier(penalty="0.1 max"), PAIR),
    "l1inf logistic, labels": (L1InfClassifier(3.0, loss="logistic"), LABELS),
    "l1inf squares": (L1InfRegressor(2.0), Y),
    "l1inf squares, vector": (L1InfRegressor(penalty="0.1 max", reduction="sum"), Y[:, 0]),
    "sparse and low rank": (public.SparseLowRankRegressor(3.0, 2.0), Y),
    "sparse and low rank, logistic": (public.SparseLowRankClassifier(3.0, 2.0, loss="logistic"), LABELS),
    "l1 balls": (public.L1BallRegressor(2.0), Y),
    "l1 balls, hinge": (public.L1BallClassifier(2.0), LABELS),
    "lasso": (public.OneNormRegressor("0.1 max"), Y),
    "trace norm": (public.TraceNormRegressor(3.0), Y),
    "l12 hinge": (public.L12Classifier(2.0), CLASSES),
}

#: Examples as Dask has them, and the same ones in memory.
FORMS: dict[str, tuple[Callable[[], Any], Any]] = {
    "dense": (lambda: da.from_array(A, chunks=(CHUNKS, 4)), A),
    "sparse": (lambda: da.from_array(A, chunks=(CHUNKS, D)).map_blocks(lambda block: sp.csr_matrix(block)), sp.csr_array(A)),
    "frame": (lambda: dd.from_pandas(FRAME, npartitions=3), FRAME),
}

#: Every model with every form, and half of these with an intercept; the other half is slow.
FITS = [
    pytest.param(
        name, form, with_intercept, id=f"{name}-{form}-{'intercept' if with_intercept else 'none'}",
        marks=[] if (i + j) % 2 == with_intercept else pytest.mark.slow,
    )
    for i, name in enumerate(MODELS)
    for j, form in enumerate(FORMS)
    for with_intercept in (True, False)
]  # fmt: skip


def require_one_optimum(one: Any, other: Any) -> None:
    """Both enclosures hold the optimum."""
    assert max(one.gap_, other.gap_) <= one.tol
    assert max(one.dual_bound_, other.dual_bound_) <= min(one.objective_, other.objective_)


@pytest.mark.parametrize(("name", "form", "with_intercept"), FITS)
def test_it_fits_what_it_fits_in_memory(name: str, form: str, with_intercept: bool) -> None:
    (model, y), (make, near) = MODELS[name], FORMS[form]
    X, plain = make(), clone(model).set_params(fit_intercept=with_intercept).fit(near, y)
    fitted = clone(model).set_params(fit_intercept=with_intercept).fit(X, y)
    require_one_optimum(fitted, plain)
    assert fitted.coef_.shape == plain.coef_.shape
    assert np.shape(fitted.intercept_) == np.shape(plain.intercept_)
    assert with_intercept or not np.any(fitted.intercept_)
    assert fitted.n_features_in_ == D
    np.testing.assert_array_equal(getattr(fitted, "classes_", []), getattr(plain, "classes_", []))
    predicted, in_memory = fitted.predict(X), fitted.predict(near)
    assert isinstance(predicted, da.Array)
    assert predicted.dtype == in_memory.dtype
    found = predicted.compute(scheduler="sync")
    if in_memory.dtype == float:
        np.testing.assert_allclose(found, in_memory, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, in_memory)
    assert fitted.score(X, y) == pytest.approx(fitted.score(near, y), rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_more_examples_than_their_columns_may_take_are_fitted_by_products_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, y = MODELS[name]
    monkeypatch.setattr("bench_mtl.estimators.solved._MOST_COLUMNS", 8 * A.size - 1)
    monkeypatch.setattr("bench_mtl.core.sharded_design.ShardedDesign.restricted", None)
    own = clone(model).set_params(fit_intercept=False)
    require_one_optimum(clone(own).fit(da.from_array(A, chunks=100), y), clone(own).fit(A, y))


@pytest.mark.parametrize(
    ("name", "with_intercept"),
    [
        ("l1inf squares", True),
        ("sparse and low rank", False),
        pytest.param("l1inf squares", False, marks=pytest.mark.slow),
        pytest.param("l1inf hinge, classes", False, marks=pytest.mark.slow),
    ],
)
def test_bits_do_not_depend_on_who_computes(name: str, with_intercept: bool, cluster: SharedCluster) -> None:
    """All problems: `tests/laws/test_who_computes.py`."""
    model, y = MODELS[name]
    own = clone(model).set_params(fit_intercept=with_intercept, tol=0.05)
    here = clone(own).fit(FORMS["dense"][0](), y)
    with cluster.client.as_current():
        there = clone(own).fit(FORMS["dense"][0]().persist(), da.from_array(y, chunks=50))
    for attribute in ("coef_", "intercept_", "objective_", "dual_bound_", "n_iter_"):
        np.testing.assert_array_equal(getattr(there, attribute), getattr(here, attribute))


def test_frames_keep_the_names_of_features_and_tasks() -> None:
    targets = pd.DataFrame(Y, columns=["one", "two", "three"])
    both = dd.from_pandas(pd.concat([FRAME, targets], axis=1), npartitions=4)
    chosen = both[both["feature 0"] > 0.3]  # lengths that nobody knows
    X, y = chosen[list(FRAME)], chosen[list(targets)]
    model = L1InfRegressor(2.0).fit(X, y)
    assert model.feature_names_in_.tolist() == list(FRAME)
    assert model.task_names_.tolist() == list(targets)
    rows = (A[:, 0] > 0.3).nonzero()[0]
    require_one_optimum(model, L1InfRegressor(2.0).fit(FRAME.iloc[rows], targets.iloc[rows]))
    np.testing.assert_allclose(model.predict(X).compute(scheduler="sync"), model.predict(FRAME.iloc[rows]), rtol=1e-12, atol=1e-12)
    assert L1InfRegressor(2.0).fit(X, y["one"]).coef_.shape == (D,)
    words = dd.from_pandas(pd.Series(CLASSES), npartitions=3)
    assert L1InfClassifier(3.0).fit(dd.from_pandas(FRAME, npartitions=2), words).classes_.tolist() == ["ape", "bee", "cat"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={"feature 0": "another"}))


def test_outputs_are_lazy_and_those_of_memory() -> None:
    X, broken = FORMS["dense"][0](), da.from_delayed(dask.delayed(int)("no number"), (9, D), float)
    for y in (CLASSES, PAIR, LABELS):
        model = L1InfClassifier(3.0, loss="logistic").fit(A, y)
        for name in ("decision_function", "predict_proba", "predict_log_proba"):
            found, wanted = getattr(model, name)(X), getattr(model, name)(A)
            assert type(found) is (list if isinstance(wanted, list) else da.Array)
            for one, other in zip(found, wanted, strict=True) if isinstance(wanted, list) else [(found, wanted)]:
                assert one.shape == other.shape
                np.testing.assert_allclose(one.compute(scheduler="sync"), other, rtol=1e-10, atol=1e-12)
        assert model.predict(broken).shape[0] == 9  # nothing is computed
    with pytest.raises(NotFittedError):
        L1InfClassifier().predict(X)
    with pytest.raises(ValueError, match="X has 9 features, but L1InfClassifier is expecting 10"):
        model.predict(X[:, :9])
    missing = da.from_array(np.full((3, D), np.nan), chunks=3)
    with pytest.raises(InputError, match="X has NaN"):
        model.predict(missing).compute(scheduler="sync")


def drawn() -> np.ndarray:
    return np.random.default_rng().standard_normal((N, D))


NOT_HERE = "must be in memory here, not a Dask collection"
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "weights": (lambda X: L1InfRegressor().fit(X, Y, np.ones(N)), "sample_weight must be None where X is a Dask collection"),
    "weights of classes": (lambda X: L1InfClassifier(class_weight="balanced").fit(X, CLASSES), "class_weight must be None where X is"),
    "weights of tasks": (lambda X: L1InfRegressor(task_weights=[1, 2]).fit(X, Y), "task_weights must be None where X is"),
    "no targets": (lambda X: L1InfRegressor().fit(X, None), "y must be given"),
    "lengths": (lambda X: L1InfRegressor().fit(X, Y[1:]), "y has 239 targets, but X has 240 rows"),
    "one class": (lambda X: L1InfClassifier().fit(X, np.ones(N)), "y has only one class"),
    "missing targets": (lambda X: L1InfRegressor().fit(X, da.full(N, np.nan, chunks=99)), "Input y contains NaN"),
    "numbers as classes": (lambda X: L1InfClassifier().fit(X, Y[:, 0]), "Unknown label type: continuous"),
    "folds": (lambda X: L1InfRegressorCV().fit(X, Y), f"X of L1InfRegressorCV {NOT_HERE}"),
    "relationships": (lambda X: public.MTRLRegressor().fit(X, Y), f"X of MTRLRegressor {NOT_HERE}"),
    "ridge": (lambda X: public.RidgeMultiTaskRegressor().fit(X, Y), f"X of RidgeMultiTaskRegressor {NOT_HERE}"),
    "tasks": (lambda X: L1InfRegressor().fit_tasks([A, X], [Y[:, 0], Y[:, 1]]), f"X of task 1 {NOT_HERE}"),
    "predicted tasks": (lambda X: L1InfRegressor().fit(A, Y[:, :2]).predict_tasks([A, X]), f"X of task 1 {NOT_HERE}"),
    "solver": (lambda X: L1InfRegressor(solver="interior_point").fit(X, Y), "solver: .*has them in shards"),
    "range": (lambda X: L1InfRegressor().fit(1e200 * X, Y), "X has entries of up to .*: divide by their size"),
    "other numbers": (
        lambda X: L1InfRegressor(tol=0.5, max_iter=2).fit(da.from_delayed(dask.delayed(drawn, pure=False)(), (N, D), float), Y),
        "X has other numbers each time",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_work_is_refused_by_name(what: str) -> None:
    call, words = REFUSED[what]
    with pytest.raises(ValueError, match=words):
        call(FORMS["dense"][0]())


@pytest.mark.parametrize("name", ["l1inf squares", "l1inf logistic, labels", "l1inf hinge, classes"])
def test_designs_in_shards_are_fitted_too(name: str, tmp_path: Path) -> None:
    model, y = MODELS[name]
    stored = np.unique(y, return_inverse=True)[1].astype(float) if y.dtype.kind == "U" else y
    parts = [(A[start : start + 80], stored[start : start + 80]) for start in (0, 80, 160)]
    data = load({"file": str(write_shards(tmp_path / "set", parts))})
    near = data.targets[:, 0] if y.ndim == 1 else data.targets
    model = clone(model).set_params(fit_intercept=False)
    fitted, plain = clone(model).fit(data.design, near), clone(model).fit(A, stored)
    require_one_optimum(fitted, plain)
    blocks = clone(model).fit(da.from_array(A, chunks=(80, D)), stored)
    np.testing.assert_array_equal(fitted.coef_, blocks.coef_)  # whatever is stored with the shards
    np.testing.assert_allclose(fitted.predict(data.design), fitted.predict(A), rtol=1e-12, atol=1e-12)
    assert fitted.score(data.design, near) == pytest.approx(fitted.score(A, stored), rel=1e-12)
    assert fitted.n_features_in_ == D
    with pytest.raises(InputError, match="in memory here, not a design in shards"):
        L1InfRegressorCV().fit(data.design, near)
    with pytest.raises(ValueError, match="X has 10 features, but L1InfRegressor is expecting 3"):
        L1InfRegressor().fit(A[:, :3], Y).predict(data.design)


#: 8 blocks of 10 MiB, where 40 MiB more than after a first small fit may be allocated.
FRUGAL = """
import gc
import resource
import numpy as np
import dask
import dask.array as da
from bench_mtl.estimators import L1InfRegressor, solved

BLOCKS, ROWS, D = 8, 13_108, 100
assert ROWS * D * 8 >= 10 * 2**20

def block(number, rows):
    base = np.random.default_rng(number).standard_normal((128, D))
    return np.resize(base, (rows, D))

def examples(blocks, rows):
    made = dask.delayed(block)
    return da.concatenate([da.from_delayed(made(number, rows), (rows, D), float) for number in range(blocks)])

def targets(blocks, rows):
    return np.concatenate([block(number, rows)[:, :2] @ [1.0, -1.0] for number in range(blocks)])

model = L1InfRegressor(penalty="0.1 max", fit_intercept=False, tol=1e-3)
model.fit(examples(2, 2_000), targets(2, 2_000))
y = targets(BLOCKS, ROWS)
held = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
limit = held + 40 * 2**20
solved._MOST_COLUMNS = 40 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
X = examples(BLOCKS, ROWS)
try:
    X.compute(scheduler="sync")
except MemoryError:
    print("too large")
gc.collect()  # the traceback holds blocks
model.fit(X, y)
assert model.gap_ <= 1e-3
print(model.predict(X[:5]).shape, np.flatnonzero(model.coef_).tolist(), model.score(X, y) > 0.9)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells and limits the memory of a process so")
def test_a_fit_takes_no_more_memory_than_some_blocks() -> None:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # the stack of every thread counts
    found = subprocess.run([sys.executable, "-c", FRUGAL], capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == ["too large", "(5,) [0, 1] True"]
