"""`bench-mtl solve` on shards whose scheduler is lost: exit code 3, a checkpoint, and the bits of an undisturbed run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from bench_mtl.data import write_shards

pytest.importorskip("distributed", reason="Dask is not installed")

SCHEDULER = """
import time, distributed
if __name__ == "__main__":
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit=0)
    print(cluster.scheduler_address, flush=True)
    time.sleep(600)
"""


def bench_mtl(*arguments: Any) -> list[str]:
    return [sys.executable, "-m", "bench_mtl", *map(str, arguments)]


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process and all that it has started."""
    with suppress(psutil.NoSuchProcess):
        for pid in [*(child.pid for child in psutil.Process(process.pid).children(recursive=True)), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["accelerated_gradient", "auto"])
def test_a_run_whose_scheduler_is_lost_goes_on_to_the_same_bits(solver: str, here: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 30)) * 10.0 ** rng.uniform(-2, 0, 30)
    Y = np.where(X @ rng.standard_normal((30, 2)) + rng.standard_normal((4000, 2)) > 0.0, 1.0, -1.0)
    manifest = write_shards(here / "set", [(X[k : k + 500], Y[k : k + 500]) for k in range(0, 4000, 500)])
    call = ["solve", "l1inf_glm", solver, "--data", manifest, "--param", "loss=logistic", "--param", "penalty=1e-5"]
    call += ["--target", "1e-9", "--iterations", "400", "--seconds", "300"]
    assert subprocess.run(bench_mtl(*call, "--checkpoint", "whole.npz"), timeout=300, check=False).returncode in (0, 1)
    (here / "scheduler.py").write_text(SCHEDULER)
    with subprocess.Popen([sys.executable, "scheduler.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as scheduler:
        try:
            assert scheduler.stdout is not None
            cluster = ["--cluster", scheduler.stdout.readline().strip()]
            words = bench_mtl(*call, *cluster, "--checkpoint", "cut.npz", "--checkpoint-every", "0.5")
            with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as lost:
                deadline = time.monotonic() + 120.0
                while not Path("cut.npz").exists() and time.monotonic() < deadline:
                    time.sleep(0.05)
                end(scheduler)
                _, said = lost.communicate(timeout=120.0)
        finally:
            end(scheduler)
    assert lost.returncode == 3, said
    again = shlex.split(said.partition("go on with: bench-mtl ")[2])
    place = again.index("--cluster")
    del again[place : place + 2]  # in one process, without a cluster
    assert subprocess.run(bench_mtl(*again), timeout=300, check=False).returncode in (0, 1)
    with np.load("whole.npz") as undisturbed, np.load("cut.npz") as gone_on:
        assert sorted(undisturbed.files) == sorted(gone_on.files)
        for name in undisturbed.files:
            if undisturbed[name].dtype.kind == "f":
                np.testing.assert_array_equal(undisturbed[name], gone_on[name], err_msg=name)
