"""MPAX in double precision."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def mpax_interface() -> Any:
    """CVXPY's interface to MPAX, after telling JAX to compute in double precision: in single precision it stalls between 1e-4 and 1e-5."""
    import jax
    from cvxpy.reductions.solvers.qp_solvers.mpax_qpif import MPAX

    class DoubleMPAX(MPAX):  # type: ignore[misc]
        def name(self) -> str:
            return "DOUBLE_MPAX"

    jax.config.update("jax_enable_x64", True)
    return DoubleMPAX()
