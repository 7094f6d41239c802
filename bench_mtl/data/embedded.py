"""Data sets that come with an installed package, so that a first run needs no download."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench_mtl.checks import whole_number
from bench_mtl.data.task_data import TaskData
from bench_mtl.errors import InputError

_GREY_LEVELS = 16.0
_CLASSES = 10


def digits(*, examples: int | None = None, seed: int = 0) -> TaskData:
    """scikit-learn's handwritten digits as 10 one-against-all tasks over one shared design.

    X (n x 64) holds the 8 x 8 grey levels divided by 16; Y (n x 10) is +1 where the image shows the digit, else -1.

    Parameters
    ----------
    examples : use only so many of the 1797 images (at least 10), in the classes' proportions; None uses all.
    seed : of the choice of images; without effect when all are used.

    Raises
    ------
    InputError : `examples` outside 10..1797, a negative seed.

    Notes
    -----
    E. Alpaydin and C. Kaynak, "Optical recognition of handwritten digits", UCI repository 1998 (its test part).
    """
    from sklearn.datasets import load_digits

    seed = whole_number("seed", seed)
    X, classes = load_digits(return_X_y=True)
    notes = [f"Grey levels were divided by {_GREY_LEVELS:g}.", "The 10 digits became one-against-all tasks."]
    if examples is not None:
        n = whole_number("examples", examples, minimum=_CLASSES)
        if n > len(classes):
            raise InputError(f"examples must be at most {len(classes)}, the number of images, not {n}")
        rows = _proportional_sample(classes, n, np.random.default_rng(seed))
        notes.append(f"{n} of {len(classes)} images were drawn in the classes' proportions, with seed {seed}.")
        X, classes = X[rows], classes[rows]
    Y = np.where(classes[:, None] == np.arange(_CLASSES), 1.0, -1.0)
    return TaskData.shared(X / _GREY_LEVELS, Y, name="digits", notes=tuple(notes))


def _proportional_sample(classes: NDArray[np.int64], n: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """`n` row numbers, ascending, whose classes have the proportions of `classes` up to rounding."""
    order = generator.permutation(len(classes))
    quantile = np.empty(len(classes))
    for label in np.unique(classes):
        members = order[classes[order] == label]
        # The i-th of a class's members stands at the quantile (i + 1/2) / size; the lowest quantiles over all classes
        # are a proportional sample, and the first of every class comes before the second of any.
        quantile[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.sort(order[np.argsort(quantile[order], kind="stable")[:n]])
