"""What statistics refuse, by the name of the argument."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from bench_mtl import InputError, stats


@pytest.mark.parametrize(
    ("call", "arguments", "words"),
    [
        (stats.power_law, ([1.0, 2.0], [1.0]), "not 2 and 1"),
        (stats.power_law, ([2.0, 2.0], [1.0, 3.0]), "two different values, not 1"),
        (stats.power_law, ([0.0, 2.0], [1.0, 3.0]), "above zero"),
        (stats.power_law, ([1.0, math.nan], [1.0, 3.0]), "sizes has NaN"),
        (partial(stats.power_law, confidence="0.9"), ([1.0, 2.0], [1.0, 3.0]), "confidence"),
        (partial(stats.ratio_interval, seed=-1), ([[1.0, 2.0], [3.0]], [[1.0], [2.0]]), "seed"),
        (partial(stats.power_law, confidence=0.0), ([1.0, 2.0], [1.0, 3.0]), "confidence"),
        (stats.ratio_interval, ([], []), "old must hold at least one instance"),
        (stats.ratio_interval, ([[1.0]], [[1.0], [2.0]]), "not 1 and 2"),
        (stats.ratio_interval, ([[]], [[1.0]]), r"old\[0\] must hold at least one measurement"),
        (stats.ratio_interval, ([[1.0]], [[0.0]]), r"new\[0\] must be above zero"),
        (stats.geometric_mean_ratio, ([[1.0]], [[1.0]]), "dimension"),
        (stats.geometric_mean_ratio, ([0.0, 1.0], [1.0, 1.0]), "old must be above zero"),
        (stats.geometric_mean_ratio, ([1.0, 1.0], [1.0, 1.0, 3.0]), "not 2 and 3"),
        (stats.ratio_interval, (3.0, 2.0), "old must be a list of measurements"),
        (stats.ratio_interval, (np.array(3.0), [[1.0]]), "old must be a list of measurements"),
        (stats.shifted_geometric_mean, (np.ma.array([1.0, 100.0], mask=[0, 1]), 1.0), "masked"),
        (stats.shifted_geometric_mean, (np.array([1 + 2j, 1.0]), 1.0), "complex"),
        (stats.joint_confidence, (2.0, 3), "confidence"),
        (stats.power_law, ([1e10, math.nextafter(1e10, 2e10)], [1.0, 2.0]), "differ by more than rounding"),
        (stats.holm, ([10**400],), "p_values must be an array of real numbers"),
        (stats.shifted_mean_interval, ([[0.0]], 0.0), r"seconds\[0\] must be above zero"),
        (stats.shifted_mean_interval, ([[1.0]], -1.0), "shift must be"),
        (stats.shifted_geometric_mean, ([math.nan], 1.0), "decide first"),
        (stats.shifted_geometric_mean, ([-1.0], 1.0), "seconds must be at least zero"),
        (stats.suitable_shift, ([1.0],), "dimension"),
        (stats.paired_test, ([1.0], [1.0, 2.0]), "not 1 and 2"),
        (stats.sign_test, (-1, 2), "wins must be a whole number"),
        (partial(stats.sign_test, alternative="more"), (4, 1), "alternative must be one of"),
        (stats.holm, ([1.5],), "between 0 and 1"),
        (stats.performance_profile, (np.empty((0, 2)),), "at least one entry"),
        (partial(stats.performance_profile, resolution=0.0), ([[1.0]],), "resolution must be finite and above 0"),
    ],
)
def test_bad_input_is_refused(call: Any, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(*arguments)
