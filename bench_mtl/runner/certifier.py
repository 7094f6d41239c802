"""A process that certifies again what solvers show, and never runs or imports the code of any of them.

It builds each problem itself, from the data, and is given nothing but arrays. A solver can change its own process as it likes; what a row
says is what this one finds.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bench_mtl.core.types import Certificate, Proof, Tolerance
from bench_mtl.engine.driver import describe
from bench_mtl.engine.proofs import contradiction, sharpened
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Instance
from bench_mtl.model.patterns import PackedPattern, parts, patterns_of
from bench_mtl.model.protocols import Problem
from bench_mtl.runner.channel import ParentEnd, WorkerEnd
from bench_mtl.runner.confinement import confine
from bench_mtl.runner.gathered import Message
from bench_mtl.runner.inprocess import CaseRunner
from bench_mtl.runner.own_process import begin
from bench_mtl.runner.placing import Placed, descriptor_of
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import Process, start
from bench_mtl.runner.wire import UnreadableError

#: How long it may take to start, to build a problem, and to certify the proofs of a run, seconds.
MOST_SECONDS = 600.0


class Prepared(NamedTuple):
    """A problem that stands ready."""

    seconds: float
    """Processor time that it took to build it and to compile what it calls."""
    point_bytes: int
    dual_bytes: int


class Certified(NamedTuple):
    """What the proofs of a run prove."""

    verdicts: tuple[Certificate | str, ...]
    """One a proof, in their order; a sentence where one proves nothing."""
    scale: float
    baseline: Certificate
    contradiction: str | None
    """Evidence that the problem itself is at fault."""
    seconds: float
    """The longest that one proof took, its measures included."""
    patterns: tuple[PackedPattern, ...]
    """Those of the point of the last proof."""


class UncertifiableError(Exception):
    """The proofs of a run cannot be certified, for reasons that are not the proofs'."""


