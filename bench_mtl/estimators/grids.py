"""Values of a regularisation parameter to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from bench_mtl.core.checks import is_sparse, number_or_share, real_number, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array

#: How many values there are where nobody says.
VALUES = 10


def grid_of(name: str, grid: Any, largest: Callable[[], float], ratio: float, *, is_penalty: bool) -> Array:
    """Return the values of a grid, each once, from the simplest fit to the richest: radii rise, penalties fall.

    Parameters
    ----------
    name : how messages call the grid
    grid : a number of values, which are even on a log scale from `ratio` times the largest one up to it; or the values themselves, of
        which those of a penalty may be shares of the largest one, such as "0.1 max"
    largest : computes the largest value where it is needed; where it is 0 all values give the same fit, and 1 stands for it

    Raises
    ------
    InputError : neither a number of at least 2 nor a list of at least one value, a value that is not allowed.
    """
    largest = cache(largest)
    if isinstance(grid, (int, np.integer)):
        count = whole_number(name, grid, minimum=2)
        top = largest() or 1.0
        values = np.geomspace(ratio * top, top, count)
    elif isinstance(grid, (str, bytes, Mapping)) or is_sparse(grid) or not isinstance(grid, Iterable):
        raise InputError(f"{name} must be a number of values or a list of values, not {grid!r}")
    else:
        read = (number_or_share(name, value, largest) if is_penalty else real_number(name, value) for value in grid)
        values = np.array(sorted(set(read)))
    if not len(values):
        raise InputError(f"{name} must have at least one value")
    return values[::-1] if is_penalty else values
