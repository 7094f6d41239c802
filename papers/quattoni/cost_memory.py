"""The peak memory of a projection, measured in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from bench_mtl import BenchError
from bench_mtl.runner import forget_peak, peak_mib

#: Larger blocks are given back to the system when they are freed, and not kept for the next ones, where the C library is glibc.
_THRESHOLD = 4096


def peak_bytes(rows: int, columns: int, method: str, share: float, seed: int) -> float:
    """Return the bytes that a projection needs besides its matrix, its result among them, at its peak.

    A new process draws the matrix, projects small ones so that all code is there, and compares its largest resident memory before and
    after. The method is as `project_l1inf_ball` takes it, `share` the radius over the norm.
    Raises BenchError: the process fails.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
        "MALLOC_MMAP_THRESHOLD_": str(_THRESHOLD),
    }
    command = [sys.executable, "-P", "-m", __name__, json.dumps([rows, columns, method, share, seed])]
    ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise BenchError(f"the process that measures memory ended with {ended.returncode}: {ended.stderr.strip()[-300:]}")
    return float(json.loads(ended.stdout))


def _measured(rows: int, columns: int, method: str, share: float, seed: int) -> float:
    """Return the growth of the peak of this process; nothing larger than the matrix is there before."""
    import numpy as np

    from bench_mtl.projections import project_l1inf_ball

    generator = np.random.default_rng(seed)
    A = np.empty((rows, columns))
    generator.standard_normal(out=A)
    radius = share * sum(float(np.abs(row).max()) for row in A)  # `norm_l1inf` would leave memory that the projection takes again
    for _ in range(3):
        project_l1inf_ball(generator.standard_normal((40, 40)), 40.0 * share, method=method)
    forget_peak()
    before = _peak()
    project_l1inf_ball(A, radius, method=method)
    return _peak() - before


def _peak() -> float:
    """Return the largest resident memory of this process in bytes, since `forget_peak` where the system can forget."""
    found = peak_mib()
    if found is not None:
        return found * 2**20
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(largest if sys.platform == "darwin" else largest * 1024)


if __name__ == "__main__":
    print(json.dumps(_measured(*json.loads(sys.argv[1]))))
