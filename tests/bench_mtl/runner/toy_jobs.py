"""Jobs that end in every way. Workers import this file, so it stands apart."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_mtl.core.types import Limits, Status
from bench_mtl.runner import Found

LIMITS = Limits(seconds=None, wall_seconds=60.0, memory_gib=1.0)


@dataclass(frozen=True)
class ToyJob:
    """Does what its name says."""

    what: str
    limits: Limits = LIMITS
    threads: int = 1

    @property
    def key(self) -> str:
        return self.what

    @property
    def title(self) -> str:
        return self.what

    @property
    def labels(self) -> tuple[str, str]:
        return "toy", self.what

    def compute(self, data_dir: Path | None) -> Found:
        if self.what == "raises":
            raise ValueError("no such luck")
        if self.what == "aborts":
            os.abort()
        if self.what == "holds the interpreter":
            ctypes.PyDLL(None).sleep(600)
        if self.what == "fills memory":
            blocks = []
            while True:
                blocks.append(np.ones(2**22))
        return Found({"process": os.getpid(), "numbers": [1.0, float("nan")], "folder": str(data_dir)}, Status.VERIFIED, "as it should")
