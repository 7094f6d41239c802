"""Jobs that end in every way, and an experiment of cheap cells. Workers import this file, so it stands apart."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import toy_state

from bench_mtl.core.types import Limits, Status
from bench_mtl.papers.experiment import Experiment, Findings, PublishedNumber, Scale, Section, Verdict
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


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    number = settings["number"]
    if number in toy_state.interrupting:
        raise KeyboardInterrupt
    toy_state.computed.append(number)
    if number in toy_state.failing:
        raise ValueError(f"{number} is unlucky")
    return Found({"square": np.float64(number**2)}, Status.INACCURATE, "nothing to prove")


def read(rows: Any) -> Findings:
    total = float(rows["square"].sum()) if len(rows) else None
    comparisons = (
        PublishedNumber("sum of squares", "14", f"{total}", Verdict.REPRODUCED, "by hand", published_value=14.0, our_value=total),
        PublishedNumber("the lost number", "?", "-", Verdict.UNKNOWN, "the page is torn | here"),
    )
    return Findings(comparisons, (Section("Squares", "All of them.", "squares", rows, rows.astype(str)),) if len(rows) else ())


EXPERIMENT = Experiment(
    name="toy",
    title="Squares",
    source="Nobody, 1900",
    about="Squares of numbers.",
    scales={
        "small": Scale(tuple({"number": number, "seed": 0} for number in range(3)), "three numbers."),
        "full": Scale(tuple({"number": number, "seed": 0} for number in range(4)), "four numbers."),
    },
    compute=compute,
    read=read,
)
