"""`bench-mtl solve`."""

from __future__ import annotations

import contextlib
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from bench_mtl.cli import completion
from bench_mtl.cli.checkpoints import Keeper, checkpoint_to_resume, command_from, origin_of
from bench_mtl.cli.console import answer, answer_json, say, warn
from bench_mtl.cli.failures import at, raising_here, say_places, say_tracebacks, traceback_option
from bench_mtl.cli.options import (
    A_PATH,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    allowed_threads,
    data_spec,
    fail,
    json_option,
    key_values,
    limits_of,
    problem_options,
    quiet_option,
)
from bench_mtl.cli.output import replacing, writing_to
from bench_mtl.cli.words import say_problem, say_solution
from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.core.text import LONGEST_LINE, one_line, outward, require_label

if TYPE_CHECKING:
    from bench_mtl.comparing.running import Plan
    from bench_mtl.core.types import Limits, Record, Sample, Times, Tolerance
    from bench_mtl.engine.checkpoint import Checkpoint
    from bench_mtl.engine.registry import Registry
    from bench_mtl.engine.suite import Instance
    from bench_mtl.model.protocols import Problem, Solver

#: Between two checkpoints of a run that goes on.
_CHECKPOINT_SECONDS = 60.0


@click.command()
@click.argument("problem", shell_complete=completion.problems)
@click.argument("solvers", metavar="SOLVER...", nargs=-1, required=True, shell_complete=completion.solvers)
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
@quiet_option
@json_option
def solve(
    problem: str, solvers: tuple[str, ...], data: str, data_option: tuple[str, ...], param: tuple[str, ...], option: tuple[str, ...],
    preprocess: tuple[str, ...], target: float, cluster: str | None, seconds: float, iterations: int | None, seed: int, threads: int,
    traceback: bool, save: Path | None, checkpoint: Path | None, checkpoint_every: float | None, resume: Path | None, out: Path | None,
    data_dir: Path | None, plugins: Path | None,
) -> int:  # fmt: skip
    """Solve one PROBLEM with one SOLVER in this process and show certified samples as they come; or compare several SOLVERs on it.

    Several run one after the other, each in a process of its own, as in `bench-mtl run`, and a table says what each has proven.

    --quiet leaves the line, or the table, that says how it ended.

    With --checkpoint a run that is interrupted, reaches a limit or loses its cluster goes on from there with --resume, through the same
    iterates; the clock says which of them are tested.

    Exit code 0: the target gap is proven, of several solvers by one, and none is wrong, crashed or error; 1: otherwise; 2: bad usage or
    input; 3: what it computes on is gone, and it can go on from its checkpoint; 4: a bug of bench-mtl; 130: interrupted.

    \b
    Examples:
      bench-mtl solve l1inf_hinge projected_subgradient --data synthetic_l1inf --param radius=truth --target 1e-2
      bench-mtl solve sparse_low_rank accelerated_gradient --data digits --param penalty=1 --param radius=5
      bench-mtl solve l1inf_hinge scs --data digits --param radius=5 --json
      bench-mtl solve l1inf_hinge smoothed_gradient --data digits --param radius=5 --checkpoint run.npz
      bench-mtl solve l1inf_hinge auto pdhg ecos --data flowers.csv --data-option labels=3 --param radius=5 --target 1e-4
    """
    from bench_mtl.comparing.arguments import labelled_solvers
    from bench_mtl.comparing.running import Plan
    from bench_mtl.core.checks import real_number, whole_number
    from bench_mtl.core.dask_cluster import exposure
    from bench_mtl.core.types import Tolerance
    from bench_mtl.data.catalogue import option_names
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.engine.suite import Instance
    from bench_mtl.model.protocols import IterativeSolver
    from bench_mtl.runner.planning import require_importable

    tolerance = Tolerance(real_number("--target", target, strict=True))
    limits = limits_of(seconds, iterations)
    allowed_threads(threads)
    require_importable(plugins)
    registry = load_registry(plugins)
    spec = data_spec(data, data_option, preprocess, data_dir)
    instance = Instance(problem, problem, spec, key_values(param, "--param"), whole_number("--seed", seed))
    if len(solvers) > 1:
        alone = {"--option": option, "--cluster": cluster, "--save": save, "--checkpoint": checkpoint, "--resume": resume}
        _require_alone({**alone, "--checkpoint-every": checkpoint_every})
        chosen_ones = labelled_solvers(solvers, registry)  # before data are read
        with raising_here("the problem cannot be built", registry, traceback=traceback):
            built = instance.build(registry, data_dir)
        plan = Plan(chosen_ones, registry, (target,), limits, 1, threads, plugins, out, say, data_dir=data_dir, curves=out is not None)
        return _compared(instance, built, plan, traceback=traceback)
    if out is not None:
        raise InputError("--out is for several solvers; --save keeps the solution of one")
    (solver,) = solvers
    name, options = registry.meant(solver, key_values(option, "--option"))
    if cluster is not None and "cluster" in option_names(spec, data_dir):
        spec["cluster"] = cluster  # which is in the instance, too
    elif cluster is not None:
        options |= _on_cluster(registry.solvers[name], solver, cluster)
    chosen = registry.solver(name, options)
    every = _seconds_between(checkpoint, checkpoint_every)
    keeper = earlier = None
    if checkpoint is not None and checkpoint.is_file() and (resume is None or checkpoint.resolve() != resume.resolve()):
        raise InputError(f"--checkpoint: {checkpoint} is there already: go on from it with --resume {checkpoint}, or name another file")
    if checkpoint is not None or resume is not None:
        _require_iterating(chosen)
        origin = origin_of(instance, name, chosen, threads, registry, data_dir)
        earlier = None if resume is None else checkpoint_to_resume(resume, origin)
        keeper = None if checkpoint is None else Keeper(checkpoint, every, origin, earlier)
    if cluster not in (None, "local") and (exposed := exposure(cluster)) is not None:
        warn(exposed)
    wish = _Wish(problem, chosen, name, options, tolerance, limits, threads, save, traceback)
    try:
        with raising_here("the problem cannot be built", registry, traceback=traceback):
            built = instance.build(registry, data_dir)
        _connect(built)
        return _solved(built, wish, registry, keeper, earlier)
    except KeyboardInterrupt:
        if keeper is None:
            raise
        return fail(f"interrupted; {keeper.cut_off()}", EXIT_INTERRUPTED)
    except IncompleteError as error:
        if keeper is None and not isinstance(chosen, IterativeSolver):
            raise
        kept = "nothing was kept: with --checkpoint FILE the run could go on from there" if keeper is None else keeper.cut_off()
        raise IncompleteError(f"{error}; {kept}") from error


