"""Kernel features on the support points of a multiclass perceptron, against a slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, digits, preprocess

STEP = "perceptron_kernel"


def blobs(n: int = 60, m: int = 3, storage: str = "dense", held_out: int = 0, seed: int = 0) -> TaskData:
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, m, n + held_out)
    X = rng.standard_normal((n + held_out, 4)) + 1.5 * rng.standard_normal((m, 4))[classes]
    Y = np.where(classes[:, None] == np.arange(m), 1.0, -1.0)
    matrix = sp.csr_array(X) if storage == "sparse" else X
    data = TaskData.shared(matrix[:n], Y[:n], name="blobs", truth={"W": np.ones((4, m))})
    return data.with_held_out(TaskData.shared(matrix[n:], Y[n:])) if held_out else data


def plain(data: TaskData) -> Any:
    X = data.design.block(0)
    return X.toarray() if isinstance(X, sp.csr_array) else np.asarray(X)


def kernel(A: Any, B: Any, width: float) -> Any:
    return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2) / width)


def pairs(X: Any) -> Any:
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)[np.triu_indices(len(X), k=1)]


def perceptron(data: TaskData, width: float, largest: int) -> list[int]:
    """One example after another, with the kernel written out."""
    X, classes, m = plain(data), data.targets.argmax(axis=1), data.n_tasks
    support: list[int] = []
    a: list[Any] = []
    for i in np.random.default_rng(0).permutation(len(X)):
        scores = np.zeros(m)
        for s, update in zip(support, a, strict=True):
            scores += update * np.exp(-((X[s] - X[i]) ** 2).sum() / width)
        rival = max((j for j in range(m) if j != classes[i]), key=lambda j: scores[j])
        if scores[classes[i]] <= scores[rival] and len(support) < largest:
            support.append(int(i))
            a.append(np.eye(m)[classes[i]] - np.eye(m)[rival])
    return support


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize(("step", "largest"), [(STEP, 10**9), (f"{STEP}:7", 7), (f"{STEP}:all:2.5", 10**9), (f"{STEP}:5:median", 5)])
def test_features_are_kernels_on_the_perceptrons_mistakes(storage: str, step: str, largest: int) -> None:
    data = blobs(storage=storage, held_out=10)
    assert data.held_out is not None
    X = plain(data)
    rule = step.split(":")[2] if step.count(":") == 2 else "mean"
    width = {"mean": pairs(X).mean(), "median": np.median(pairs(X))}.get(rule, 2.5)
    support = perceptron(data, width, largest)
    result = preprocess(data, step)
    assert result.held_out is not None
    np.testing.assert_allclose(plain(result), kernel(X, X[support], width), atol=1e-9)
    np.testing.assert_allclose(plain(result.held_out), kernel(plain(data.held_out), X[support], width), atol=1e-9)
    assert result.orientation is not None
    np.testing.assert_array_equal(result.orientation, data.targets[support])
    assert result.truth == {}
    assert result.held_out.truth == {}
    np.testing.assert_array_equal(result.targets, data.targets)
    assert f"on the {len(support)} of 60 examples that are support points" in result.notes[0]


def test_more_rows_than_a_block() -> None:
    data = blobs(n=1203)
    width = float(pairs(plain(data)).mean())
    support = perceptron(data, width, 10**9)
    result = preprocess(data, STEP)
    assert result.orientation is not None
    np.testing.assert_array_equal(result.orientation, data.targets[support])
    np.testing.assert_allclose(plain(result), kernel(plain(data), plain(data)[support], width), atol=1e-9)


def test_median_of_many_rows_is_that_of_some() -> None:
    data = blobs(n=1500)
    X = plain(data)
    notes = preprocess(data, f"{STEP}:3:median").notes[0]
    width = float(notes.split("width ")[1].split(" ")[0])
    assert abs(width / np.median(pairs(X)) - 1.0) < 0.05


def test_labels_0_and_1_are_classes_too() -> None:
    data = blobs()
    zero_one = TaskData.shared(plain(data), (data.targets == 1.0).astype(float))
    np.testing.assert_array_equal(plain(preprocess(zero_one, STEP)), plain(preprocess(data, STEP)))
    assert set(np.unique(preprocess(zero_one, STEP).orientation)) == {-1.0, 1.0}


def test_one_class_only_has_one_support_point() -> None:
    data = TaskData.shared(np.arange(8.0).reshape(4, 2), np.tile([1.0, -1.0], (4, 1)))
    result = preprocess(data, STEP)
    assert result.n_features == 1
    np.testing.assert_array_equal(result.orientation, [[1.0, -1.0]])


def test_kernels_of_digits_tell_held_out_digits_apart() -> None:
    data = preprocess(digits(examples=600, held_out=200), [STEP])
    assert data.held_out is not None
    W = np.linalg.lstsq(plain(data), data.targets, rcond=None)[0]
    predictions = data.held_out.design.forward(W)
    assert np.mean(predictions.argmax(axis=1) == data.held_out.targets.argmax(axis=1)) > 0.9
    assert preprocess(data, "unit_rows").orientation is data.orientation


@pytest.mark.parametrize(
    "arguments", [":", "::", ":0", ":-1", ":2.5", ":x", ":10:", ":10:0", ":10:-1", ":10:inf", ":10:nan", ":10:mode", ":10:1:1", ":\u0663"]
)
def test_arguments_that_are_refused(arguments: str) -> None:
    with pytest.raises(InputError, match=f"preprocessing step '{STEP}{arguments}' must be {STEP}, {STEP}:S or {STEP}:S:WIDTH"):
        preprocess(blobs(), STEP + arguments)


def test_data_that_are_refused() -> None:
    X = np.arange(12.0).reshape(4, 3)
    Y = np.where(np.eye(4) == 1.0, 1.0, -1.0)
    with pytest.raises(InputError, match="needs classes over one design"):
        preprocess(TaskData.per_task([X, X], [Y[:, 0], Y[:, 1]]), STEP)
    with pytest.raises(InputError, match="needs at least 2 classes, but there is 1 task"):
        preprocess(TaskData.shared(X, Y[:, 0]), STEP)
    with pytest.raises(InputError, match="exactly one label \\+1 a row, but row 2 has 0"):
        preprocess(TaskData.shared(X, Y[:, [0, 1, 3]]), STEP)
    with pytest.raises(InputError, match="exactly one label \\+1 a row, but row 0 has 2"):
        preprocess(TaskData.shared(X, np.column_stack([Y, Y[:, 0]])), STEP)
    with pytest.raises(InputError, match="labels must be -1/\\+1"):
        preprocess(TaskData.shared(X, 2.0 * Y), STEP)
    with pytest.raises(InputError, match="mean squared distance of rows is 0: give a width above 0"):
        preprocess(TaskData.shared(np.ones((4, 2)), Y), STEP)
    assert preprocess(TaskData.shared(np.ones((4, 2)), Y), f"{STEP}:all:1").n_features == 4
    with pytest.raises(InputError, match="unknown preprocessing step 'perceptron_kernels'"):
        preprocess(blobs(), "perceptron_kernels")


def test_mnist_test_images(data_dir: Any) -> None:
    from bench_mtl.data import load

    if not (data_dir / "mnist_t10k.npz").is_file():
        pytest.skip("no mnist_t10k")
    spec = {"name": "mnist_t10k", "examples": 400, "held_out": 200, "preprocess": f"{STEP}:100"}
    data = load(spec, data_dir=data_dir)
    assert data.held_out is not None
    assert (data.design.output_shape, data.n_features) == ((400, 10), 100)
    assert data.held_out.design.output_shape == (200, 10)
    assert data.orientation is not None
    assert data.orientation.shape == (100, 10)
