"""Data sets that come with an installed package, so that a first run needs no download."""

from __future__ import annotations

import numpy as np

from bench_mtl.data.selection import sample
from bench_mtl.model.task_data import TaskData

_GREY_LEVELS = 16.0
_CLASSES = 10


def digits(*, examples: int | None = None, held_out: int = 0, seed: int = 0) -> TaskData:
    """scikit-learn's handwritten digits as 10 one-against-all tasks over one shared design.

    X (n x 64) holds the 8 x 8 grey levels divided by 16; Y (n x 10) is +1 where the image shows the digit, else -1.

    Parameters
    ----------
    examples : the number of images to use, of 1797 (at least 10), in the classes' proportions; None uses all.
    held_out : the number of other images, in the same proportions, as `TaskData.held_out`.
    seed : of the choice of images; without effect when all are used for training.

    Raises
    ------
    InputError : `examples` outside 10..1797, more images than there are, a negative number or seed.

    Notes
    -----
    E. Alpaydin and C. Kaynak, "Optical recognition of handwritten digits", UCI repository 1998 (its test part).
    """
    from sklearn.datasets import load_digits

    X, classes = load_digits(return_X_y=True)
    drawn = sample(classes, examples, held_out, seed, what="images", minimum=_CLASSES)
    X, Y = X / _GREY_LEVELS, np.where(classes[:, None] == np.arange(_CLASSES), 1.0, -1.0)
    notes: tuple[str, ...] = (f"Grey levels were divided by {_GREY_LEVELS:g}.", "The 10 digits became one-against-all tasks.")
    if drawn is None:
        return TaskData.shared(X, Y, name="digits", notes=notes)
    notes = (*notes, drawn.note(len(classes), "images", seed))
    data = TaskData.shared(X[drawn.training], Y[drawn.training], name="digits", notes=notes)
    if not len(drawn.held_out):
        return data
    return data.with_held_out(TaskData.shared(X[drawn.held_out], Y[drawn.held_out], name="digits, held out"))
