"""`bench-mtl solve` on shards whose scheduler is lost: exit code 3, a checkpoint, and the bits of an undisturbed run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
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


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """The address of a cluster of two workers, and the processes that it is made of."""
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "scheduler.py")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    family = [child.pid for child in psutil.Process(process.pid).children(recursive=True)] + [process.pid]
    yield address, family
    end(family)
    process.stdout.close()
    process.wait()


def end(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["accelerated_gradient", "auto"])
def test_a_run_whose_scheduler_is_lost_goes_on_to_the_same_bits(solver: str, tmp_path: Path, scheduler: Any) -> None:
    address, family = scheduler
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 30)) * 10.0 ** rng.uniform(-2, 0, 30)
    Y = np.where(X @ rng.standard_normal((30, 2)) + rng.standard_normal((4000, 2)) > 0.0, 1.0, -1.0)
    manifest = write_shards(tmp_path / "set", [(X[k : k + 500], Y[k : k + 500]) for k in range(0, 4000, 500)])
    call = [
        "solve", "l1inf_glm", solver, "--data", str(manifest), "--param", "loss=logistic", "--param", "penalty=1e-5", "--target", "1e-9",
        "--iterations", "400", "--seconds", "300",
    ]  # fmt: skip
    whole, cut = tmp_path / "whole.npz", tmp_path / "cut.npz"
    bench_mtl(*call, "--checkpoint", whole)
    lost = subprocess.Popen(
        command(*call, "--cluster", address, "--checkpoint", cut, "--checkpoint-every", "0.5"), stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120.0
    while not cut.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    end(family)
    _, said = lost.communicate(timeout=120.0)
    assert lost.returncode == 3, said
    assert "go on with: bench-mtl solve" in said
    words = shlex.split(said.partition("go on with: bench-mtl ")[2])
    place = words.index("--cluster")
    bench_mtl(*words[:place], *words[place + 2 :])  # in this process, without a cluster
    with np.load(whole) as undisturbed, np.load(cut) as gone_on:
        assert sorted(undisturbed.files) == sorted(gone_on.files)
        for name in undisturbed.files:
            if undisturbed[name].dtype.kind == "f":
                np.testing.assert_array_equal(undisturbed[name], gone_on[name], err_msg=name)


def command(*arguments: Any) -> list[str]:
    return [sys.executable, "-m", "bench_mtl", *map(str, arguments)]


def bench_mtl(*arguments: Any) -> None:
    """Run a command that may miss its target."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in (0, 1), done.stderr
