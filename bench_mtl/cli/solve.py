"""`bench-mtl solve`."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_mtl.cli.asked import Asked, problem_options
from bench_mtl.cli.checkpoints import Keeper, checkpoint_to_resume, origin_of
from bench_mtl.cli.console import (
    answer,
    answer_json,
    at,
    fail,
    run_document,
    sample_document,
    say,
    say_places,
    say_problem,
    say_solution,
    say_tracebacks,
    warn,
)
from bench_mtl.cli.options import A_PATH, EXIT_FAILED, EXIT_INTERRUPTED, problems, replacing, require_replaceable, traceback_option
from bench_mtl.cli.options import solvers as solver_words
from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.core.text import LONGEST_LINE, one_line, outward, require_label

if TYPE_CHECKING:
    from bench_mtl.core.types import Record, Sample, Times
    from bench_mtl.engine.checkpoint import Checkpoint
    from bench_mtl.engine.registry import Registry
    from bench_mtl.model.protocols import Problem, Solver

#: Between two lines of an iterative solver.
_LINE_SECONDS = 0.1


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
) -> int:  # fmt: skip
    """Solve one PROBLEM with one SOLVER in this process and show certified samples as they come; or compare several SOLVERs on it.

    Several run one after the other, each in a process of its own, as in `bench-mtl run`, and a table says what each has proven.

    --quiet leaves the line, or the table, that says how it ended.

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
    from bench_mtl.core.checks import real_number
    from bench_mtl.core.dask_cluster import exposure
    from bench_mtl.model.protocols import IterativeSolver

    if len(solvers) > 1:
        alone = {"--option": asked.options, "--cluster": cluster, "--save": save, "--checkpoint": checkpoint, "--resume": resume}
        for option, value in {**alone, "--checkpoint-every": checkpoint_every}.items():
            if value:
                raise InputError(f"{option} is for one solver; a suite file gives several solvers options of their own (bench-mtl run)")
        return _compared(asked, solvers, out)
    if out is not None:
        raise InputError("--out is for several solvers; --save keeps the solution of one")
    if checkpoint_every is not None and checkpoint is None:
        raise InputError("--checkpoint-every needs --checkpoint, the file to write")
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
        keeper = None if checkpoint is None else Keeper(checkpoint, seconds, origin, earlier)
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
        kept = "nothing was kept: with --checkpoint FILE the run could go on from there" if keeper is None else keeper.cut_off()
        raise IncompleteError(f"{error}; {kept}") from error


def _on_cluster(asked: Asked, solver: str, cluster: str | None) -> Asked:
    """Return what is asked with a cluster, if there is one, for the data, if they take one, else for the solver."""
    from bench_mtl.data.catalogue import option_names
    from bench_mtl.engine.registry import solver_options

    if cluster is None:
        return asked
    data = asked.instance.data
    if "cluster" in option_names(data, asked.data_dir):
        return replace(asked, instance=replace(asked.instance, data={**data, "cluster": cluster}))
    if not {"cluster", "backend"} <= solver_options(asked.registry.solvers[asked.registry.meant(solver)[0]]).keys():
        raise InputError(f"--cluster: {solver} runs on this machine alone; solvers that use a cluster have an option of that name")
    return replace(asked, options={**asked.options, "backend": "dask", "cluster": cluster})


def _solved(asked: Asked, problem: Problem, solver: Solver, save: Path | None, keeper: Keeper | None, earlier: Checkpoint | None) -> int:
    """Solve a problem with one solver, show how it goes, and return the exit code."""
    from bench_mtl.core.types import Status

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
    if not type(solver).__module__.startswith("bench_mtl."):
        say("proven inside the solver's own process; `bench-mtl run` proves it again in another")
    if note := dict(record.info).get("note"):
        say(f"{solver.label}: {one_line(str(note), LONGEST_LINE)}")
    say_solution(problem, record.solution)
    say(f"{solver.label}: {_waited(record.times)}")
    kept = None if keeper is None else keeper.keep(record)
    if save is not None:
        _save(save, record)
        say(f"solution written to {save}")
    answer_json(
        lambda: {
            **asked.document(problem, solver),
            **run_document(record),
            "samples": [sample_document(sample) for sample in record.samples],
            "saved": save,
            "checkpoint": kept,
        }
    )
    return 0 if record.status is Status.VERIFIED else EXIT_FAILED


