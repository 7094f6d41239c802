"""What statistics refuse, by the name of the argument."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.stats import (
    data_profile,
    geometric_mean_ratio,
    holm,
    paired_test,
    performance_profile,
    power_law,
    ratio_interval,
    shifted_geometric_mean,
    shifted_mean_interval,
    sign_test,
    suitable_shift,
)


@pytest.mark.parametrize(
    ("call", "arguments", "words"),
    [
        (power_law, ([1.0, 2.0], [1.0]), "not 2 and 1"),
        (power_law, ([2.0, 2.0], [1.0, 3.0]), "two different values, not 1"),
        (power_law, ([0.0, 2.0], [1.0, 3.0]), "above zero"),
        (power_law, ([1.0, math.nan], [1.0, 3.0]), "sizes has NaN"),
        (partial(power_law, confidence=0.0), ([1.0, 2.0], [1.0, 3.0]), "confidence"),
        (ratio_interval, ([], []), "old must hold at least one instance"),
        (ratio_interval, ([[1.0]], [[1.0], [2.0]]), "not 1 and 2"),
        (ratio_interval, ([[]], [[1.0]]), r"old\[0\] must hold at least one measurement"),
        (ratio_interval, ([[1.0], [math.nan]], [[1.0], [1.0]]), r"old\[1\] has NaN"),
        (ratio_interval, ([[1.0]], [[0.0]]), r"new\[0\] must be above zero"),
        (geometric_mean_ratio, ([1.0, 0.0], [1.0, 2.0]), "above zero"),
        (geometric_mean_ratio, ([[1.0]], [[1.0]]), "dimension"),
        (shifted_mean_interval, ([[0.0]], 0.0), r"seconds\[0\] must be above zero"),
        (shifted_mean_interval, ([[1.0]], -1.0), "shift must be"),
        (shifted_geometric_mean, ([], 1.0), "at least one entry"),
        (shifted_geometric_mean, ([math.nan], 1.0), "decide first"),
        (shifted_geometric_mean, ([-1.0], 1.0), "seconds must be at least zero"),
        (shifted_geometric_mean, (["x"], 1.0), "seconds must be an array of real numbers"),
        (suitable_shift, ([1.0],), "dimension"),
        (paired_test, ([], []), "at least one entry"),
        (paired_test, ([1.0], [1.0, 2.0]), "not 1 and 2"),
        (paired_test, ([-1.0], [1.0]), "first must be at least zero"),
        (sign_test, (-1, 2), "wins must be a whole number"),
        (partial(sign_test, alternative="more"), (4, 1), "alternative must be one of"),
        (holm, ([1.5],), "between 0 and 1"),
        (performance_profile, (np.empty((0, 2)),), "at least one entry"),
        (partial(performance_profile, resolution=0.0), ([[1.0]],), "resolution must be finite and above 0"),
        (data_profile, ([["x"]],), "costs must be an array of real numbers"),
    ],
)
def test_bad_input_is_refused(call: Any, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(*arguments)
