"""cuPDLPx: restarted reflected Halpern steps on linear programmes, in CUDA. CVXPY has no interface to it."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.compilation import compiling
from bench_mtl.solvers.conic.linear import Programme, Solved, linear_interface

_ENDINGS = ("OPTIMAL", "PRIMAL_INFEASIBLE", "DUAL_INFEASIBLE", "TIME_LIMIT")


@functools.cache
def cupdlpx_interface() -> Any:
    """A CVXPY interface to cuPDLPx."""
    return linear_interface("CUPDLPX", lambda programme: functools.partial(_solved, programme))


def _solved(programme: Programme, options: Mapping[str, Any]) -> Solved:
    """Return its answer; what the call takes beside the seconds that it states, the copy to the GPU among it, is set-up."""
    with compiling():
        from cupdlpx import PDLP, Model
    rows = sp.csr_matrix(programme.rows)  # it takes no sparse arrays
    model = Model(programme.costs, rows, programme.lower, programme.upper)
    model.setParams(**options)
    began = time.perf_counter()
    model.optimize()
    seconds = time.perf_counter() - began
    primal, dual = (np.zeros(0) if values is None else np.asarray(values) for values in (model.X, model.Pi))
    # By number in some releases, and by name in others.
    ending = next((name for name in _ENDINGS if model.Status in (name, getattr(PDLP, name))), str(model.Status))
    return Solved(ending, primal, dual, float(model.Runtime or seconds), int(model.IterCount or 0))