def _waited(times: Times) -> str:
    """Say what a user waits for, and what only the first call takes."""
    parts = {"stopping tests": times.test, "set-up": times.setup}
    of_it = ", ".join(f"{seconds:.3g} s of it {name}" for name, seconds in parts.items() if seconds)
    first = {"building the model": times.build, "compiling": times.compile, "certificates": times.certify}
    besides = ", ".join(f"{seconds:.3g} s {name}" for name, seconds in first.items() if seconds)
    answer = f"{times.setup + times.solve:.3g} s to the answer" + (f", {of_it}" if of_it else "")
    return answer + (f"; besides: {besides}" if besides else "")


def _compared(asked: Asked, solvers: tuple[str, ...], out: Path | None) -> int:
    """Compare several solvers on a problem, and return the exit code."""
    from bench_mtl.comparing.arguments import labelled_solvers
    from bench_mtl.comparing.running import Plan, run_instances
    from bench_mtl.core.kernels.cache import has_compiled_code
    from bench_mtl.core.types import Status
    from bench_mtl.data.catalogue import takes_seed
    from bench_mtl.engine.description import plan_problem

    registry, target = asked.registry, asked.tolerance.relative_gap
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
    title = require_label("the title of the report", f"{one.problem}, {Path(data).name}")
    plan = Plan(
        chosen, registry, (target,), asked.limits, threads=asked.threads, plugins=asked.plugins, out=out, progress=say,
        data_dir=asked.data_dir, curves=out is not None,
    )  # fmt: skip
    result = run_instances([instance], plan, title, "1 problem", [f"bench-mtl {shlex.join(sys.argv[1:])}"])
    if asked.traceback:
        say_tracebacks(result.folder)
    say()
    answer(str(result))
    report = None if out is None else result.report(out)
    if report is not None:
        say(f"report: {report}")
    frame = result.frame().drop(columns=["problem", "repetition", "target"])
    answer_json(lambda: {**asked.document(problem), "runs": frame.to_dict("records"), "report": report})
    statuses = [Status(status) for status in frame["status"]]
    is_proven = Status.VERIFIED in statuses and not any(status.is_failure for status in statuses)
    return 0 if is_proven else EXIT_FAILED


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
    from bench_mtl.engine import driver

    say(f"{'seconds':>10} {'iteration':>10} {'passes':>10} {'objective':>16} {'dual bound':>16} {'rel. gap':>9} {'infeas.':>9}")
    shown = 0.0
    hidden: Sample | None = None

    def line(sample: Sample) -> str:
        c = sample.certificate
        counts = f"{sample.seconds:10.4f} {sample.step:10d} {sample.work:10.1f}"
        primal, dual = outward(c.primal, 9, is_upper=True), outward(c.dual, 9, is_upper=False)
        return f"{counts} {primal:16.9g} {dual:16.9g} {c.relative_gap:9.1e} {c.infeasibility:9.1e}"

    def show(sample: Sample) -> None:
        nonlocal shown, hidden
        hidden = sample
        if keeper is not None:
            keeper.on_sample(sample)
        if sample.asked is not None or time.monotonic() - shown >= _LINE_SECONDS:
            say(line(sample))
            shown, hidden = time.monotonic(), None

    record = driver.run(
        problem, solver, tolerance=asked.tolerance, limits=asked.limits, on_sample=show,
        start=None if earlier is None else earlier.iterate, known=None if earlier is None else earlier.proof,
        on_iterate=None if keeper is None else keeper.on_iterate, on_proof=None if keeper is None else keeper.on_proof,
    )  # fmt: skip
    if hidden is not None:
        say(line(hidden))
    return record


def _save(path: Path, record: Record) -> None:
    import numpy as np

    best = record.best
    if record.solution is None or best is None:
        raise InputError("--save: there is no solution to save")
    with replacing("--save", "solution", path) as file:
        np.savez_compressed(file, solution=record.solution, primal=best.primal, dual=best.dual, relative_gap=best.relative_gap)
