"""Probabilities that the logistic loss gives to scores."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.losses import log_sum_exp


def of_two_classes(scores: Array) -> Array:
    """Return the logarithms of 1 / (1 + exp(score)) and 1 / (1 + exp(-score)), n x 2, for n scores of the second class."""
    return -np.logaddexp(0.0, np.stack([scores, -scores], axis=1))


def of_one_against_all(scores: Array) -> Array:
    """Return the logarithms of 1 / (1 + exp(-score)) over the sum of these over the classes, n x K: each class has been learned apart."""
    logs = -np.logaddexp(0.0, -scores)
    return np.asarray(logs - log_sum_exp(logs)[:, None])
