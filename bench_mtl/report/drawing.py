"""Draws the figures of a report; of many of them most in a second process, while this one writes the rest of the report."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bench_mtl.report import figures

if TYPE_CHECKING:
    import pandas as pd

#: As SVG and as PNG.
Image: TypeAlias = tuple[bytes, bytes]

#: A second process takes a second or two to start, as long as a few figures take.
FEWEST_TO_SHARE = 8

#: Of many figures the share that is left to this process, which has the tables and the exports to write meanwhile.
SHARE_KEPT = 0.3


@dataclass(frozen=True)
class Job:
    """What `figures.convergence` is to draw."""

    points: pd.DataFrame
    runs: pd.DataFrame
    targets: tuple[float, ...]
    styles: Mapping[str, figures.LineStyle]

    def draw(self) -> Image:
        return figures.files(figures.convergence(self.points, self.runs, self.targets, self.styles))


class Drawing:
    """Figures on their way: begun when it is made, there when `images` returns. Use as a context manager."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        jobs = list(jobs)
        kept = round(SHARE_KEPT * len(jobs)) if len(jobs) >= FEWEST_TO_SHARE and (os.cpu_count() or 1) > 1 else len(jobs)
        self._own, self._given = jobs[:kept], jobs[kept:]
        self._thread = ThreadPoolExecutor(1)  # it only waits for the other process
        self._awaited = self._thread.submit(_drawn_elsewhere, self._given)

    def __enter__(self) -> Drawing:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def images(self) -> list[Image]:
        """All of them, in the order of the jobs; the same bytes wherever they were drawn."""
        own = [job.draw() for job in self._own]
        given = self._awaited.result()
        return own + ([job.draw() for job in self._given] if given is None else given)


def _drawn_elsewhere(jobs: Sequence[Job]) -> list[Image] | None:
    """None where no other process could do it."""
    if not jobs:
        return []
    code = "from bench_mtl.report.drawing import serve; serve()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(jobs), capture_output=True, env=environment, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    images: list[Image] = pickle.loads(done.stdout)
    return images


def serve() -> None:
    """What the other process does: jobs in by its input, images out by its output."""
    jobs: list[Job] = pickle.load(sys.stdin.buffer)
    pickle.dump([job.draw() for job in jobs], sys.stdout.buffer)