class Certifier:
    """The process seen from its parent. It is started when it is first needed, and again when it has died. Belongs to one thread."""

    def __init__(self, setting: Setting) -> None:
        self._setting = replace(setting, solvers_of="")
        self._process: Process | None = None
        self._pipe: ParentEnd | None = None
        self.longest_preparation = 0.0
        """Processor seconds of the slowest of all preparations, the imports of the first included."""
        self.data: Placed | None = None
        """The data of the instances that it is asked for from now on, where they are placed."""

    def prepare(self, instance: Instance, seconds: float = MOST_SECONDS) -> Prepared | None:
        """Build a problem and keep it; None where that fails, or takes longer than this, for the run itself shows how."""
        try:
            prepared = Prepared(*self._asked("prepare", instance, seconds=seconds))
        except UncertifiableError:
            return None
        self.longest_preparation = max(self.longest_preparation, prepared.seconds)
        return prepared

    def certify(self, instance: Instance, proofs: Sequence[Proof], target: float, names: tuple[str, ...] = ()) -> Certified:
        """Certify the proofs of a run, and find the patterns of the parts of the last one's point, which have these names.

        Raises
        ------
        UncertifiableError : the problem cannot be built, or the process dies twice or takes too long.
        """
        found = Certified(*self._asked("certify", instance, tuple(proofs), target, names))
        if len(found.verdicts) != len(proofs):  # the code of a problem may have written what it likes
            self.close()
            raise UncertifiableError(f"{len(found.verdicts)} verdicts on {len(proofs)} proofs")
        return found

    def start(self) -> None:
        """Start the process, without waiting for it."""
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        with ours, theirs, open(os.devnull, "wb") as nowhere:
            self._process = start("bench_mtl.runner.certifier:serve", self._setting, [theirs.fileno()], nowhere.fileno())
            self._pipe = ParentEnd(ours.detach())
            self._pipe.most_arrays = 0
        with contextlib.suppress(BrokenPipeError):  # it is dead already, which the first question finds out
            self._pipe.send(self._setting)

    def end(self) -> None:
        """Kill the process. Safe to call from another thread."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """`end`, and leave nothing behind."""
        self.end()
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is not None:
            process.close()
        if pipe is not None:
            pipe.close()

    def _asked(self, what: str, *request: Any, seconds: float = MOST_SECONDS) -> Message:
        """Ask, once more where the process has died."""
        try:
            return self._ask(what, *request, seconds=seconds)
        except _GoneError:
            return self._ask(what, *request, seconds=seconds)

    def _ask(self, what: str, *request: Any, seconds: float) -> Message:
        try:
            self.start()
            assert self._pipe is not None
            self._pipe.send((what, *request), descriptor_of(self.data))
            answer = self._pipe.answer(seconds)
        except (EOFError, OSError, UnreadableError) as error:
            self.close()
            raise _GoneError(f"its process died ({describe(error)})") from None
        if answer is None:
            self.close()
            raise UncertifiableError(f"it took more than {seconds:g} s")
        kind, *content = answer
        if kind == "failed":
            raise UncertifiableError(*content)
        if kind != _ANSWERS[what]:
            self.close()
            raise _GoneError(f"its process answered '{kind}'")
        return tuple(content)


#: How a process answers what it is asked for; "failed" and a sentence where it cannot.
_ANSWERS = {"prepare": "prepared", "certify": "certified"}


class _GoneError(UncertifiableError):
    """The process has died."""


def serve(pipe_fd: int, parent: int) -> None:
    """Answer requests until the pipe closes. The answers are data in the form of `bench_mtl.runner.wire`."""
    begin(parent, "bench_certifier")
    pipe = WorkerEnd(pipe_fd)
    with contextlib.suppress(EOFError, BrokenPipeError):
        setting: Setting = pipe.receive()
        confine(setting.guarded)  # problems may be somebody else's too
        runner: CaseRunner | None = None
        while True:
            what, instance, *rest = pipe.receive()
            try:
                if runner is None:
                    runner = CaseRunner(load_registry(setting.plugins, setting.solvers_of), setting.data_dir)
                runner.placed = pipe.descriptor
                found = _prepared(runner, instance) if what == "prepare" else _certified(runner, instance, *rest)
                answer: Message = (_ANSWERS[what], *found)
            except (Exception, SystemExit) as error:
                answer = ("failed", describe(error))
            pipe.send(answer)


def _prepared(runner: CaseRunner, instance: Instance) -> Prepared:
    before = time.process_time()
    problem = runner.problem(instance).problem
    problem.warm_up()
    sizes = [8 * _product(shape) for shape in (problem.point_shape, problem.dual_shape)]
    return Prepared(time.process_time() - before, *sizes)


def _certified(runner: CaseRunner, instance: Instance, proofs: Sequence[Proof], target: float, names: tuple[str, ...]) -> Certified:
    built = runner.problem(instance)
    problem, tolerance, scale = built.problem, Tolerance(target), built.problem.scale()
    verdicts: list[Certificate | str] = []
    enclosure, longest = built.baseline, 0.0
    for proof in proofs:
        started, used = time.perf_counter(), time.process_time()
        try:
            verdict = sharpened(problem, proof, tolerance, scale)[0]
        except Exception as error:  # of arrays that are not finite, or of the wrong shape
            verdicts.append(describe(error))
            continue
        with contextlib.suppress(Exception):  # a plug-in's own; only the time counts, which the run has spent on them too
            problem.measures(proof.point)
        # Without what it waited for a processor: a busy machine must not make room for a false clock. Where other processes compute, only
        # the wall's clock knows how long they took.
        on_wall, here = time.perf_counter() - started, time.process_time() - used
        longest = max(longest, on_wall if instance.has_workers else min(on_wall, here))
        verdicts.append(verdict)
        enclosure = enclosure.tightened(verdict)
    patterns = _patterns(problem, proofs[-1], names) if proofs and names else ()
    return Certified(tuple(verdicts), scale, built.baseline, contradiction(problem, enclosure, scale), longest, patterns)


def _patterns(problem: Problem, proof: Proof, names: tuple[str, ...]) -> tuple[PackedPattern, ...]:
    try:
        return patterns_of(parts(problem.repair(proof.point), names))
    except Exception:  # a plug-in may name its parts as it likes
        return ()


def _product(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= int(length)
    return size
