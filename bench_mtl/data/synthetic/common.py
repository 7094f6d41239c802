"""What the generators share: sizes and shares, independent random streams of one seed, examples of training and held-out ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import whole_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.types import Array, Matrix
from bench_mtl.model.task_data import TaskData

SPLITS = ("train", "test")
#: Of streams: of the split "test", of held-out examples, and of blocks, whose number comes after it.
TEST, HELD_OUT, BLOCKS = 1, 2, 3


def stream_of(seed: int, *key: int) -> np.random.Generator:
    """Return a stream independent of those of other keys, and of ``default_rng(seed)``, which draws coefficients and training examples."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def drawn(
    draw: Callable[[np.random.Generator, int], tuple[Matrix, Array]], generator: np.random.Generator, counts: tuple[int, int, int],
    name: str, W: Array,
) -> TaskData:  # fmt: skip
    """Return examples that `draw` makes from a generator, and held-out ones from a stream of their own; `counts` are the numbers of both
    and the seed, and W are the true coefficients."""
    n, n_held_out, seed = counts
    data = TaskData.shared(*draw(generator, n), name=name, truth={"W": frozen(W)})
    if not n_held_out:
        return data
    return data.with_held_out(TaskData.shared(*draw(stream_of(seed, HELD_OUT), n_held_out), name=f"{name}, held out"))


def sizes(**values: Any) -> list[int]:
    """Return the values, each a whole number of at least 1."""
    return [whole_number(name, value, minimum=1) for name, value in values.items()]


def some_rows(generator: np.random.Generator, n: int, share: float) -> NDArray[np.intp]:
    """round(share n) of n row numbers, at random."""
    return generator.choice(n, size=round(share * n), replace=False)


def signs_of(values: Array) -> Array:
    """Return labels -1/+1, where 0 counts as +1."""
    return np.where(values >= 0.0, 1.0, -1.0)
