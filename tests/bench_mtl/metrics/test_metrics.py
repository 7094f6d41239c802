"""Metrics against hand-worked cases, and what must hold for any scores."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from bench_mtl.core.errors import InputError
from bench_mtl.metrics import (
    average_auc,
    average_equal_error_rate,
    error_rate,
    feature_selection,
    macro_f1,
    micro_f1,
    multitask_auc,
    pair_sign_test,
)

#: Few different values, so that ties are common.
_scores = st.integers(-3, 3).map(float) | st.floats(-5, 5, allow_nan=False, width=16)


@st.composite
def one_task(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    n = draw(st.integers(2, 12))
    labels = draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n).filter(lambda found: len(set(found)) == 2))
    return labels, draw(st.lists(_scores, min_size=n, max_size=n))


#: Labels and scores, with the AUC of both rules of ties, the equal error rate, the error rate and F1, counted by hand.
TASKS: dict[str, tuple[list[int], list[float], float, float, float, float, float]] = {
    "perfect": ([1, 1, -1], [2.0, 1.0, -1.0], 1, 1, 0, 0, 1),
    "reversed": ([-1, 1], [1.0, -1.0], 0, 0, 1, 1, 0),
    "constant": ([1, -1, -1, 1], [0.0, 0.0, 0.0, 0.0], 1 / 2, 0, 1 / 2, 1 / 2, 0),
    "ties": ([1, 1, -1, -1, 1, -1], [3.0, 1.0, 1.0, 0.0, -1.0, -2.0], 13 / 18, 2 / 3, 1 / 3, 1 / 3, 2 / 3),
    "unequal": ([1, -1, -1, -1, 1], [0.5, 0.25, 1.0, -3.0, 0.25], 7 / 12, 1 / 2, 2 / 5, 2 / 5, 2 / 3),
    "rare": ([-1, -1, 1, -1, -1, -1, -1], [0.0, 2.0, 1.0, 1.0, -1.0, 3.0, -2.0], 7 / 12, 1 / 2, 3 / 7, 3 / 7, 2 / 5),
}
LABELS, SCORES = ([task[place] for task in TASKS.values()] for place in (0, 1))


def test_by_hand() -> None:
    columns = dict(zip(("half", "lost", "equal", "error", "f1"), zip(*(task[2:] for task in TASKS.values()), strict=True), strict=True))
    positive = np.array([labels.count(1) for labels in LABELS])
    for ties in ("half", "lost"):
        mean, weighted = average_auc(LABELS, SCORES, ties=ties), multitask_auc(LABELS, SCORES, ties=ties)
        assert mean.per_task == weighted.per_task == pytest.approx(columns[ties])
        assert mean.value == pytest.approx(np.mean(columns[ties]))
        assert weighted.value == pytest.approx(np.average(columns[ties], weights=positive))
    measures: dict[str, Any] = {"equal": average_equal_error_rate, "error": error_rate, "f1": macro_f1}
    for name, measure in measures.items():
        found = measure(LABELS, SCORES, names=list(TASKS))
        assert found.per_task == pytest.approx(columns[name])
        assert found.value == pytest.approx(np.mean(columns[name]))
        assert found.counted == tuple(TASKS)
    pooled = micro_f1([*LABELS, [-1]], [*SCORES, [0.0]])
    assert pooled.value == pytest.approx(14 / 25)
    assert pooled.per_task == pytest.approx((*columns["f1"], math.nan), nan_ok=True)
    assert math.isnan(micro_f1([-1, -1], [0.0, -1.0]).value)
    assert math.isnan(average_auc([1, 1], [0.0, 1.0]).value)


@given(one_task(), st.sampled_from([np.arctan, np.cbrt, lambda x: 3 * x - 7, np.sinh]))
def test_an_increasing_map_changes_no_ranking(task: tuple[list[int], list[float]], increasing: Any) -> None:
    labels, scores = task
    spread = np.unique(scores, return_inverse=True)[1].astype(float)  # whole numbers, whose order no rounding of the map can blur
    for measure in (average_auc, multitask_auc, average_equal_error_rate):
        assert measure(labels, increasing(spread)).value == measure(labels, scores).value


class TestSkippedTasks:
    labels = np.array([[1, 1, -1], [1, -1, -1], [1, 1, -1]])
    scores = np.array([[0.3, 0.9, 0.1], [0.2, 0.1, -0.4], [0.1, 0.5, 2.0]])

    @pytest.mark.parametrize("measure", [average_auc, multitask_auc, average_equal_error_rate])
    def test_one_sided_tasks_are_named_and_counted(self, measure: Any) -> None:
        found = measure(self.labels, self.scores, names=["all", "some", "none"])
        assert found.counted == ("some",)
        assert found.skipped == (("all", "no negative example"), ("none", "no positive example"))
        assert found.value == found.per_task[0] == measure(self.labels[:, 1], self.scores[:, 1]).value
        assert found.sentence == "1 of 3 tasks counted; skipped: all (no negative example), none (no positive example)"

    def test_macro_f1_skips_what_has_no_positive_example_alone(self) -> None:
        found = macro_f1(self.labels, self.scores)
        assert found.counted == ("0", "1")
        assert found.skipped == (("2", "no positive example"),)


class TestSignTest:
    def test_by_hand(self) -> None:
        # as many positives as negatives, f ranks all pairs rightly, g none: eight wins whatever the pairs
        labels, f = [1] * 8 + [-1] * 8, np.array([1.0] * 8 + [0.0] * 8)
        found = pair_sign_test(labels, f, -f)
        assert (found.pooled.pairs, found.pooled.wins, found.pooled.losses) == (8, 8, 0)
        assert found.pooled.p_value == pytest.approx(2**-8)
        assert pair_sign_test(labels, f, -f, alternative="two-sided").pooled.p_value == pytest.approx(2**-7)
        assert pair_sign_test(labels, -f, f).pooled.p_value == 1.0

    def test_tasks_are_pooled_by_their_counts(self) -> None:
        generator = np.random.default_rng(3)
        labels = [np.where(np.arange(n) % 3 == 0, 1, 0) for n in (30, 60, 45)] + [np.ones(4)]
        first, second = ([generator.standard_normal(len(y)) + scale * y for y in labels] for scale in (1.5, 0.2))
        found = pair_sign_test(labels, first, second, names=list("abcd"))
        assert found.counted == ("a", "b", "c")
        assert found.skipped == (("d", "no negative example"),)
        assert [task.pairs for task in found.per_task] == [10, 20, 15]
        for task in (*found.per_task, found.pooled):
            assert task.p_value == pytest.approx(binomtest(task.wins, task.wins + task.losses, alternative="greater").pvalue)
        assert found.pooled.wins == sum(task.wins for task in found.per_task)
        assert found.pooled.losses == sum(task.losses for task in found.per_task)
        assert found.pooled.p_value < min(task.p_value for task in found.per_task)

    def test_no_example_is_in_two_pairs(self) -> None:
        """Both rank each pair by its positive's place alone: distinct places give counts that repetition could not."""
        labels = np.array([1] * 6 + [-1] * 9)
        f = np.r_[[1.0, 1.0, -1.0, -1.0, -1.0, 1.0], np.zeros(9)]
        for seed in range(20):
            found = pair_sign_test(labels, f, -f, seed=seed).pooled
            assert (found.pairs, found.wins, found.losses) == (6, 3, 3)
        labels, f = -labels, -f
        assert pair_sign_test(labels, f, -f).pooled.pairs == 6

    @given(one_task(), st.integers(0, 5), st.data())
    def test_exchanging_the_models_exchanges_wins_and_losses(
        self, task: tuple[list[int], list[float]], seed: int, data: st.DataObject
    ) -> None:
        """Wins become losses, on the same pairs."""
        labels, first = task
        second = data.draw(st.lists(_scores, min_size=len(labels), max_size=len(labels)))
        one, other = pair_sign_test(labels, first, second, seed=seed).pooled, pair_sign_test(labels, second, first, seed=seed).pooled
        assert (one.wins, one.losses) == (other.losses, other.wins)
        assert one.p_value == pytest.approx(pair_sign_test(labels, second, first, seed=seed, alternative="less").pooled.p_value)


