"""The process that OR-tools' PDLP runs in. It is run as a file, and imports nothing that loads another HiGHS.

It reads a linear programme from its pipe, answers that it is ready, and then answers each table of parameters with what PDLP returns.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np


def serve(pipe: Connection) -> None:
    """Answer until the pipe closes."""
    from google.protobuf.json_format import ParseDict
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp
    from scipy.sparse import csr_matrix

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    programme = _programme(pdlp.QuadraticProgram(), **pipe.recv())
    one: dict[str, Any] = {
        "costs": np.ones(1),
        "rows": csr_matrix(np.ones((1, 1))),
        "bounds": {"lower": np.ones(1), "upper": np.full(1, np.inf)},
    }
    # Any code is slow when it first runs.
    pdlp.primal_dual_hybrid_gradient(_programme(pdlp.QuadraticProgram(), **one), solvers_pb2.PrimalDualHybridGradientParams())
    pipe.send("ready")
    while True:
        parameters = ParseDict(pipe.recv(), solvers_pb2.PrimalDualHybridGradientParams())
        result = pdlp.primal_dual_hybrid_gradient(programme, parameters)
        log = result.solve_log
        pipe.send({
            "ending": solve_log_pb2.TerminationReason.Name(log.termination_reason).removeprefix("TERMINATION_REASON_"),
            "primal": np.array(result.primal_solution),
            "dual": np.array(result.dual_solution),
            "seconds": log.solve_time_sec,
            "iterations": log.iteration_count,
        })  # fmt: skip


def _programme(programme: Any, costs: Any, rows: Any, bounds: Mapping[str, Any]) -> Any:
    """Minimise costs'x over x without bounds, lower <= rows x <= upper."""
    programme.objective_vector = costs
    programme.constraint_matrix = rows
    programme.constraint_lower_bounds, programme.constraint_upper_bounds = bounds["lower"], bounds["upper"]
    programme.variable_lower_bounds, programme.variable_upper_bounds = np.full_like(costs, -np.inf), np.full_like(costs, np.inf)
    return programme


if __name__ == "__main__":
    with contextlib.suppress(EOFError, OSError):
        serve(Connection(int(sys.argv[1])))
