"""Which labels examples are said to have, from their scores: the rules of decision of the protocols."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from papers import Array

Mask = NDArray[np.bool_]


def by_prevalence(scores: Array, shares: Array) -> Mask:
    """Return for each label as many positive examples as its share asks for, rounded: the highest scores, of equal ones the first.

    Parameters
    ----------
    scores : examples x labels
    shares : of the labels, of the examples that are positive
    """
    order = np.argsort(-scores, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(scores))[:, None], axis=0)
    return np.asarray(ranks < np.round(shares * len(scores)))


def one_label(scores: Array) -> Mask:
    """Return for each example the label with its highest score alone, of equal ones the first."""
    chosen = np.zeros(scores.shape, dtype=bool)
    chosen[np.arange(len(scores)), np.argmax(scores, axis=1)] = True
    return chosen
