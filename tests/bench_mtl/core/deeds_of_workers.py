"""What tests ask the workers of a cluster to do. They import this, and nothing else of the tests."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.shards import Shard


class PartNumbers:
    def __call__(self, parts: Any, own: Any) -> Any:
        return parts


def targets_of(shard: Shard) -> Any:
    return shard.targets()


def rows_and(shard: Shard, number: int) -> int:
    return number + shard.matrix().shape[0]


def moments(shard: Shard) -> Any:
    return shard.matrix().T @ shard.targets()


def moments_unless_killed(shard: Shard, victim: int) -> Any:
    """Die in one process."""
    if os.getpid() == victim:
        os.kill(victim, signal.SIGKILL)
    return moments(shard)


def sum_slowly(shard: Shard, seconds: float) -> float:
    """Take a while."""
    time.sleep(seconds)
    return float(np.asarray(shard.targets()).sum())


def process_of(shard: Shard) -> int:
    return os.getpid()


def sum_alone(shard: Shard, folder: str) -> float:
    """Have too little memory for more than one shard at a time."""
    mine = Path(folder) / str(os.getpid())
    others = int(mine.read_text()) if mine.exists() else 0
    mine.write_text(str(others + 1))
    if others % 2:
        raise MemoryError("too many at once")
    return float(np.asarray(shard.targets()).sum())
