"""Small data that tests of several solvers share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bench_mtl.data import TaskData

_RNG = np.random.default_rng(0)
_X, _Y = _RNG.standard_normal((12, 6)), np.where(_RNG.random((12, 3)) < 0.5, 1.0, -1.0)
_XS = [_RNG.standard_normal((n, 6)) for n in (4, 9, 5)]
_YS = [np.where(_RNG.random(len(X)) < 0.5, 1.0, -1.0) for X in _XS]

#: Labels of three tasks in every layout.
LAYOUTS = {
    "shared": TaskData.shared(_X, _Y),
    "shared CSR": TaskData.shared(sp.csr_array(_X * (np.abs(_X) > 0.5)), _Y),
    "per task": TaskData.per_task(_XS, _YS),
    "per task CSR": TaskData.per_task([sp.csr_array(X * (np.abs(X) > 0.5)) for X in _XS], _YS),
}
