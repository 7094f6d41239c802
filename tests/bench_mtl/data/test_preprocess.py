"""Preprocessing steps: what each one computes, on shared and per-task, dense and sparse designs; held-out rows get training statistics."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, digits, preprocess, synthetic_l1inf, synthetic_multiclass, synthetic_sparse_low_rank
from bench_mtl.weak_learners import draw_stumps, grow_trees

LAYOUTS = ["shared", "per_task"]
STORAGES = ["dense", "sparse"]
RNG = np.random.default_rng(7)
TRAINING = RNG.integers(0, 4, (9, 4)).astype(float)
TRAINING[:, 3] = 0.1
HELD_OUT = RNG.integers(0, 4, (5, 4)).astype(float)
STEPS = ["unit_rows", "standardise", "tfidf", "svd:2"]
KERNEL = "perceptron_kernel"


def make(X: Any, layout: str = "shared", storage: str = "dense") -> TaskData:
    """Two tasks over X: both over all of it, or the first over two rows and the second over the others."""
    matrix = sp.csr_array(X) if storage == "sparse" else X
    if layout == "shared":
        return TaskData.shared(matrix, np.ones((len(X), 2)), name="made", notes=("Before.",))
    return TaskData.per_task([matrix[:2], matrix[2:]], [np.ones(2), np.ones(len(X) - 2)], name="made", notes=("Before.",))


def rows(data: TaskData | None) -> Any:
    """The pooled rows, dense."""
    blocks = [data.task(k)[0] for k in range(1 if data.design.is_shared else data.n_tasks)]
    return np.concatenate([block.toarray() if data.design.is_sparse else block for block in blocks])


def by_hand(step: str, storage: str, X: Any, training: Any) -> Any:
    """Rows transformed with the statistics of training rows."""
    if step == "unit_rows":
        lengths = np.array([[math.hypot(*row)] for row in X])
        return np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0.0)
    if step == "standardise":
        deviation, constant = training.std(axis=0), np.ptp(training, axis=0) == 0.0
        if storage == "sparse":
            return X / np.where(constant, 1.0, deviation)
        return np.where(constant, 0.0, (X - training.mean(axis=0)) / np.where(constant, 1.0, deviation))
    if step == "tfidf":
        return X * (np.log((1 + len(training)) / (1 + np.count_nonzero(training, axis=0))) + 1)
    Vt = np.linalg.svd(training, full_matrices=False)[2][: int(step.partition(":")[2])]
    return X @ (Vt * np.sign(Vt[np.arange(len(Vt)), np.abs(Vt).argmax(axis=1)])[:, None]).T


COUNTS = arrays(np.float64, st.tuples(st.integers(3, 8), st.integers(1, 6)), elements=st.integers(0, 5).map(float))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("step", ["unit_rows", "standardise", "tfidf"])
@given(X=COUNTS)
def test_a_step_is_its_formula(step: str, storage: str, layout: str, X: Any) -> None:
    given_data = make(X, layout, storage)
    data = preprocess(given_data, [step])
    np.testing.assert_allclose(rows(data), by_hand(step, storage, X, X), rtol=1e-12, atol=1e-12)
    assert data.design.is_sparse == (storage == "sparse")
    assert data.notes[0] == "Before."
    np.testing.assert_array_equal(rows(given_data), X)  # which stay as they were
    assert (data.design.sizes, data.design.is_shared) == (given_data.design.sizes, given_data.design.is_shared)
    np.testing.assert_array_equal(data.targets, given_data.targets)
    if step == "standardise":
        assert ("constant" in data.notes[-1]) == (np.ptp(X, axis=0) == 0.0).any()
        assert ("not centred" in data.notes[-1]) == (storage == "sparse")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("step", STEPS)
def test_held_out_rows_get_the_statistics_of_the_training_rows(layout: str, storage: str, step: str) -> None:
    alone = make(TRAINING, layout, storage)
    both = preprocess(alone.with_held_out(make(HELD_OUT, layout, storage)), [step])
    np.testing.assert_array_equal(rows(both), rows(preprocess(alone, [step])))
    np.testing.assert_allclose(rows(both.held_out), by_hand(step, storage, HELD_OUT, TRAINING), atol=1e-12)
    assert both.held_out.design.sizes == make(HELD_OUT, layout, storage).design.sizes
    assert both.held_out.design.is_sparse == both.design.is_sparse


@pytest.mark.parametrize("storage", STORAGES)
def test_unit_rows_at_the_ends_of_the_number_range(storage: str) -> None:
    X = np.array([[1e300, -1e300], [1e-300, 0.0], [5e-324, 5e-324], [0.0, 0.0]])
    data = preprocess(make(X, storage=storage), ["unit_rows"])
    half = math.sqrt(0.5)
    np.testing.assert_allclose(rows(data), np.array([[half, -half], [1, 0], [half, half], [0, 0]]))
    assert data.notes == ("Before.", "Every row was scaled to unit length; 1 zero row(s) stayed zero.")


def test_tfidf_does_not_count_stored_zeros() -> None:
    stored = sp.csr_array((np.array([1.0, 0.0, 2.0]), np.array([0, 0, 1]), np.array([0, 1, 2, 3])), shape=(3, 2))
    made = TaskData.shared(stored, np.ones((3, 1)))
    np.testing.assert_allclose(rows(preprocess(made, ["tfidf"])), rows(preprocess(make(stored.toarray()), ["tfidf"])))


def test_svd_of_a_large_sparse_matrix_agrees_with_the_full_one() -> None:
    generator = np.random.default_rng(1)
    X = sp.csr_array(generator.standard_normal((1100, 1050)) * (generator.random((1100, 1050)) < 0.01))
    first, second = (preprocess(TaskData.shared(X, np.ones((1100, 1))), ["svd:3"]) for _ in range(2))
    np.testing.assert_array_equal(rows(first), rows(second))
    squares, vectors = np.linalg.eigh((X.T @ X).toarray())
    V = vectors[:, :-4:-1]
    signs = np.sign(V[np.argmax(np.abs(V), axis=0), np.arange(3)])
    np.testing.assert_allclose(rows(first), (X @ V) * signs, atol=1e-8 * np.sqrt(squares[-1]))


def test_steps_are_applied_in_order_and_told() -> None:
    X = np.array([[3.0, 0, 1], [0, 2, 1], [1, 1, 0], [4, 0, 0]])
    data = preprocess(make(X), ["tfidf", "unit_rows", "svd:2"])
    one_by_one = preprocess(preprocess(preprocess(make(X), "tfidf"), "unit_rows"), "svd:2")
    np.testing.assert_array_equal(rows(data), rows(one_by_one))
    assert data.notes == one_by_one.notes
    assert len(data.notes) == 4
    assert data.name == "made"
    assert all(preprocess(data, none) is data for none in (["none"], [], "none"))


def test_truth_and_signs_are_kept_only_where_they_still_hold() -> None:
    labels = synthetic_l1inf(tasks=2, features=6, examples=5)
    np.testing.assert_array_equal(preprocess(labels, ["unit_rows"]).truth["W"], labels.truth["W"])
    dropped = preprocess(labels, ["standardise"])
    assert dropped.truth == {}
    assert "do not belong to the features after 'standardise'" in dropped.notes[-1]
    real = synthetic_sparse_low_rank(tasks=3, features=4, examples=5, rank=1, zero_features=0, zero_tasks=0)
    assert preprocess(real, ["unit_rows"]).truth == {}
    orientation = np.where(RNG.random((4, 2)) < 0.5, 1.0, -1.0)
    for step in STEPS:
        data = preprocess(replace(make(TRAINING), orientation=orientation), [step])
        assert (data.orientation is None) == (step == "svd:2")
        assert data.orientation is None or data.orientation is orientation
        assert (f"signs of the coefficients do not belong to the features after '{step}'" in data.notes[-1]) == (step == "svd:2")


def blobs(n: int = 60, m: int = 3, storage: str = "dense", held_out: int = 0) -> TaskData:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, m, n + held_out)
    X = rng.standard_normal((n + held_out, 4)) + 1.5 * rng.standard_normal((m, 4))[classes]
    Y = np.where(classes[:, None] == np.arange(m), 1.0, -1.0)
    matrix = sp.csr_array(X) if storage == "sparse" else X
    data = TaskData.shared(matrix[:n], Y[:n], name="blobs", truth={"W": np.ones((4, m))})
    return data.with_held_out(TaskData.shared(matrix[n:], Y[n:])) if held_out else data


def kernel(A: Any, B: Any, width: float) -> Any:
    return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2) / width)


def pairs(X: Any) -> Any:
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)[np.triu_indices(len(X), k=1)]


def perceptron(data: TaskData, width: float, largest: int) -> list[int]:
    """The support points, one example after another, with the kernel written out."""
    X, classes, m = rows(data), data.targets.argmax(axis=1), data.n_tasks
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


@pytest.mark.parametrize(
    ("step", "largest", "n", "storage"),
    [
        *(
            (KERNEL + arguments, largest, 60, storage)
            for arguments, largest in (("", 10**9), (":7", 7), (":all:2.5", 10**9), (":5:median", 5))
            for storage in STORAGES
        ),
        (KERNEL, 10**9, 1203, "dense"),  # more rows than a block
    ],
)
def test_features_are_kernels_on_the_perceptrons_mistakes(step: str, largest: int, n: int, storage: str) -> None:
    data = blobs(n, storage=storage, held_out=10)
    X = rows(data)
    width = {"": pairs(X).mean(), "median": np.median(pairs(X)), "2.5": 2.5}["".join(step.split(":")[2:])]
    support = perceptron(data, width, largest)
    result = preprocess(data, step)
    np.testing.assert_allclose(rows(result), kernel(X, X[support], width), atol=1e-9)
    np.testing.assert_allclose(rows(result.held_out), kernel(rows(data.held_out), X[support], width), atol=1e-9)
    np.testing.assert_array_equal(result.orientation, data.targets[support])
    assert result.truth == result.held_out.truth == {}
    np.testing.assert_array_equal(result.targets, data.targets)
    assert f"on the {len(support)} of {n} examples that are support points" in result.notes[0]
    zero_one = TaskData.shared(X, (data.targets == 1.0).astype(float))  # are classes too
    np.testing.assert_allclose(rows(preprocess(zero_one, step)), rows(result), atol=1e-9)


def test_kernels_of_odd_data() -> None:
    many = blobs(n=1500)
    note = preprocess(many, f"{KERNEL}:3:median").notes[0]  # of some rows
    assert abs(float(note.split("width ")[1].split(" ")[0]) / np.median(pairs(rows(many))) - 1.0) < 0.05
    one_class = preprocess(TaskData.shared(np.arange(8.0).reshape(4, 2), np.tile([1.0, -1.0], (4, 1))), KERNEL)
    np.testing.assert_array_equal(one_class.orientation, [[1.0, -1.0]])
    assert preprocess(TaskData.shared(np.ones((4, 2)), 2.0 * np.eye(4) - 1.0), f"{KERNEL}:all:1").n_features == 4
    data = preprocess(digits(examples=600, held_out=200), [KERNEL])
    W = np.linalg.lstsq(rows(data), data.targets, rcond=None)[0]
    assert np.mean(data.held_out.design.forward(W).argmax(axis=1) == data.held_out.targets.argmax(axis=1)) > 0.9
    assert preprocess(data, "unit_rows").orientation is data.orientation


@pytest.mark.parametrize("step", ["stumps:15", "stumps:15:3", "trees:15:2", "trees:15:2:3"])
def test_features_are_the_outputs_of_learners_of_the_training_rows(step: str) -> None:
    data = synthetic_multiclass(examples=60, held_out=20, classes=4, features=6, relevant=3)
    X, seed = rows(data), 3 if step.endswith(":3") else 0
    learners = draw_stumps(X, 15, seed) if "stumps" in step else grow_trees(X, data.targets.argmax(axis=1), 15, 2, seed)
    result = preprocess(data, step)
    np.testing.assert_array_equal(rows(result), learners.outputs(X))
    np.testing.assert_array_equal(rows(result.held_out), learners.outputs(rows(data.held_out)))
    np.testing.assert_array_equal(result.targets, data.targets)
    assert result.truth == {}
    assert "Features were replaced by the outputs of 15" in result.notes[0]
    assert f"seed {seed}" in result.notes[0]


def test_stumps_are_all_there_are_and_those_of_the_rows_of_all_tasks() -> None:
    data = TaskData.shared([[0.0], [1.0], [1.0]], [[1.0], [-1.0], [-1.0]])
    result = preprocess(data, "stumps:10")
    np.testing.assert_array_equal(rows(result), [[-1.0, 1.0], [1.0, -1.0], [1.0, -1.0]])
    assert result.notes[0].endswith("of 2 decision stumps drawn with seed 0. There are no more; 10 were asked for.")
    Xs = [np.arange(4.0)[:, None], np.array([[10.0], [2.5]])]
    own = preprocess(TaskData.per_task(Xs, [np.ones(4), np.ones(2)]), "stumps:100")
    np.testing.assert_array_equal(own.design.block(1), draw_stumps(np.concatenate(Xs), 100).outputs(Xs[1]))


DEPENDENT = make(np.array([[1.0, 2, 3], [2, 4, 6], [0, 1, 0], [1, 3, 3]]))
X3, EYE = np.arange(12.0).reshape(4, 3), np.where(np.eye(4) == 1.0, 1.0, -1.0)
ONES = TaskData.shared(np.ones((3, 2)), [[1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
SMALL = make(1e-3 * TRAINING).with_held_out(make(np.full((2, 4), 1.79e308)))
REFUSED: list[tuple[TaskData, Any, str]] = [
    *((make(X3 - 2.0, storage=storage), "tfidf", "needs counts of at least 0, but X has -2") for storage in STORAGES),
    (make(TRAINING).with_held_out(make(-np.ones((2, 4)))), "tfidf", "'tfidf' needs counts of at least 0, but X has -1"),
    (make(np.array([[1e308, 1], [-1e308, 2], [1e308, 3]])), "standardise", "X after preprocessing step 'standardise' has"),
    (SMALL, "standardise", "X after preprocessing step 'standardise' has inf"),
    (make(np.zeros((4, 3))), "svd:1", "at most the rank of the data, 0"),
    (DEPENDENT, "svd:4", r"svd:4': K must be at most min\(rows, features\) = 3"),
    (DEPENDENT, "svd:3", "svd:3': K must be at most the rank of the data, 2"),
    (DEPENDENT, "standardize", "unknown preprocessing step 'standardize': did you mean 'standardise'"),
    (DEPENDENT, "perceptron_kernels", "unknown preprocessing step 'perceptron_kernels'"),
    (DEPENDENT, "", "unknown preprocessing step ''"),
    (DEPENDENT, 3, "preprocess must be names of steps, not 3"),
    *((DEPENDENT, f"svd{end}", f"'svd{end}' must be svd:K, with whole numbers") for end in ("", ":", ":0", ":-1", ":2.5", ":\u0663")),
    *(
        (ONES, step, f"preprocessing step '{step}' must be {step.partition(':')[0]}:J")
        for step in (
            "stumps", "stumps:", "stumps:0", "stumps:x", "stumps:5:-1", "stumps:5:1:1", "stumps:2.5",
            "trees", "trees:5", "trees:5:0", "trees:0:2", "trees:5:2:x", "trees:5:2:1:1",
        )
    ),
    *(
        (DEPENDENT, KERNEL + end, f"preprocessing step '{KERNEL}{end}' must be {KERNEL}, {KERNEL}:S or {KERNEL}:S:WIDTH")
        for end in (":", "::", ":0", ":-1", ":2.5", ":x", ":10:", ":10:0", ":10:-1", ":10:inf", ":10:nan", ":10:mode", ":10:1:1", ":\u0663")
    ),
    *(
        (data, step, message)
        for step in (KERNEL, "trees:5:2")
        for data, message in (
            (TaskData.per_task([X3, X3], [EYE[:, 0], EYE[:, 1]]), "needs classes over one design"),
            (TaskData.shared(X3, EYE[:, 0]), "needs at least 2 classes, but there is 1 task"),
            (TaskData.shared(X3, EYE[:, [0, 1, 3]]), "exactly one label \\+1 a row, but row 2 has 0"),
            (TaskData.shared(X3, np.column_stack([EYE, EYE[:, 0]])), "exactly one label \\+1 a row, but row 0 has 2"),
            (TaskData.shared(X3, 2.0 * EYE), "labels must be -1/\\+1"),
        )
    ),
    (ONES, KERNEL, "mean squared distance of rows is 0: give a width above 0"),
    (ONES, "stumps:5", "preprocessing step 'stumps:5': X has no usable feature"),
    (ONES, "trees:5:2", "preprocessing step 'trees:5:2': X has no usable feature"),
    (TaskData.shared(X3, [[1.0, -1.0]] * 4), "trees:5:2", "'trees:5:2': classes must be at least 2 different ones"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "step", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_done(data: TaskData, step: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        preprocess(data, [step])
