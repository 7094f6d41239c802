"""What is read from means and intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bench_mtl.papers import Verdict
from bench_mtl.papers.summaries import Mean, judged_high, judged_not_below, judged_order, mean

MISSING = mean([])


def test_an_interval_is_that_of_scipy() -> None:
    values = [0.3, 0.5, 0.1, 0.9]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert mean(values).value == pytest.approx((low + high) / 2.0)
    assert mean(values).half == pytest.approx((high - low) / 2.0)
    assert mean(values).text(2) == "0.45 ± 0.54"
    assert mean([0.25]).text(3, sign=True) == "+0.250"
    assert math.isnan(mean([0.25]).half)
    assert MISSING.text() == "-"


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([Mean(2.0, 1.0, 5), Mean(3.0, 1.0, 5)], Verdict.REPRODUCED),
        ([Mean(2.0, 1.0, 5), Mean(0.5, 1.0, 5)], Verdict.UNKNOWN),
        ([Mean(2.0, 1.0, 5), Mean(-2.0, 1.0, 5)], Verdict.NOT_REPRODUCED),
        ([Mean(2.0, 1.0, 5), MISSING], Verdict.UNKNOWN),
        ([Mean(-2.0, 1.0, 5), MISSING], Verdict.NOT_REPRODUCED),
        ([Mean(2.0, math.nan, 1)], Verdict.UNKNOWN),
        ([MISSING], Verdict.NOT_RUN),
        ([], Verdict.NOT_RUN),
    ],
)
def test_an_order(differences: list[Mean], verdict: Verdict) -> None:
    named = dict(zip("abc", differences, strict=False))
    assert judged_order(named, 1.0).verdict == verdict
    turned = {name: each._replace(value=-each.value) for name, each in named.items()}
    assert judged_order(turned, -1.0).verdict == verdict


def test_small_differences_decide_nothing_though_their_interval_is_smaller_still() -> None:
    for value, verdict in ((0.3, Verdict.REPRODUCED), (0.2, Verdict.UNKNOWN), (-0.2, Verdict.UNKNOWN), (-0.3, Verdict.NOT_REPRODUCED)):
        judged = judged_order({"a": Mean(value, 0.01, 5)}, 1.0, least=0.25)
        assert judged.verdict == verdict
        assert "below 0.25 decide nothing" in judged.why


def test_what_is_missing_is_said() -> None:
    why = judged_order({"a": Mean(2.0, 1.0, 5), "b": MISSING, "c": Mean(2.0, 1.0, 4)}, 1.0, "examples").why
    assert "no pair at b examples" in why
    assert "(5 pairs, fewer at c 4)" in why


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        (Mean(0.0, 0.9, 5), Verdict.REPRODUCED),
        (Mean(0.0, 20.0, 2), Verdict.UNKNOWN),  # undecided is not the same as not below
        (Mean(-0.9, 0.05, 5), Verdict.REPRODUCED),
        (Mean(-1.5, 0.4, 5), Verdict.NOT_REPRODUCED),
        (Mean(-1.5, 0.6, 5), Verdict.UNKNOWN),
        (Mean(5.0, math.nan, 1), Verdict.UNKNOWN),
        (MISSING, Verdict.NOT_RUN),
    ],
)
def test_not_below_by_a_margin(difference: Mean, verdict: Verdict) -> None:
    assert judged_not_below({"a": difference}, 1.0).verdict == verdict


def test_high() -> None:
    assert judged_high({10: Mean(0.95, 0.1, 3)}, 0.9).verdict == Verdict.REPRODUCED
    assert judged_high({10: Mean(0.95, 0.1, 3), 20: Mean(0.85, 0.1, 3)}, 0.9).verdict == Verdict.NOT_REPRODUCED
    assert judged_high({10: MISSING}, 0.9).verdict == Verdict.NOT_RUN
