"""The steps stumps and trees: outputs of weak learners as features, the same learners for held-out rows."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, preprocess, synthetic_multiclass
from bench_mtl.weak_learners import draw_stumps, grow_trees


def small() -> TaskData:
    return synthetic_multiclass(examples=60, held_out=20, classes=4, features=6, relevant=3)


@pytest.mark.parametrize("step", ["stumps:15", "stumps:15:3", "trees:15:2", "trees:15:2:3"])
def test_features_are_the_outputs_of_learners_of_the_training_rows(step: str) -> None:
    data = small()
    assert data.held_out is not None
    X = data.design.block(0)
    seed = 3 if step.endswith(":3") else 0
    learners = draw_stumps(X, 15, seed) if "stumps" in step else grow_trees(X, data.targets.argmax(axis=1), 15, 2, seed)
    result = preprocess(data, step)
    assert result.held_out is not None
    np.testing.assert_array_equal(result.design.block(0), learners.outputs(X))
    np.testing.assert_array_equal(result.held_out.design.block(0), learners.outputs(data.held_out.design.block(0)))
    np.testing.assert_array_equal(result.targets, data.targets)
    assert result.truth == {}
    assert "Features were replaced by the outputs of 15" in result.notes[0]
    assert f"seed {seed}" in result.notes[0]


def test_a_note_says_that_there_are_no_more() -> None:
    data = TaskData.shared([[0.0], [1.0], [1.0]], [[1.0], [-1.0], [-1.0]])
    result = preprocess(data, "stumps:10")
    np.testing.assert_array_equal(result.design.block(0), [[-1.0, 1.0], [1.0, -1.0], [1.0, -1.0]])
    assert result.notes[0].endswith("of 2 decision stumps drawn with seed 0. There are no more; 10 were asked for.")


def test_stumps_of_tasks_with_rows_of_their_own() -> None:
    Xs = [np.arange(4.0)[:, None], np.array([[10.0], [2.5]])]
    result = preprocess(TaskData.per_task(Xs, [np.ones(4), np.ones(2)]), "stumps:100")
    expected = draw_stumps(np.concatenate(Xs), 100)
    np.testing.assert_array_equal(result.design.block(1), expected.outputs(Xs[1]))
    assert result.n_features == 10


@pytest.mark.parametrize(
    "step",
    ["stumps", "stumps:", "stumps:0", "stumps:x", "stumps:5:-1", "stumps:5:1:1", "stumps:2.5",
     "trees", "trees:5", "trees:5:0", "trees:0:2", "trees:5:2:x", "trees:5:2:1:1"],
)  # fmt: skip
def test_other_arguments_are_refused(step: str) -> None:
    with pytest.raises(InputError, match=f"preprocessing step '{step}' must be {step.partition(':')[0]}:J"):
        preprocess(small(), step)


def test_data_that_do_not_fit_are_refused() -> None:
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(InputError, match=r"'trees:5:2' needs classes, exactly one label \+1 a row, but row 1 has 2"):
        preprocess(TaskData.shared(X, [[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]), "trees:5:2")
    with pytest.raises(InputError, match="'trees:5:2': classes must be at least 2 different ones"):
        preprocess(TaskData.shared(X, [[1.0, -1.0]] * 3), "trees:5:2")
    with pytest.raises(InputError, match="'trees:5:2' needs classes over one design"):
        preprocess(TaskData.per_task([X, X], [np.ones(3), np.ones(3)]), "trees:5:2")
    for step in ("stumps:5", "trees:5:2"):
        with pytest.raises(InputError, match=f"preprocessing step '{step}': X has no usable feature"):
            preprocess(TaskData.shared(np.ones((3, 2)), [[1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]]), step)
