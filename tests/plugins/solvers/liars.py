"""A solver that lies: it shows a bad point as the optimum, or hides its work from the clock, each time by another deed."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import struct
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter, process_time
from types import FrameType
from typing import Any

import numpy as np

from bench_mtl.core.types import Array, Certificate, Iterate, Proof, Record, Sample, Status, Times, Tolerance
from bench_mtl.engine import clock
from bench_mtl.model.protocols import IterativeSolver, Problem


class _Bomb:
    """Writes a file in whatever process unpickles it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._path}",)


@dataclass(frozen=True)
class Lies(IterativeSolver):
    """Does its deed between two points, the zero point both times."""

    deed: str = "none"
    number: int = 0
    bomb: str = ""
    """The file that a bomb writes where it goes off."""

    name = "lies"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"lies_{self.deed}_{self.number}"

    def warm_up(self) -> None:
        if self.deed == "searches_for_the_case_in_warm_up":
            assert not any("case" in frame.f_locals for frame in _frames()), "the case is known"
        elif self.deed == "shows_no_problem":
            self._show_no_problem()

    def incompatibility(self, problem: Problem) -> str | None:
        if self.deed == "works_before_it_runs":
            time.sleep(0.5)
        elif self.deed == "never_starts":
            self._never_start()
        return None

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield Iterate(problem.zero(), None, 0)
        restore = getattr(self, f"_{self.deed}", lambda problem: None)(problem)
        try:
            for step in range(1, 40):
                yield Iterate(problem.zero(), None, step)
        finally:
            if callable(restore):
                restore()

    # Before the run

    def _show_no_problem(self) -> None:
        """Another way to run a case, which says of the zero point nothing that could be held against it."""
        from bench_mtl.runner import inprocess

        def run(self: Any, case: Any, tell: Any, deadline: Any = None) -> Any:
            tell(("phase", "warm_up", 0.0))
            tell(("sample", Sample(1e-6, 1, 1.0, Certificate(1.0, 1.0, 0.0), counted=1e-6)))
            return inprocess.Ran(Record(Status.VERIFIED, "relative gap 0.0 proven", times=Times(solve=1e-6), counted=1e-6))

        inprocess.CaseRunner.run = run  # type: ignore[method-assign]

    def _never_start(self) -> None:
        """Another driver, which finds the optimum and shows it, but never says that the run begins."""
        from bench_mtl.runner import inprocess

        def run(problem: Any, solver: Any, *, on_sample: Any, on_proof: Any, **_: Any) -> Record:
            point, step_size = problem.zero(), 1.0 / problem.lipschitz()
            for _step in range(500):
                point = problem.prox(point - step_size * problem.value_and_gradient(point)[1], step_size)
            certificate, repaired = problem.certify_repaired(Iterate(point))
            on_proof(Proof(repaired), True)
            on_sample(Sample(1e-6, 1, 1.0, certificate, counted=1e-6))
            return Record(Status.VERIFIED, "relative gap 0.0 proven", times=Times(solve=1e-6), counted=1e-6)

        inprocess.run = run  # type: ignore[assignment]

    # Bounds

    def _instance_attribute(self, problem: Any) -> None:
        value = problem.objective(problem.zero())
        problem.dual_bound = lambda point, dual: value

    def _class_attribute(self, problem: Any) -> None:
        value = problem.objective(problem.zero())
        type(problem).dual_bound = lambda self, point, dual: value

    def _class_objective(self, problem: Any) -> None:
        type(problem).objective = lambda self, point: self._optimum

    def _met_by(self, problem: Any) -> None:
        Tolerance.met_by = lambda self, certificate, scale: True  # type: ignore[method-assign]

    def _gap(self, problem: Any) -> None:
        Certificate.gap = property(lambda self: 0.0)  # type: ignore[assignment,method-assign]
        Certificate.relative_gap = property(lambda self: 0.0)  # type: ignore[assignment,method-assign]

    def _own_certify(self, problem: Any) -> None:
        value = problem.objective(problem.zero())
        problem.__dict__["certify_repaired"] = lambda iterate: (Certificate(value, value, 0.0), iterate.primal)

    def _everybodys_certify(self, problem: Any) -> None:
        value = problem.objective(problem.zero())
        Problem.certify_repaired = lambda self, iterate: (Certificate(value, value, 0.0), iterate.primal)  # type: ignore[assignment,misc]

    def _another_class(self, problem: Any) -> None:
        optimum = problem.dual_bound(None, None)

        class Easy(type(problem)):  # type: ignore[misc]
            def objective(self, point: Array) -> float:
                return optimum

        problem.__class__ = Easy

    def _weights(self, problem: Any) -> Any:
        """Zero while the run lasts, and as they were when anybody looks; through the flags of the arrays below."""
        array = problem.weights
        while array.base is not None:
            array = array.base
        before = array.copy()
        array.flags.writeable = True
        array[...] = 0.0
        optimum, problem.__dict__["_optimum"] = problem._optimum, 0.0

        def restore() -> None:
            array[...] = before
            array.flags.writeable = False
            problem.__dict__["_optimum"] = optimum

        return restore

    def _memory(self, problem: Any) -> None:
        """The target of the problem, written to through its address."""
        size = problem.target.nbytes
        ctypes.memset(problem.target.ctypes.data, 0, size)
        object.__setattr__(problem, "_optimum", 0.0)

    def _numpy(self, problem: Any) -> None:
        optimum = problem._optimum
        np.sum = lambda *arguments, **options: 2.0 * optimum

    def _modules(self, problem: Any) -> None:
        from bench_mtl.engine import driver, proofs

        value = problem.objective(problem.zero())
        false = lambda *_: (Certificate(value, value, 0.0), problem.zero())  # noqa: E731
        driver.certified = proofs.certified = false
        driver.sharpened = lambda *_: (Certificate(value, value, 0.0), False)
        for name in [name for name in sys.modules if name.startswith("bench_mtl.runner.certifier")]:
            sys.modules[name] = None  # type: ignore[assignment]

    # The frames of the driver

    def _frame_samples(self, problem: Any) -> None:
        session = next(frame.f_locals["session"] for frame in _frames() if "session" in frame.f_locals)
        value = problem.objective(problem.zero())
        session.samples[:] = [Sample(1e-6, 0, 0.0, Certificate(value, value, 0.0))]
        session.enclosure = Certificate(value, value, 0.0)

    def _garbage_collector(self, problem: Any) -> None:
        for thing in gc.get_objects():
            if type(thing).__name__ == "_Session":
                value = problem.objective(problem.zero())
                thing.enclosure = Certificate(value, value, 0.0)

    # The pipe

    def _fake_messages(self, problem: Any) -> None:
        value = problem.objective(problem.zero())
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        pipe.send(("sample", Sample(1e-6, 1, 1.0, Certificate(value, value, 0.0))))
        pipe.send(("record", Record(Status.VERIFIED, "relative gap 0.0 proven", times=Times(solve=1e-6)), None))
        pipe.send(("patterns", (), (), False))
        time.sleep(600.0)

    def _void_and_again(self, problem: Any) -> None:
        value = problem.objective(problem.zero())
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        pipe.send(("void",))
        pipe.send(("problem", {"n": 1, "d": 1, "m": 1}, (), Certificate(value, value, 0.0)))
        pipe.send(("sample", Sample(1e-6, 1, 1.0, Certificate(value, value, 0.0))))

    def _skips(self, problem: Any) -> None:
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        pipe.send(("sample", Sample(1e-6, 1, 1.0, Certificate(1.0, 1.0, 0.0))))
        pipe.send(("record", Record(Status.SKIPPED, "does not fit", times=Times(solve=1e-6)), None))
        pipe.send(("patterns", (), (), False))
        time.sleep(600.0)

    def _stays(self, problem: Any) -> None:
        """Says that it is over, and goes on."""
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        pipe.send(("record", Record(Status.INACCURATE, "over", times=Times(solve=1.0), counted=1.0), None))
        pipe.send(("patterns", (), (), False))
        time.sleep(600.0)

    def _begins_again(self, problem: Any) -> None:
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        pipe.send(("phase", "warm_up", 0.0))

    def _says_what_it_says_at_its_start(self, problem: Any) -> None:
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        pipe.send(("environment", {"numpy": "none"}))

    def _dies_with_a_false_deadline(self, problem: Any) -> None:
        (deadline,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "SharedDeadline")
        deadline.value = deadline.compiling = float("nan")
        os._exit(1)

    def _bomb(self, problem: Any) -> None:
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        data = pickle.dumps(_Bomb(self.bomb))
        for head in (struct.pack("<QI", len(data), len(data)), struct.pack("!i", len(data))):
            pipe._socket.sendall(head + data)

    def _half_a_message(self, problem: Any) -> None:
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        os.write(pipe._socket.fileno(), struct.pack("<QI", 10_000, 5_000) + b"[")

    def _endless_message(self, problem: Any) -> None:
        (pipe,) = (thing for thing in gc.get_objects() if type(thing).__name__ == "WorkerEnd")
        os.write(pipe._socket.fileno(), struct.pack("<QI", 2**62, 2**31))

    def _child(self, problem: Any) -> None:
        """A child that outlives the run and writes to whatever is open."""
        if os.fork() == 0:
            for fd in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(fd, b"\x00" * 64)
            time.sleep(600.0)
            os._exit(0)


