"""Experiments of five papers, run again: a grid of cells, each run once and stored, and every published number and statement beside ours.

`python -m papers NAME` runs one from a clone; README.md beside this file tells how, and how to write another.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Matrix = Any
"""An array, or a sparse matrix of SciPy."""