@dataclass(frozen=True)
class _Wish:
    """What is to be done with one problem."""

    problem: str
    solver: Solver
    name: str
    """The solver's own, where it was called by an alias."""
    options: dict[str, Any]
    tolerance: Tolerance
    limits: Limits
    threads: int
    save: Path | None
    traceback: bool


def _solved(built: Problem, wish: _Wish, registry: Registry, keeper: Keeper | None, earlier: Checkpoint | None) -> int:
    """Solve a problem with one solver, show how it goes, and return the exit code."""
    from threadpoolctl import threadpool_limits

    from bench_mtl.cli.documents import problem_document, run_document, sample_document
    from bench_mtl.core.types import Status
    from bench_mtl.engine.environment import pinned_threads

    chosen, save = wish.solver, wish.save
    if earlier is not None:
        earlier.require_fitting(built)
    with replacing("--save", "solution", save) if save is not None else contextlib.nullcontext() as file:
        say_problem(wish.problem, built)
        with pinned_threads(wish.threads), threadpool_limits(wish.threads):
            with raising_here("warm-up failed", registry, traceback=wish.traceback):
                if chosen.incompatibility(built) is None:
                    chosen.warm_up()
            record = _solve_live(built, chosen, wish.tolerance, wish.limits, keeper, earlier)
        if wish.traceback:
            say_places(record.places)
        answer(f"{record.status}: {one_line(record.reason, LONGEST_LINE)}{at(record.places)}")
        if record.status is Status.SKIPPED:
            _say_who_fits(built, registry)
        if not type(chosen).__module__.startswith("bench_mtl."):
            say("proven inside the solver's own process; `bench-mtl run` proves it again in another")
        if said := dict(record.info).get("note"):
            say(f"{chosen.label}: {one_line(str(said), LONGEST_LINE)}")
        say_solution(built, record.solution)
        say(f"{chosen.label}: {_waited(record.times)}")
        kept = None if keeper is None else _kept(keeper, record)
        if file is not None and save is not None:
            _save(file, save, record)
    if save is not None:
        say(f"solution written to {save}")
    answer_json(
        lambda: {
            **problem_document(wish.problem, built),
            "solver": wish.name,
            "label": chosen.label,
            "options": wish.options,
            "target": wish.tolerance.relative_gap,
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


def _kept(keeper: Keeper, record: Record) -> Path | None:
    """Write a checkpoint of a run that has not met its target, and return the file; None where there is nothing to be kept."""
    from bench_mtl.core.types import Status

    if record.status is Status.VERIFIED:
        return None
    try:
        step = keeper.write()
    except InputError as error:
        if record.status is not Status.ERROR:
            raise
        warn(str(error))  # a point that is none has ended the run
        return None
    if step is None:
        return None
    say(f"checkpoint of step {step} written, go on with: {command_from(keeper.path)}")
    return keeper.path


def _seconds_between(checkpoint: Path | None, seconds: float | None) -> float:
    """Return the seconds between two checkpoints."""
    from bench_mtl.core.checks import real_number

    if seconds is None:
        return _CHECKPOINT_SECONDS
    if checkpoint is None:
        raise InputError("--checkpoint-every needs --checkpoint, the file to write")
    return real_number("--checkpoint-every", seconds, strict=True)


def _require_iterating(solver: Solver) -> None:
    """Raise InputError for a solver that has nothing to go on from."""
    from bench_mtl.model.protocols import IterativeSolver

    if not isinstance(solver, IterativeSolver):
        raise InputError(f"--checkpoint and --resume are for solvers that iterate, and {solver.label} answers once for each tolerance")


def _require_alone(given: dict[str, object]) -> None:
    """Refuse options that are for one solver."""
    for name, value in given.items():
        if value:
            raise InputError(f"{name} is for one solver; a suite file gives several solvers options of their own (bench-mtl run)")


def _compared(instance: Instance, built: Problem, plan: Plan, *, traceback: bool) -> int:
    """Compare several solvers on a problem, and return the exit code."""
    from bench_mtl.cli.documents import problem_document
    from bench_mtl.comparing.running import run_instances
    from bench_mtl.core.types import Status
    from bench_mtl.data.catalogue import takes_seed
    from bench_mtl.engine.description import plan_problem

    say_problem(instance.problem, built)
    _say_that_it_compiles()
    of = plan_problem(plan.registry, instance.problem, instance.parameters)
    seed = instance.seed if takes_seed(instance.data) else None
    known = replace(instance, parameters=of.parameters, code=of.code, seed=seed)
    known = replace(known, fingerprint=known.fingerprint_here(plan.data_dir))
    data = str(instance.data.get("file") or instance.data.get("name"))
    name = require_label("the title of the report", f"{instance.problem}, {Path(data).name}")
    result = run_instances([known], plan, name, "1 problem", [f"bench-mtl {shlex.join(sys.argv[1:])}"])
    if traceback:
        say_tracebacks(result.folder)
    say()
    answer(str(result))
    report = None if plan.out is None else result.report(plan.out)
    if report is not None:
        say(f"report: {report}")
    frame = result.frame()
    answer_json(
        lambda: {
            **problem_document(instance.problem, built),
            "target": plan.targets[-1],
            "runs": frame.drop(columns=["problem", "repetition", "target"]).to_dict("records"),
            "report": report,
        }
    )
    statuses = [Status(status) for status in frame["status"]]
    is_proven = Status.VERIFIED in statuses and not any(status.is_failure for status in statuses)
    return 0 if is_proven else EXIT_FAILED


def _say_that_it_compiles() -> None:
    """Say why nothing is to be seen for a while, where this machine has compiled nothing yet."""
    from bench_mtl.core.kernels.cache import has_compiled_code

    if not has_compiled_code():
        say("solvers are compiled at their first run on a machine, for a minute or two; bench-mtl doctor --compile does it ahead")


def _say_who_fits(problem: Problem, registry: Registry) -> None:
    """Say which solvers take a problem."""
    fitting = []
    for name in registry.solvers:
        with contextlib.suppress(Exception):  # a plug-in's, or one whose options have no default
            if registry.solver(name).incompatibility(problem) is None:
                fitting.append(name)
    say(f"these take it: {', '.join(sorted(fitting)) or 'none'}")


def _connect(problem: Problem) -> None:
    """Have the workers of a problem, or say that they cannot be had, before any solver is asked."""
    if problem.is_in_shards:
        problem.design.shards.blocks.connect()  # type: ignore[attr-defined]


def _on_cluster(kind: type[Solver], name: str, cluster: str) -> dict[str, str]:
    """Return the options of a solver that give it this cluster."""
    from dataclasses import fields, is_dataclass

    known: set[str] = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    if not {"cluster", "backend"} <= known:
        raise InputError(f"--cluster: {name} runs on this machine alone; solvers that use a cluster have an option of that name")
    return {"backend": "dask", "cluster": cluster}


def _solve_live(
    problem: Problem, solver: Solver, tolerance: Tolerance, limits: Limits, keeper: Keeper | None, earlier: Checkpoint | None
) -> Record:
    """Run and show the samples: every one of a one-shot solver, at most ten a second of an iterative one, and the last."""
    import time

    from bench_mtl.engine import driver

    say(f"{'seconds':>10} {'iteration':>10} {'passes':>10} {'objective':>16} {'dual bound':>16} {'rel. gap':>9} {'infeas.':>9}")
    shown = 0.0
    last: Sample | None = None

    def line(sample: Sample) -> str:
        c = sample.certificate
        counts = f"{sample.seconds:10.4f} {sample.step:10d} {sample.work:10.1f}"
        primal, dual = outward(c.primal, 9, is_upper=True), outward(c.dual, 9, is_upper=False)
        return f"{counts} {primal:16.9g} {dual:16.9g} {c.relative_gap:9.1e} {c.infeasibility:9.1e}"

    def show(sample: Sample) -> None:
        nonlocal shown, last
        last = sample
        if keeper is not None:
            keeper.on_sample(sample)
        if sample.asked is not None or time.monotonic() - shown >= 0.1:
            say(line(sample))
            shown, last = time.monotonic(), None

    record = driver.run(
        problem, solver, tolerance=tolerance, limits=limits, on_sample=show,
        start=None if earlier is None else earlier.iterate, known=None if earlier is None else earlier.proof,
        on_iterate=None if keeper is None else keeper.on_iterate, on_proof=None if keeper is None else keeper.on_proof,
    )  # fmt: skip
    if last is not None:
        say(line(last))
    return record


def _save(file: IO[bytes], path: Path, record: Record) -> None:
    import numpy as np

    best = record.best
    if record.solution is None or best is None:
        raise InputError("--save: there is no solution to save")
    with writing_to("--save", "solution", path):
        np.savez_compressed(file, solution=record.solution, primal=best.primal, dual=best.dual, relative_gap=best.relative_gap)
        file.flush()
