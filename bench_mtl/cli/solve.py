"""`bench-mtl solve`: one solver, shown as it runs and saved in a checkpoint, or several, compared."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from bench_mtl.cli.asked import Asked, at, problem_options, say_places, say_problem, say_solution, say_tracebacks
from bench_mtl.cli.console import Answer, answer, fail, run_document, sample_document, say, warn
from bench_mtl.cli.options import A_PATH, EXIT_FAILED, EXIT_INTERRUPTED, problems, replacing, require_replaceable, traceback_option
from bench_mtl.cli.options import solvers as solver_words
from bench_mtl.comparing.arguments import labelled_solvers, relative_gaps
from bench_mtl.comparing.running import Plan, run_instances
from bench_mtl.core.checks import real_number
from bench_mtl.core.dask_cluster import exposure
from bench_mtl.core.errors import BenchError, IncompleteError, InputError
from bench_mtl.core.text import LONGEST_LABEL, LONGEST_LINE, one_line, outward
from bench_mtl.core.types import Certificate, Iterate, Proof, Record, Sample, Status, Times
from bench_mtl.data.catalogue import option_names, takes_seed
from bench_mtl.engine import driver
from bench_mtl.engine.checkpoint import Checkpoint, Origin, read_checkpoint, with_plain_state, write_checkpoint
from bench_mtl.engine.description import plan_problem
from bench_mtl.engine.environment import describe_environment
from bench_mtl.engine.proofs import format_gap
from bench_mtl.engine.registry import Registry, solver_options
from bench_mtl.engine.source_digest import source_digest
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver

#: Between two lines of an iterative solver.
_LINE_SECONDS = 0.1
#: What the errors of this name are about.
_OPTION, _WHAT = "--checkpoint", "checkpoint"


@click.command()
@click.argument("problem", shell_complete=problems)
@click.argument("solvers", metavar="SOLVER...", nargs=-1, required=True, shell_complete=solver_words)
@click.option("--target", type=float, default=1e-6, show_default=True, help="Relative gap to prove.")
@click.option(
    "--cluster",
    metavar="local|ADDRESS",
    help="For data in shards, and for solvers that use Dask: workers of this machine, or those of the scheduler at ADDRESS.",
)
@traceback_option
@click.option("--save", type=A_PATH, help="Write the solution and its certificate to this .npz file.")
@click.option("--checkpoint", type=A_PATH, help="Keep the run in this .npz file, from which it can go on.")
@click.option("--checkpoint-every", type=float, metavar="SECONDS", help="How often, as the run goes on; every 60 s by default.")
@click.option("--resume", type=A_PATH, help="Go on from this checkpoint of the same run.")
@click.option("--out", type=A_PATH, help="Of several solvers: keep the results in this folder, with their report.")
@problem_options
def solve(
    asked: Asked, solvers: tuple[str, ...], cluster: str | None, save: Path | None, checkpoint: Path | None,
    checkpoint_every: float | None, resume: Path | None, out: Path | None,
) -> Answer | int:  # fmt: skip
    """Solve one PROBLEM with one SOLVER in this process, showing certified samples; or compare several SOLVERs on it.

    Several run one after the other, each in a process of its own, as in `bench-mtl run`, and a table says what each has proven.

    With --checkpoint a run that is interrupted, reaches a limit or loses its cluster goes on from there with --resume, through the same
    iterates; the clock says which of them are tested.

    \b
    Examples:
      bench-mtl solve l1inf_hinge projected_subgradient --data synthetic_l1inf --param radius=truth --target 1e-2
      bench-mtl solve sparse_low_rank accelerated_gradient --data digits --param penalty=1 --param radius=5
      bench-mtl solve l1inf_hinge scs --data digits --param radius=5 --json
      bench-mtl solve l1inf_hinge smoothed_gradient --data digits --param radius=5 --checkpoint run.npz
      bench-mtl solve l1inf_hinge auto pdhg ecos --data flowers.csv --data-option labels=3 --param radius=5 --target 1e-4
    """
    if len(solvers) > 1:
        alone = {"--option": asked.options, "--cluster": cluster, "--save": save, "--checkpoint": checkpoint, "--resume": resume}
        for option, value in {**alone, "--checkpoint-every": checkpoint_every}.items():
            if value not in (None, {}):
                raise InputError(f"{option} is for one solver; a suite file gives several solvers options of their own (bench-mtl run)")
        return _compared(asked, solvers, out)
    if out is not None:
        raise InputError("--out is for several solvers; --save keeps the solution of one")
    if checkpoint_every is not None and checkpoint is None:
        raise InputError("--checkpoint-every needs --checkpoint, the file to write")
    if save is not None and checkpoint is not None and save.resolve() == checkpoint.resolve():
        raise InputError("--save and --checkpoint name the same file: the solution would replace the checkpoint")
    asked, solver = _on_cluster(asked, solvers[0], cluster).chosen(solvers[0])
    seconds = 60.0 if checkpoint_every is None else real_number("--checkpoint-every", checkpoint_every, strict=True)
    if checkpoint is not None and checkpoint.is_file() and (resume is None or checkpoint.resolve() != resume.resolve()):
        raise InputError(f"--checkpoint: {checkpoint} is there already: go on from it with --resume {checkpoint}, or name another file")
    keeper = earlier = None
    if checkpoint is not None or resume is not None:
        if not isinstance(solver, IterativeSolver):
            raise InputError(f"--checkpoint and --resume are for solvers that iterate, and {solver.label} answers once for each tolerance")
        origin = origin_of(asked, solver)
        earlier = None if resume is None else checkpoint_to_resume(resume, origin)
        keeper = None if checkpoint is None else Keeper(checkpoint, seconds, origin, earlier, asked.limits.iterations)
    if cluster not in (None, "local") and (exposed := exposure(cluster)) is not None:
        warn(exposed)
    try:
        problem = asked.build()
        if problem.is_in_shards:  # the workers are there, or it is said, before any solver is asked
            problem.design.shards.blocks.connect()  # type: ignore[attr-defined]
        return _solved(asked, problem, solver, save, keeper, earlier)
    except KeyboardInterrupt:
        if keeper is None:
            raise
        return fail(f"interrupted; {keeper.cut_off()}", EXIT_INTERRUPTED)
    except IncompleteError as error:
        if keeper is None and not isinstance(solver, IterativeSolver):
            raise
        kept = "nothing was saved: with --checkpoint FILE the run could go on from there" if keeper is None else keeper.cut_off()
        raise IncompleteError(f"{error}; {kept}") from error


def _on_cluster(asked: Asked, solver: str, cluster: str | None) -> Asked:
    """Return what is asked with a cluster, if there is one, for the data, if they take one, else for the solver."""
    if cluster is None:
        return asked
    data = asked.instance.data
    if "cluster" in option_names(data, asked.data_dir):
        return replace(asked, instance=replace(asked.instance, data={**data, "cluster": cluster}))
    if not {"cluster", "backend"} <= solver_options(asked.registry.solvers[asked.registry.meant(solver)[0]]).keys():
        raise InputError(f"--cluster: {solver} runs on this machine alone; solvers that use a cluster have an option of that name")
    return replace(asked, options={**asked.options, "backend": "dask", "cluster": cluster})


def _solved(asked: Asked, problem: Problem, solver: Solver, save: Path | None, keeper: Keeper | None, earlier: Checkpoint | None) -> Answer:
    """Solve a problem with one solver, show how it goes, and return the exit code."""
    if earlier is not None:
        earlier.require_fitting(problem)
    require_replaceable("--save", "solution", save)
    say_problem(asked.instance.problem, problem)
    with asked.pinned(solver, problem):
        record = _solve_live(asked, problem, solver, keeper, earlier)
    if asked.traceback:
        say_places(record.places)
    answer(f"{record.status}: {one_line(record.reason, LONGEST_LINE)}{at(record.places)}")
    if record.status is Status.SKIPPED:
        _say_who_fits(problem, asked.registry)
    else:
        if not type(solver).__module__.startswith("bench_mtl."):
            say("proven inside the solver's own process; `bench-mtl run` proves it again in another")
        if note := dict(record.info).get("note"):
            say(f"{solver.label}: {one_line(str(note), LONGEST_LINE)}")
        say_solution(problem, record.solution)
        say(f"{solver.label}: {_waited(record.times)}")
    checkpoint, best, solution = None if keeper is None else keeper.keep(record), record.best, record.solution
    if save is not None and (solution is None or best is None):
        warn("--save: there is no solution to save")
        save = None
    if save is not None and solution is not None and best is not None:
        with replacing("--save", "solution", save) as file:
            np.savez_compressed(file, solution=solution, primal=best.primal, dual=best.dual, relative_gap=best.relative_gap)
        say(f"solution written to {save}")
    samples = [sample_document(sample) for sample in record.samples]
    document = {**asked.document(problem, solver), **run_document(record), "samples": samples, "saved": save, "checkpoint": checkpoint}
    return 0 if record.status is Status.VERIFIED else EXIT_FAILED, lambda: document


def _waited(times: Times) -> str:
    """Say what a user waits for, and what only the first call takes."""
    parts = {"stopping tests": times.test, "set-up": times.setup}
    of_it = ", ".join(f"{seconds:.3g} s of it {name}" for name, seconds in parts.items() if seconds)
    first = {"building the model": times.build, "compiling": times.compile, "certificates": times.certify}
    besides = ", ".join(f"{seconds:.3g} s {name}" for name, seconds in first.items() if seconds)
    answer = f"{times.setup + times.solve:.3g} s to the answer" + (f", {of_it}" if of_it else "")
    return answer + (f"; besides: {besides}" if besides else "")


def _compared(asked: Asked, solvers: tuple[str, ...], out: Path | None) -> Answer:
    """Compare several solvers on a problem, and return the exit code."""
    from bench_mtl.core.kernels.cache import has_compiled_code

    registry, targets = asked.registry, relative_gaps(asked.tolerance.relative_gap, "--target")
    chosen = labelled_solvers(solvers, registry)  # before data are read
    problem = asked.build()
    say_problem(asked.instance.problem, problem)
    if not has_compiled_code():
        say("solvers are compiled at their first run on a machine, for a minute or two; bench-mtl doctor --compile does it ahead")
    one = asked.instance
    of = plan_problem(registry, one.problem, one.parameters)
    instance = replace(one, parameters=of.parameters, code=of.code, seed=one.seed if takes_seed(one.data) else None)
    instance = replace(instance, fingerprint=instance.fingerprint_here(asked.data_dir))
    data = str(one.data.get("file") or one.data.get("name"))
    title = one_line(f"{one.problem}, {Path(data).name}", LONGEST_LABEL - len("..."))
    plan = Plan(
        chosen, registry, targets, asked.limits, threads=asked.threads, plugins=asked.plugins, out=out, progress=say,
        data_dir=asked.data_dir, curves=out is not None,
    )  # fmt: skip
    result = run_instances([instance], plan, title, "1 problem", [f"bench-mtl {one_line(shlex.join(sys.argv[1:]))}"])
    if asked.traceback:
        say_tracebacks(result.folder)
    say()
    answer(str(result))
    report = None if out is None else result.report(out)
    if report is not None:
        say(f"report: {report}")
    frame = result.frame().drop(columns=["problem", "repetition", "target"])
    statuses = [Status(status) for status in frame["status"]]
    is_proven = Status.VERIFIED in statuses and not any(status.is_failure for status in statuses)
    return 0 if is_proven else EXIT_FAILED, lambda: {**asked.document(problem), "runs": frame.to_dict("records"), "report": report}


def _say_who_fits(problem: Problem, registry: Registry) -> None:
    """Say which solvers take a problem."""
    fitting = []
    for name in registry.solvers:
        with contextlib.suppress(Exception):  # a plug-in's, or one whose options have no default
            if registry.solver(name).incompatibility(problem) is None:
                fitting.append(name)
    say(f"these take it: {', '.join(sorted(fitting)) or 'none'}")


def _solve_live(asked: Asked, problem: Problem, solver: Solver, keeper: Keeper | None, earlier: Checkpoint | None) -> Record:
    """Run and show the samples: every one of a one-shot solver, at most ten a second of an iterative one, and the last."""
    shown: float | None = None
    hidden: Sample | None = None

    def say_line(sample: Sample) -> None:
        nonlocal shown, hidden
        if shown is None:
            say(f"{'seconds':>10} {'iteration':>10} {'passes':>10} {'objective':>16} {'dual bound':>16} {'rel. gap':>9} {'infeas.':>9}")
        c = sample.certificate
        counts = f"{sample.seconds:10.4f} {sample.step:10d} {sample.work:10.1f}"
        primal, dual = outward(c.primal, 9, is_upper=True), outward(c.dual, 9, is_upper=False)
        say(f"{counts} {primal:16.9g} {dual:16.9g} {format_gap(c.relative_gap):>9} {format_gap(c.infeasibility):>9}")
        shown, hidden = time.monotonic(), None

    def show(sample: Sample) -> None:
        nonlocal hidden
        hidden = sample
        if keeper is not None:
            keeper.on_sample(sample)
        if shown is None or sample.asked is not None or time.monotonic() - shown >= _LINE_SECONDS:
            say_line(sample)

    record = driver.run(
        problem, solver, tolerance=asked.tolerance, limits=asked.limits, on_sample=show,
        start=None if earlier is None else earlier.iterate, known=None if earlier is None else earlier.proof,
        on_iterate=None if keeper is None else keeper.on_iterate, on_proof=None if keeper is None else keeper.on_proof,
    )  # fmt: skip
    if hidden is not None:
        say_line(hidden)
    return record


class Keeper:
    """Keeps a run, which may go on from an earlier checkpoint, in a file: every so many seconds, and when it is cut off."""

    def __init__(self, path: Path, seconds: float, origin: Origin, earlier: Checkpoint | None, most: int | None) -> None:
        require_replaceable(_OPTION, _WHAT, path)
        self.path, self._seconds, self._origin, self._most = path, seconds, origin, most
        self._next = time.monotonic() + seconds
        self._iterate: Iterate | None = None
        self._proof: Proof | None = None if earlier is None else earlier.proof
        self._certificate: Certificate | None = None if earlier is None else earlier.certificate

    def on_iterate(self, iterate: Iterate) -> None:
        """Take note of an iterate, and write a checkpoint where it is time; one that cannot be written ends no run."""
        self._iterate = iterate
        if time.monotonic() < self._next:
            return
        try:
            self.write()
        except BenchError as error:
            warn(f"{error}; the run goes on")
        self._next = time.monotonic() + self._seconds

    def on_proof(self, proof: Proof, _: bool) -> None:
        """Take note of what proves the best enclosure."""
        self._proof = proof

    def on_sample(self, sample: Sample) -> None:
        """Take note of the best enclosure."""
        self._certificate = sample.certificate

    def write(self) -> int | None:
        """Write the last iterate, and return its step; None, and nothing is written, where there was none.

        Raises InputError: the file cannot be written, or the point is no point; IncompleteError: the disk is full. What was there before
        stays.
        """
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
        """Write a checkpoint of a run that has ended without its target, say so, and return the file; None where nothing is saved."""
        step = None
        try:
            step = None if record.status == "verified" else self.write()
        except BenchError as error:
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
        words = _without("--resume", sys.argv[1:])
        if self._most is not None and step >= self._most:  # steps count on
            words = _without("--iterations", words)
        return f"checkpoint of step {step} written, go on with: {shlex.join(['bench-mtl', *words, '--resume', str(self.path)])}"


def _without(option: str, words: list[str]) -> list[str]:
    """Return the words of a command without an option and its value."""
    places = {place + after for place, word in enumerate(words) if word == option for after in (0, 1)}
    return [word for place, word in enumerate(words) if place not in places and not word.startswith(f"{option}=")]


def origin_of(asked: Asked, solver: Solver) -> Origin:
    """Return what a run of the solver is of. Raises InputError: a data file is missing or cannot be read, or there is no such problem."""
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

    Raises InputError: there is none, it is damaged, or it is of another problem, data, solver or option.
    """
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