@dataclass(frozen=True)
class Hides(IterativeSolver):
    """Descends honestly, after so many seconds of processor time, and hides most of that time from the clock."""

    deed: str = "none"
    seconds: float = 0.6

    name = "hides"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"hides_{self.deed}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield Iterate(problem.zero(), None, 0)
        undo = getattr(self, f"_{self.deed}", lambda: None)()
        if self.deed != "thread":  # on a busy machine, work on the clock would hide as much of it
            self._work()
        try:
            yield from self._descended(problem, undo)
        finally:
            clock.perf_counter = perf_counter  # nobody shall see it when it is over

    def _descended(self, problem: Any, undo: Any) -> Iterator[Iterate]:
        point, step_size = problem.zero(), 1.0 / problem.lipschitz()
        for step in range(1, 2000):
            gradient = problem.value_and_gradient(point)[1]
            point = problem.prox(point - step_size * gradient, step_size)
            yield Iterate(point, None, step)
            if callable(undo):
                undo()

    def _work(self) -> None:
        end = process_time() + self.seconds  # on a busy machine, as much as on any
        while process_time() < end:
            pass

    def _perf_counter(self) -> None:
        clock.perf_counter = lambda: 1.0

    def _everybodys_clocks(self) -> None:
        """Those of the standard library, which are anybody's to replace, by accident too."""
        time.perf_counter = lambda: -2914.0
        time.monotonic = lambda: -1e6 + time.process_time()

    def _clock_in_the_frame(self) -> Any:
        clock = next(frame.f_locals["clock"] for frame in _frames() if "clock" in frame.f_locals)

        def undo() -> None:
            clock.elapsed = 0.0

        return undo

    def _clock_class(self) -> None:
        from bench_mtl.engine.clock import Clock

        Clock.elapsed = property(lambda self: 1e-3, lambda self, value: None)  # type: ignore[assignment]

    def _idle(self) -> None:
        """Work that somebody else does, while the clock is said to stand."""
        clock.perf_counter = lambda: 1.0
        time.sleep(3.5 * self.seconds)

    def _thread(self) -> None:
        """Work in a thread while the point before is certified, which a slow certificate leaves the time for."""
        from bench_mtl.engine import driver

        original = driver.certified

        def slow(problem: Any, iterate: Any) -> Any:
            thread = threading.Thread(target=self._work)
            thread.start()
            thread.join()
            driver.certified = original
            return original(problem, iterate)

        driver.certified = slow


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