class TestFeatureSelection:
    def test_by_hand(self) -> None:
        W = np.array([[0.0, 1e-9], [0.0, 0.0], [2.0, -1.0], [0.0, 0.5]])
        truth = np.array([[1.0, 0.0], [0.0, -3.0], [0.0, 1.0], [0.0, 0.0]])
        found = feature_selection(W, truth)
        assert (found.selected, found.relevant, found.hits) == (3, 3, 2)
        assert (found.precision, found.recall) == (2 / 3, 2 / 3)
        above = feature_selection(W, truth, threshold=1e-6)
        assert (above.selected, above.hits, above.precision, above.recall) == (2, 1, 1 / 2, 1 / 3)

    def test_nothing_selected_has_a_recall_of_zero_and_no_precision(self) -> None:
        found = feature_selection(np.zeros(3), np.eye(3))
        assert math.isnan(found.precision)
        assert found.recall == 0.0
        assert math.isnan(feature_selection(np.eye(3), np.zeros(3)).recall)


@pytest.mark.parametrize(
    ("labels", "scores", "match"),
    [
        ([1, 2], [0.0, 1.0], "labels must be -1/"),
        ([1, np.nan], [0.0, 1.0], "labels has NaN at index 1"),
        ([[1, -1]], [[0.0, np.inf]], "scores of task 0 has inf at index 1"),
        ([1, -1], [0.0, 1.0, 2.0], "scores of task 0 are 3, but its labels are 2"),
        ([[1, -1]], [[0.0, 1.0], [0.0, 1.0]], "scores are of 2 tasks, but labels of 1"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), r"labels must be a matrix .* shape \(2, 2, 2\)"),
        ([], [], "labels of task 0 are empty"),
        (np.ones((2, 0)), np.ones((2, 0)), "labels must be of at least one task"),
    ],
    ids=["third label", "missing label", "infinite score", "lengths", "tasks", "dimensions", "empty", "no task"],
)
def test_bad_input_is_refused_by_name(labels: Any, scores: Any, match: str) -> None:
    for measure in (average_auc, multitask_auc, average_equal_error_rate, error_rate, macro_f1, micro_f1):
        with pytest.raises(InputError, match=match):
            measure(labels, scores)


def test_bad_options_are_refused_by_name() -> None:
    labels, scores = [1, -1], [0.0, 1.0]
    with pytest.raises(InputError, match="ties must be one of half, lost"):
        average_auc(labels, scores, ties="won")
    with pytest.raises(InputError, match="names must be 1 different names"):
        average_auc(labels, scores, names=["a", "b"])
    with pytest.raises(InputError, match="threshold must be finite"):
        macro_f1(labels, scores, threshold=math.nan)
    with pytest.raises(InputError, match="alternative must be one of"):
        pair_sign_test(labels, scores, [1.0, 0.0], alternative="better")
    with pytest.raises(InputError, match="truth has 2 features, but W has 3"):
        feature_selection(np.eye(3), np.eye(2))
    with pytest.raises(InputError, match="threshold must be finite and at least 0"):
        feature_selection(np.eye(3), np.eye(3), threshold=-1.0)
