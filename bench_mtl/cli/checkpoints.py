"""Checkpoints of `solve`: when one is written, and what is said of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from bench_mtl.cli.console import say, warn
from bench_mtl.cli.options import replacing, require_replaceable
from bench_mtl.core.errors import BenchError, InputError

if TYPE_CHECKING:
    from bench_mtl.cli.asked import Asked
    from bench_mtl.core.types import Certificate, Iterate, Proof, Record, Sample
    from bench_mtl.engine.checkpoint import Checkpoint, Origin
    from bench_mtl.model.protocols import Solver

#: What the errors of this name are about.
_OPTION, _WHAT = "--checkpoint", "checkpoint"


class Keeper:
    """Keeps a run in a file: now and then as it goes on, and when it is cut off.

    Parameters
    ----------
    seconds : between two checkpoints as the run goes on
    earlier : the checkpoint from which it goes on
    """

    def __init__(self, path: Path, seconds: float, origin: Origin, earlier: Checkpoint | None) -> None:
        require_replaceable(_OPTION, _WHAT, path)
        self.path, self._seconds, self._origin = path, seconds, origin
        self._next = monotonic() + seconds
        self._iterate: Iterate | None = None
        self._proof: Proof | None = None if earlier is None else earlier.proof
        self._certificate: Certificate | None = None if earlier is None else earlier.certificate

    def on_iterate(self, iterate: Iterate) -> None:
        """Take note of an iterate, and write a checkpoint where it is time; one that cannot be written ends no run."""
        self._iterate = iterate
        if monotonic() < self._next:
            return
        try:
            self.write()
        except BenchError as error:
            warn(f"{error}; the run goes on")
        self._next = monotonic() + self._seconds

    def on_proof(self, proof: Proof, _: bool) -> None:
        """Take note of what proves the best enclosure."""
        self._proof = proof

    def on_sample(self, sample: Sample) -> None:
        """Take note of the best enclosure."""
        self._certificate = sample.certificate

    def write(self) -> int | None:
        """Write the last iterate, and return its step; None, and nothing is written, where there was none.

        Raises
        ------
        InputError : the file cannot be written, or the point is no point. What was there before stays.
        """
        from bench_mtl.engine.checkpoint import Checkpoint, with_plain_state, write_checkpoint

        if self._iterate is None:
            return None
        try:
            iterate = with_plain_state(self._iterate)
        except InputError as error:
            warn(f"{_OPTION}: {error}; a run goes on from the points of this checkpoint alone")
            iterate = self._iterate._replace(state=None)
        with replacing(_OPTION, _WHAT, self.path) as file:
            write_checkpoint(file, Checkpoint(self._origin, iterate, self._proof, self._certificate))
        return iterate.step

    def keep(self, record: Record) -> Path | None:
        """Write a checkpoint of a run that has ended without its target, say so, and return the file; None where nothing is kept."""
        step = None
        try:
            step = None if record.status == "verified" else self.write()
        except InputError as error:
            if record.status != "error":
                raise
            warn(str(error))  # a point that is none has ended the run
        if step is None:
            return None
        say(self._written(step))
        return self.path

    def cut_off(self) -> str:
        """Write a checkpoint and return the end of the sentence that says how the run goes on, whatever there is in the way of it."""
        try:
            step = self.write()
        except BenchError as error:
            return f"no checkpoint is written: {error}"
        return "there was no iterate yet, so no checkpoint is written" if step is None else self._written(step)

    def _written(self, step: int) -> str:
        """Return that a checkpoint is written, and the command that was given, with which the run goes on from it."""
        words, skips = [], False
        for word in sys.argv[1:]:
            if not skips and not (word == "--resume" or word.startswith("--resume=")):
                words.append(word)
            skips = not skips and word == "--resume"
        return f"checkpoint of step {step} written, go on with: {shlex.join(['bench-mtl', *words, '--resume', str(self.path)])}"


def origin_of(asked: Asked, solver: Solver) -> Origin:
    """Return what a run of the solver is of.

    Raises
    ------
    InputError : a data file is missing or cannot be read, or there is no such problem.
    """
    from bench_mtl.engine.checkpoint import Origin
    from bench_mtl.engine.description import plan_problem
    from bench_mtl.engine.environment import describe_environment
    from bench_mtl.engine.source_digest import source_digest

    plan = plan_problem(asked.registry, asked.instance.problem, asked.instance.parameters)
    here = describe_environment(asked.threads)
    versions = {key: here[key] for key in ("bench_mtl", "python", "blas", "threads")}
    versions |= {package: here["packages"][package] for package in ("numpy", "scipy", "numba")}
    code = {"code of the problem": plan.code, "code of the solver": source_digest(type(solver)), "version of the solver": solver.version}
    texts = {key: str(version) for key, version in (versions | code).items()}
    fingerprint = asked.instance.fingerprint_here(asked.data_dir)
    return Origin(asked.instance.problem, plan.parameters, fingerprint, solver.name, solver.settings(), texts)


def checkpoint_to_resume(path: Path, origin: Origin) -> Checkpoint:
    """Return the checkpoint of the same run in a file, and say where it goes on.

    Raises
    ------
    InputError : there is none, it is damaged, or it is of another problem, data, solver or option.
    """
    from bench_mtl.engine.checkpoint import read_checkpoint

    checkpoint = read_checkpoint("--resume", path)
    if (difference := checkpoint.origin.difference(origin)) is not None:
        raise InputError(f"--resume: {path} is of a run with {difference}")
    step, work, state = checkpoint.iterate.step, checkpoint.iterate.work, checkpoint.iterate.state
    say(f"goes on from step {step} and {work:g} passes over the data of {path}")
    if state is None and step > 0:
        say("note: there is no state of the solver, so it goes on from its points alone, and not as the undisturbed run would")
    if changed := checkpoint.origin.changed_versions(origin):
        say(f"note: the last bits may be other ones than those of an undisturbed run ({'; '.join(changed)})")
    return checkpoint
