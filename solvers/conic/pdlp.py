"""OR-tools' PDLP: an interface that CVXPY's own does not replace, and the wheels that cannot be loaded."""

from __future__ import annotations

import functools
import importlib.util
from importlib import metadata
from typing import Any


@functools.cache
def pdlp_interface() -> Any:
    """CVXPY's interface to PDLP without bounds on variables, which CVXPY 1.9 fails on, and with what PDLP tells of its run."""
    from cvxpy.reductions.solution import Solution
    from cvxpy.reductions.solvers.conic_solvers.pdlp_conif import PDLP

    class UnboundedPDLP(PDLP):  # type: ignore[misc]
        BOUNDED_VARIABLES = False

        def name(self) -> str:
            return "UNBOUNDED_PDLP"

        def solve_via_data(self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None) -> dict[str, Any]:
            from google.protobuf.json_format import ParseDict
            from ortools.pdlp import solve_log_pb2, solvers_pb2
            from ortools.pdlp.python import pdlp

            parameters = ParseDict(solver_opts, solvers_pb2.PrimalDualHybridGradientParams())
            result = pdlp.primal_dual_hybrid_gradient(data[self.PDLP_MODEL], parameters)
            log = result.solve_log
            found = self._get_convergence_info(log.solution_stats, log.solution_type)
            return {
                "primal": result.primal_solution,
                "dual": result.dual_solution,
                "status": self._status_map(log),
                "value": float("-inf") if found is None else found.primal_objective,
                "attr": {"solve_time": log.solve_time_sec, "num_iters": log.iteration_count},
                "out_of_time": log.termination_reason == solve_log_pb2.TERMINATION_REASON_TIME_LIMIT,
            }

        def invert(self, solution: dict[str, Any], inverse_data: Any) -> Any:
            inverted = super().invert(solution, inverse_data)
            return Solution(inverted.status, inverted.opt_val, inverted.primal_vars, inverted.dual_vars, solution["attr"])

    return UnboundedPDLP()


def pdlp_clash() -> str | None:
    """Why PDLP cannot be loaded here: later wheels of OR-tools bring a HiGHS of their own under the file name that highspy's has."""
    version = metadata.version("ortools")
    if tuple(int(part) for part in version.split(".")[:2]) < (9, 12) or importlib.util.find_spec("highspy") is None:
        return None
    return f"ortools {version} cannot be loaded beside highspy, whose library it replaces: install ortools<9.12"
