"""Solvers whose children fill memory at full speed, and that count for themselves how far they came."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Answer, OneShotSolver

_FILL = """
import mmap, os, struct, sys
count = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0)
step, hoard, filled = 2**18, [], 0
while True:
    hoard.append(mmap.mmap(-1, step, mmap.MAP_PRIVATE))
    hoard[-1].write(bytes([1]) * step)
    filled += step
    struct.pack_into("<q", count, 8 * int(sys.argv[2]), filled)
"""


@dataclass(frozen=True)
class Hoarder(OneShotSolver):
    """Starts `children` processes that fill memory, each in its own way, and writes into the file `counts` how many bytes each has filled.

    The first number of the file is what this process had when it started them.
    """

    children: int
    counts: str

    name = "hoarder"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return Path(self.counts).name

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        Path(self.counts).write_bytes(bytes(8 * (1 + self.children)))
        with open(self.counts, "r+b") as file:
            count = mmap.mmap(file.fileno(), 0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        struct.pack_into("<q", count, 0, pages * mmap.PAGESIZE)
        for child in range(1, self.children + 1):
            if child % 3 == 0:
                subprocess.Popen([sys.executable, "-S", "-c", _FILL, self.counts, str(child)], start_new_session=True)
            elif os.fork() == 0:
                if child % 3 == 1:
                    os.setsid()
                _fill(count, child)
        time.sleep(600.0)
        return Answer(Iterate(program.zero()), False, "the zero point")


def _fill(count: mmap.mmap, child: int) -> None:
    step, hoard, filled = 2**18, [], 0
    while True:
        hoard.append(mmap.mmap(-1, step, mmap.MAP_PRIVATE))
        hoard[-1].write(bytes([1]) * step)
        filled += step
        struct.pack_into("<q", count, 8 * child, filled)
