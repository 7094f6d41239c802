"""Which of many rows, columns or entries join a working set."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array

#: Rows, columns or entries by number.
Places: TypeAlias = NDArray[np.intp]


def joining(scores: Array, level: float, inside: Places, most: int) -> Places:
    """Return at most `most` places outside a set with scores above a level, the highest first, of equals that of the lowest number."""
    is_candidate = scores > level
    is_candidate[inside] = False
    candidates = np.flatnonzero(is_candidate)
    return candidates[np.argsort(-scores[candidates], kind="stable")[:most]]
