"""Which features a model uses, against those that are relevant in truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.checks import real_array, real_number
from bench_mtl.core.errors import InputError


@dataclass(frozen=True)
class FeatureSelection:
    """Features selected against features relevant."""

    selected: int
    relevant: int
    hits: int
    """Features selected that are relevant."""

    @property
    def precision(self) -> float:
        """hits / selected; NaN where nothing is selected."""
        return self.hits / self.selected if self.selected else math.nan

    @property
    def recall(self) -> float:
        """hits / relevant; NaN where nothing is relevant."""
        return self.hits / self.relevant if self.relevant else math.nan


def feature_selection(W: Any, truth: Any, *, threshold: float = 0.0) -> FeatureSelection:
    """Count the features with a coefficient above `threshold` in size for at least one task, and those of them that are true ones.

    The threshold 0 is the papers' rule, right for points of projections, whose zeros are exact; a smoothed or interior method needs a
    larger one. `W` and `truth` are coefficients of the same features, features x tasks, each of any number of tasks; a vector is one task.
    NaN or inf, another shape, another number of features and a negative threshold are an InputError.

    Source: Quattoni et al., ICML 2009, section 5.
    """
    used = []
    for name, value, limit in (("W", W, real_number("threshold", threshold)), ("truth", truth, 0.0)):
        matrix = real_array(name, value)
        if matrix.ndim not in (1, 2):
            raise InputError(name, matrix.shape, "have shape features x tasks")
        used.append(np.asarray(np.atleast_2d(np.abs(matrix.T) > limit).any(axis=0)))
    if len(used[0]) != len(used[1]):
        raise InputError(f"truth has {len(used[1])} features, but W has {len(used[0])}")
    return FeatureSelection(int(used[0].sum()), int(used[1].sum()), int((used[0] & used[1]).sum()))
