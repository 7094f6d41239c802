"""What the generators share: independent random streams of one seed, shares, label noise, held-out examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.model.task_data import TaskData


def test_stream(seed: int) -> np.random.Generator:
    """Return the stream of the split "test": independent of ``default_rng(seed)``, which draws coefficients and training examples."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))


def held_out_stream(seed: int) -> np.random.Generator:
    """Return the stream of held-out examples, independent of those of both splits."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))


def block_stream(seed: int, number: int) -> np.random.Generator:
    """Return the stream of a block of examples, independent of those of other blocks and of ``default_rng(seed)``."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3, number)))


def drawn(
    draw: Callable[[np.random.Generator, int], tuple[Matrix, Array]], generator: np.random.Generator, n: int, n_held_out: int, seed: int,
    name: str, truth: dict[str, Array],
) -> TaskData:  # fmt: skip
    """Return n examples that `draw` makes from a generator, and others from the stream of held-out examples."""
    data = TaskData.shared(*draw(generator, n), name=name, truth=truth)
    if not n_held_out:
        return data
    return data.with_held_out(TaskData.shared(*draw(held_out_stream(seed), n_held_out), name=f"{name}, held out"))


def share_of(name: str, value: Any, what: str, *, zero: bool = False, maximum: float = 1.0) -> float:
    """Return `value` if it is a share: in (0, maximum], or [0, maximum] where `zero` is allowed."""
    share = real_number(name, value, strict=not zero)
    if share > maximum:
        raise InputError(f"{name} must be at most {maximum:g} (it is the share of {what}), not {share:g}")
    return share


def some_rows(generator: np.random.Generator, n: int, share: float) -> NDArray[np.intp]:
    """round(share n) of n row numbers, at random."""
    return generator.choice(n, size=round(share * n), replace=False)


def signs_of(values: Array) -> Array:
    """Return labels -1/+1, where 0 counts as +1."""
    return np.where(values >= 0.0, 1.0, -1.0)
