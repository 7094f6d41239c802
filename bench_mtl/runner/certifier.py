"""A process that certifies again what solvers show, and never runs or imports the code of any of them.

It builds each problem itself, from the data, and is given nothing but arrays. A solver can change its own process as it likes; what a row
says is what this one finds.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from bench_mtl.core.types import Certificate, Proof, Tolerance
from bench_mtl.engine.driver import describe
from bench_mtl.engine.proofs import contradiction, sharpened
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Instance
from bench_mtl.model.patterns import PackedPattern, parts, patterns_of
from bench_mtl.runner.channel import WorkerEnd
from bench_mtl.runner.child import Child
from bench_mtl.runner.inprocess import CaseRunner
from bench_mtl.runner.messages import Certified, Failed, Message, UnreadableError
from bench_mtl.runner.own_process import begin
from bench_mtl.runner.setting import Setting

#: How long it may take to start and to build a problem, and to certify each of the proofs of a run, seconds.
MOST_SECONDS = 600.0


class UncertifiableError(Exception):
    """The proofs of a run cannot be certified, for reasons that are not the proofs'."""


class Certifier:
    """The process seen from its parent. It is started when it is first needed, and again when it has died. For one thread at a time."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._child: Child | None = None
        self._has_ended = False

    def certify(self, instance: Instance, proofs: Sequence[Proof], target: float, names: tuple[str, ...] = ()) -> Certified:
        """Certify the proofs of a run, and find the patterns of the parts of the last one's point, which have these names.

        Raises UncertifiableError where the problem cannot be built, or the process dies twice or takes too long.
        """
        answer: Message | None = None
        for attempt in (1, 2):
            try:
                child = self.start()
                child.send((instance, tuple(proofs), target, names))
                answer = child.answer(MOST_SECONDS * (1 + len(proofs)))
                break
            except (EOFError, OSError, UnreadableError) as error:
                self.close()
                if attempt == 2 or self._has_ended:
                    raise UncertifiableError(f"its process died ({describe(error)})") from None
        if isinstance(answer, Failed):
            raise UncertifiableError(answer.reason)
        # The code of a problem may have written what it likes.
        if not isinstance(answer, Certified) or len(answer.verdicts) != len(proofs):
            self.close()
            raise UncertifiableError("it gave no answer in time, or a false one")
        return answer

    def start(self) -> Child:
        """Return the process, which is started where there is none, without waiting for it."""
        if self._child is None:
            self._child = Child("bench_mtl.runner.certifier:serve", self._setting)
            self._child.pipe.most_arrays = 0
            with contextlib.suppress(BrokenPipeError):  # it is dead already, which the first question finds out
                self._child.send(self._setting)
        return self._child

    def end(self) -> None:
        """Kill the process, for good. Safe to call from another thread."""
        self._has_ended = True
        child = self._child
        if child is not None:
            child.end()

    def close(self) -> None:
        """`end`, and leave nothing behind."""
        child, self._child = self._child, None
        if child is not None:
            child.close()


def serve(pipe_fd: int, parent: int) -> None:
    """Answer requests, each with `Certified` or `Failed`, until the pipe closes."""
    begin(parent, "bench_certifier")
    pipe = WorkerEnd(pipe_fd)
    with contextlib.suppress(EOFError, BrokenPipeError):
        setting: Setting = pipe.receive()
        runner: CaseRunner | None = None
        while True:
            request = pipe.receive()
            try:
                if runner is None:
                    runner = CaseRunner(load_registry(setting.plugins, with_solvers=False), setting.data_dir)
                answer: Message = _certified(runner, *request)
            except (Exception, SystemExit) as error:
                answer = Failed(describe(error))
            pipe.send(answer)


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
    patterns: tuple[PackedPattern, ...] = ()
    if proofs and names:
        with contextlib.suppress(Exception):  # a plug-in may name its parts as it likes
            patterns = patterns_of(parts(problem.repair(proofs[-1].point), names))
    return Certified(tuple(verdicts), scale, built.baseline, contradiction(problem, enclosure, scale), longest, patterns)
