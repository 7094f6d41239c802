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

from bench_mtl.solvers.conic import pdlp_process
from bench_mtl.solvers.conic.linear import Programme, Solved, linear_interface

#: Seconds that the process may take to end once its pipe is closed.
_EXIT_SECONDS = 2.0


class PDLPProcess:
    """A process that holds one linear programme and solves it as often as it is asked to; it ends with this object."""

    def __init__(self, programme: Programme) -> None:
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
        bounds = {"lower": programme.lower, "upper": programme.upper}
        self._answer({"costs": programme.costs, "rows": programme.rows, "bounds": bounds})

    def __call__(self, options: Mapping[str, Any]) -> Solved:
        """Return what the process answers. Raises RuntimeError: the process has died."""
        return Solved(**self._answer(options))

    def _answer(self, message: Any) -> Any:
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
    """A CVXPY interface to PDLP without bounds on variables, which CVXPY's own fails on."""
    return linear_interface("SEPARATE_PDLP", PDLPProcess)
