"""Few combinations of parameters that have every pair of values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest


def pairwise_cases(*axes: Sequence[Any]) -> list[Any]:
    """Return all combinations of the axes as parameters of a test; those that add no pair of values of two axes are slow.

    The choice is greedy: always the first combination that adds the most pairs.
    """
    pairs = {case: set(combinations(enumerate(case), 2)) for case in product(*(range(len(axis)) for axis in axes))}
    missing, chosen = set().union(*pairs.values()), set()
    while missing:
        best = max(pairs, key=lambda case: len(pairs[case] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return [
        pytest.param(*(axis[i] for axis, i in zip(axes, case, strict=True)), marks=[] if case in chosen else pytest.mark.slow)
        for case in pairs
    ]
