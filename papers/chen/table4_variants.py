"""Table IV under other readings of what the paper leaves open: the scale of the loss, the coding of the labels, the mean of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bench_mtl import TaskData
from papers import Array

LOSSES, LABELS, MEANS = ("sum", "mean"), ("-1/+1", "0/1"), ("raw", "centred")


class Variant(NamedTuple):
    """One reading of the paper; the features of Scene are taken as the file has them."""

    loss: str
    """"sum" over the examples, or their "mean"; with 1/2 before the squares."""
    labels: str
    """How a label that is absent and one that is present are coded."""
    mean: str
    """"raw", or "centred": every feature and every task's labels have mean 0 over the examples."""

    @property
    def words(self) -> str:
        """Return it in short."""
        return ", ".join(self)

    @classmethod
    def of(cls, settings: Mapping[Any, Any]) -> Variant | None:
        """Return the reading of a cell, or of its row; None where it is one of the normalisations."""
        found = tuple(settings.get(name) for name in cls._fields)
        return cls(*map(str, found)) if all(isinstance(value, str) for value in found) else None


VARIANTS = tuple(Variant(loss, labels, mean) for loss in LOSSES for labels in LABELS for mean in MEANS)


def as_read(data: TaskData, variant: Variant) -> TaskData:
    """Return data whose sum of squared errors is the loss of this reading.

    The mean of squares over n examples is their sum where features and labels are divided by the square root of n.

    Parameters
    ----------
    data : with one design for all tasks and labels -1/+1
    """
    X, Y = np.asarray(data.design.block(0), dtype=np.float64), np.asarray(data.targets)
    Y = 0.5 * (Y + 1.0) if variant.labels == "0/1" else Y
    if variant.mean == "centred":
        X, Y = _centred(X), _centred(Y)
    scale = 1.0 / np.sqrt(len(X)) if variant.loss == "mean" else 1.0
    return TaskData.shared(scale * X, scale * Y, name=f"{data.name}, {variant.words}")


def _centred(values: Array) -> Array:
    return np.asarray(values - values.mean(axis=0))
