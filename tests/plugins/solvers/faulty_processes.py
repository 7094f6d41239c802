"""Solvers that only a process boundary can hold: they hang, die, fill memory and start other processes."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Answer, IterativeSolver, OneShotSolver, Problem

_ENDLESS = 600.0
_GIB = 2**30


@dataclass(frozen=True)
class FaultyProcess(IterativeSolver):
    """Yields the zero point three times, does what `fault` says, and goes on to yield if that lets it.

    Faults that start processes write their numbers to files in `folder`.
    """

    fault: str
    folder: str = ""

    name = "faulty_process"
    requires = frozenset()

    @property
    def label(self) -> str:
        return self.fault

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        for step in range(3):
            yield Iterate(problem.zero(), None, step, float(step))
        _FAULTS[self.fault](Path(self.folder))
        for step in range(3, 6):
            yield Iterate(problem.zero(), None, step, float(step))


def _loop() -> None:
    while True:
        pass


def _ignore_signals_and_loop() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    _loop()


def _sleep_with_the_gil() -> None:
    ctypes.PyDLL(None).sleep(int(_ENDLESS))


def _touch(gib: float) -> None:
    """Fill zeroed memory, faster than any computation would."""
    np.zeros(int(gib * _GIB), np.uint8).fill(1)
    time.sleep(_ENDLESS)


def _hoard_slowly() -> None:
    hoard = []
    for _ in range(12 * 1024):
        hoard.append(np.ones(2**19))  # 4 MiB
        time.sleep(0.001)


def _hoard_in_a_child() -> None:
    if os.fork() == 0:
        _touch(8)
    time.sleep(_ENDLESS)


def _print(gib: float) -> None:
    chunk = (b"x" * 1023 + b"\n") * 1024
    for _ in range(int(gib * 1024)):
        os.write(1, chunk)


def _note(folder: Path, pid: int) -> None:
    part = folder / f".{pid}"
    part.write_text("")
    part.rename(folder / f"{pid}.pid")


def _fork(folder: Path) -> None:
    if os.fork() == 0:
        _note(folder, os.getpid())
        time.sleep(_ENDLESS)
        os._exit(0)
    _await_child(folder)


def _fork_in_a_session(folder: Path) -> None:
    if os.fork() == 0:
        os.setsid()
        _note(folder, os.getpid())
        time.sleep(_ENDLESS)
        os._exit(0)
    _await_child(folder)


def _fork_twice(folder: Path) -> None:
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            _note(folder, os.getpid())
            time.sleep(_ENDLESS)
        os._exit(0)
    os.waitpid(middle, 0)
    _await_child(folder)


def _start_a_program(folder: Path, **options: Any) -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", f"import time; time.sleep({_ENDLESS})"], start_new_session=True, **options)
    _note(folder, process.pid)
    process.returncode = 0  # nobody is to wait for it, nor to complain that nobody did


def _await_child(folder: Path) -> None:
    while not list(folder.glob("*.pid")):
        time.sleep(0.01)


def _flee(folder: Path) -> None:
    """Eight children, each of which is soon another child of nobody, in a session of its own, for as long as nobody stops it."""
    for _ in range(8):
        if os.fork() == 0:
            deadline = time.monotonic() + 20.0
            while time.monotonic() < deadline:
                os.setsid()
                _note(folder, os.getpid())
                time.sleep(0.02)
                if os.fork() != 0:
                    os._exit(0)
            os._exit(0)
    _await_child(folder)


def _close_files_and_loop(folder: Path) -> None:
    """Nobody can be told any more, and nobody can ask; standard output and standard error stay open."""
    _note(folder, os.getpid())
    os.closerange(3, 1024)
    _loop()


def _fork_and_both_go_on(folder: Path) -> None:
    os.fork()


_FAULTS: dict[str, Callable[[Path], object]] = {
    "loops": lambda folder: _loop(),
    "ignores_signals": lambda folder: _ignore_signals_and_loop(),
    "holds_the_gil": lambda folder: _sleep_with_the_gil(),
    "stops_itself": lambda folder: os.kill(os.getpid(), signal.SIGSTOP),
    "aborts": lambda folder: os.abort(),
    "segfaults": lambda folder: ctypes.string_at(0),
    "exits_at_once": lambda folder: os._exit(7),
    "kills_itself": lambda folder: os.kill(os.getpid(), signal.SIGKILL),
    "closes_files": lambda folder: os.closerange(0, 4096),
    "interrupts": lambda folder: signal.raise_signal(signal.SIGINT),
    "ones": lambda folder: np.ones(50 * _GIB // 8),
    "zeros": lambda folder: np.zeros(50 * _GIB // 8),
    "touches": lambda folder: _touch(8),
    "hoards_slowly": lambda folder: _hoard_slowly(),
    "hoards_in_a_child": lambda folder: _hoard_in_a_child(),
    "frees_its_memory": lambda folder: np.ones(300 * 2**17).sum(),
    "prints": lambda folder: _print(0.125),
    "prints_a_gibibyte": lambda folder: _print(1),
    "prints_without_end": lambda folder: _print(1024),
    "forks": _fork,
    "forks_in_a_session": _fork_in_a_session,
    "forks_twice": _fork_twice,
    "starts_a_program": _start_a_program,
    "starts_a_program_of_another_environment": lambda folder: _start_a_program(folder, env={}),
    "forks_and_loops": lambda folder: (_fork_in_a_session(folder), _loop()),
    "starts_a_program_of_another_environment_and_loops": lambda folder: (_start_a_program(folder, env={}), _loop()),
    "forks_and_aborts": lambda folder: (_fork_in_a_session(folder), os.abort()),
    "flees": _flee,
    "closes_files_and_loops": _close_files_and_loop,
    "both_go_on": _fork_and_both_go_on,
}


@dataclass(frozen=True)
class FaultyPhase(OneShotSolver):
    """Never comes back from the phase `hangs`, or from none."""

    hangs: str = "none"

    name = "faulty_phase"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return f"hangs_in_{self.hangs}"

    def warm_up(self) -> None:
        self._hang("warm_up")

    def build(self, problem: Problem) -> Any:
        self._hang("build")
        return problem

    def compile(self, model: Any) -> Any:
        self._hang("compile")
        return model

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        self._hang("solve")
        return Answer(Iterate(program.zero()), False, "the zero point")

    def _hang(self, phase: str) -> None:
        if phase == self.hangs:
            _loop()


_kept: list[Any] = []


@dataclass(frozen=True)
class LateRung(OneShotSolver):
    """Answers at four tolerances, each within the limit, and never comes back from the fifth."""

    name = "late_rung"
    requires = frozenset()
    tolerances = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        time.sleep(0.2 if tolerance > 1e-5 else 60.0)
        return Answer(Iterate(program.zero()), False, "the zero point")


@dataclass(frozen=True)
class Reports(OneShotSolver):
    """Answers with the zero point and says what process it was called in, after taking memory: to keep it, or only for a while.

    `number` only tells cases apart; `seconds` is how long it takes.
    """

    number: int = 0
    seconds: float = 0.0
    mib: int = 0
    keeps: bool = False

    name = "reports"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return f"reports_{self.number}"

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        memory = np.ones(self.mib * 2**17)
        if self.keeps:
            _kept.append(memory)
        time.sleep(self.seconds)
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
        info = {"pid": os.getpid(), "processors": sorted(os.sched_getaffinity(0)), **{name: os.environ.get(name) for name in names}}
        return Answer(Iterate(program.zero()), False, "the zero point", info=info)


@dataclass(frozen=True)
class Waits(IterativeSolver):
    """Yields the zero point every `pause` seconds: as long as its limits let it."""

    number: int = 0
    pause: float = 0.05

    name = "waits"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"waits_{self.number}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        for step in itertools.count():
            yield Iterate(problem.zero(), None, step, float(step))
            time.sleep(self.pause)
