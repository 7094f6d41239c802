"""OR-tools' PDLP, in a process of its own.

OR-tools since 9.12 and highspy each bring a HiGHS under the same file name. Both may be installed, but one process can load only one of
them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import weakref
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from bench_mtl.solvers.conic import pdlp_process

#: Seconds that the process may take to end once its pipe is closed.
_EXIT_SECONDS = 2.0


class PDLPProcess:
    """A process that holds one linear programme and solves it as often as it is asked to; it ends with this object."""

    def __init__(self, programme: Mapping[str, Any]) -> None:
        self._pipe, theirs = Pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", pdlp_process.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": paths},
            )
        weakref.finalize(self, _end, process, self._pipe)
        self.answer(programme)

    def answer(self, message: Any) -> Any:
        """Return what the process answers. Raises RuntimeError: the process has died."""
        try:
            self._pipe.send(message)
            return self._pipe.recv()
        except (EOFError, OSError):
            raise RuntimeError("the process of PDLP died") from None


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_EXIT_SECONDS)
    process.kill()  # nothing where it has ended
    process.wait()


@functools.cache
def pdlp_interface() -> Any:
    """A CVXPY interface to PDLP without bounds on variables, which CVXPY's own fails on; it returns the seconds and steps of PDLP's log."""
    import cvxpy.settings as words
    from cvxpy.reductions.solution import Solution
    from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver

    statuses = {"OPTIMAL": words.OPTIMAL, "PRIMAL_INFEASIBLE": words.INFEASIBLE, "DUAL_INFEASIBLE": words.UNBOUNDED}

    class SeparatePDLP(ConicSolver):  # type: ignore[misc]
        def name(self) -> str:
            return "SEPARATE_PDLP"

        def cite(self, data: Any) -> str:
            return ""

        def import_solver(self) -> None:
            import ortools  # noqa: F401 # its libraries are loaded in the other process only

        def apply(self, problem: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            data, inverse = super().apply(problem)
            lower = -data[words.B]
            upper = np.where(np.arange(lower.size) < data[words.DIMS].zero, lower, np.inf)
            programme = {"costs": data[words.C], "rows": (-data[words.A]).tocsr(), "bounds": {"lower": lower, "upper": upper}}
            return {**data, "process": PDLPProcess(programme)}, inverse

        def solve_via_data(self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None) -> dict[str, Any]:
            result = data["process"].answer(solver_opts)
            equalities, value = data[words.DIMS].zero, float("-inf")
            if result["primal"].size:
                value = float(data[words.C] @ result["primal"])
            return {
                "status": statuses.get(result["reason"], words.USER_LIMIT),
                "value": value,
                "primal": result["primal"],
                "eq_dual": result["dual"][:equalities],
                "ineq_dual": result["dual"][equalities:],
                "attr": {words.SOLVE_TIME: result["seconds"], words.NUM_ITERS: result["iterations"]},
                "out_of_time": result["reason"] == "TIME_LIMIT",
            }

        def invert(self, solution: dict[str, Any], inverse_data: Any) -> Any:
            inverted = super().invert(solution, inverse_data)
            return Solution(inverted.status, inverted.opt_val, inverted.primal_vars, inverted.dual_vars, solution["attr"])

    return SeparatePDLP()
