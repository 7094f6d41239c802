"""Draws training and held-out examples from those of a data set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array

Rows = NDArray[np.intp]


class Sample(NamedTuple):
    """Two disjoint sets of row numbers, each ascending."""

    training: Rows
    held_out: Rows
    proportional: bool
    """Whether there were classes whose proportions were kept."""

    def note(self, n: int, what: str, seed: int) -> str:
        """Return a sentence that says what was drawn."""
        numbers = f"{len(self.training)}" + (f" and {len(self.held_out)} held-out" if len(self.held_out) else "")
        how = "in the classes' proportions" if self.proportional else "at random"
        return f"{numbers} of {n} {what} were drawn {how}, with seed {seed}."


def sample(classes: NDArray[Any], examples: int | None, held_out: int, seed: int, *, what: str, minimum: int = 1) -> Sample | None:
    """`examples` rows for training (None: all that are left) and `held_out` others, each in the proportions of `classes` up to rounding.

    The training rows do not depend on `held_out`, where their number is given. None where all rows are for training.
    """
    seed, n_held_out = whole_number("seed", seed), whole_number("held_out", held_out)
    n = len(classes)
    if examples is None:
        if n_held_out == 0:
            return None
        if n - n_held_out < minimum:
            raise InputError(f"held_out must be at most {n - minimum}, so that {minimum} of {n} {what} are left, not {n_held_out}")
        n_training = n - n_held_out
    else:
        n_training = whole_number("examples", examples, minimum=minimum)
        if n_training > n:
            raise InputError(f"examples must be at most {n}, the number of {what}, not {n_training}")
        if n_training + n_held_out > n:
            raise InputError(f"examples = {n_training} and held_out = {n_held_out} are more than the {n} {what} there are")
    order = _proportional(classes, np.random.default_rng(seed))
    return Sample(np.sort(order[:n_training]), np.sort(order[n_training : n_training + n_held_out]), len(np.unique(classes)) > 1)


def classes_of(targets: Array) -> NDArray[Any]:
    """Return the class of each row where there is exactly one +1 among labels -1/+1 (or one label), else the same for all rows."""
    labels = np.abs(targets) == 1.0
    if labels.all() and targets.shape[1] == 1:
        return targets[:, 0]
    if labels.size and labels.all() and (np.count_nonzero(targets == 1.0, axis=1) == 1).all():
        return targets.argmax(axis=1)
    return np.zeros(len(targets))


def _proportional(classes: NDArray[Any], generator: np.random.Generator) -> Rows:
    """Return a random order of all rows, of which every beginning has the proportions of `classes` up to rounding."""
    order = generator.permutation(len(classes))
    quantile = np.empty(len(classes))
    for label in np.unique(classes):
        members = order[classes[order] == label]
        # The i-th of a class's members stands at the quantile (i + 1/2) / size; the lowest quantiles over all classes
        # are a proportional sample, and the first of every class comes before the second of any.
        quantile[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.asarray(order[np.argsort(quantile[order], kind="stable")])
