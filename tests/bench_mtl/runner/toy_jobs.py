"""Jobs that end in every way. Workers import this file, so it stands apart."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from bench_mtl.core.types import Limits, Status
from bench_mtl.runner import Found

LIMITS = Limits(seconds=None, wall_seconds=60.0, memory_gib=1.0)


@dataclass(frozen=True)
class ToyJob:
    """Does what its name says. It has no key nor title, which are for those who store what it finds."""

    what: str
    limits: Limits = LIMITS
    threads: int = 1

    def compute(self, data_dir: Path | None) -> Found:
        if self.what == "raises":
            raise ValueError("no such luck")
        if self.what == "aborts":
            os.abort()
        if self.what == "sleeps":
            time.sleep(600)
        return Found({"process": os.getpid(), "numbers": [1.0, float("nan")], "folder": str(data_dir)}, Status.VERIFIED, "as it should")
