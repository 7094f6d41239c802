"""MPAX: restarted primal-dual hybrid gradients on linear and quadratic programmes, by JAX.

CVXPY's interface to it computes in float32, on whichever device JAX takes first, and compiles anew in every call, inside of what it times.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.compilation import compiling
from bench_mtl.core.device_moves import moving
from bench_mtl.solvers.accelerator.device import first_device, on_device


class _Timed(NamedTuple):
    """An answer of MPAX."""

    result: Any
    seconds: float


@functools.cache
def mpax_interface() -> Any:
    """A CVXPY interface to MPAX in float64 on a device that is named, with its seconds; compiling is on no clock."""
    import cvxpy.settings as words
    from cvxpy.reductions.solvers.qp_solvers.mpax_qpif import MPAX

    class TimedMPAX(MPAX):  # type: ignore[misc]
        def name(self) -> str:
            return "TIMED_MPAX"

        def solve_via_data(self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None) -> _Timed:
            return _solved(data, solver_opts)

        def invert(self, solution: _Timed, inverse_data: Any) -> Any:
            inverted = super().invert(solution.result, inverse_data)
            inverted.attr[words.SOLVE_TIME] = solution.seconds
            return inverted

    return TimedMPAX()


def _solved(data: Mapping[str, Any], options: Mapping[str, Any]) -> _Timed:
    """Return the answer to 1/2 x'Px + q'x over A x = b, F x <= g and bounds of x; a QP only where P is not 0."""
    import cvxpy.settings as words
    import jax

    with compiling():
        import mpax
    settings = dict(options)
    device, method = first_device(settings.pop("device")), getattr(mpax, settings.pop("algorithm"))
    P, q = data[words.P], data["q"]
    lower, upper = (
        np.full_like(q, end) if bounds is None else bounds
        for bounds, end in ((data[words.LOWER_BOUNDS], -np.inf), (data[words.UPPER_BOUNDS], np.inf))
    )
    rest = (q, -data[words.A], -data[words.B], -data[words.F], -data[words.G], lower, upper)
    size = sum(12 * part.nnz if hasattr(part, "nnz") else part.nbytes for part in (P, *rest))
    with on_device(), jax.default_device(device):
        with moving(size):
            model = jax.block_until_ready(mpax.create_qp(P, *rest) if P.nnz else mpax.create_lp(*rest))
        with compiling():
            program = jax.jit(method(warm_start=False, verbose=False, **settings).optimize).lower(model).compile()
        began = time.perf_counter()
        result = jax.block_until_ready(program(model))
        return _Timed(result, time.perf_counter() - began)
