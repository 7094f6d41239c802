"""The command line. Commands are thin: they parse, call the library and choose the exit code.

Exit codes: 0 when no run is wrong, crashed or error (timeouts, memory, inaccurate and skipped rows carry their reason), 1 when some run
is, 2 for bad usage or input, 130 when interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

from bench_mtl import __version__
from bench_mtl.console import say
from bench_mtl.errors import BenchError, InputError

if TYPE_CHECKING:
    from bench_mtl.protocols import Problem, Solver
    from bench_mtl.types import Limits, Record, Sample, Tolerance

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130

data_dir_option = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Folder of .npz data sets; the environment variable BENCH_MTL_DATA by default."
)
plugins_option = click.option(
    "--plugins", type=click.Path(path_type=Path), help="Folder with problems/*.py and solvers/*.py to use besides the installed ones."
)


def main() -> None:
    """Entry point: errors with a name become one line and exit code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = cli(standalone_mode=False)
    except click.exceptions.Abort:  # what click makes of a KeyboardInterrupt
        code = _fail("interrupted", EXIT_INTERRUPTED)
    except click.ClickException as error:
        usage = f" (see: {error.ctx.command_path} --help)" if isinstance(error, click.UsageError) and error.ctx else ""
        code = _fail(" ".join(error.format_message().split()) + usage, EXIT_BAD_INPUT)
    except BenchError as error:
        code = _fail(" ".join(str(error).split()), EXIT_BAD_INPUT)
    except OSError as error:
        code = _fail(" ".join(str(error).split()), EXIT_BAD_INPUT)
    sys.exit(code if isinstance(code, int) else 0)


def _interrupt(*_: object) -> NoReturn:
    """A request to end is an interrupt, so that every `finally` is passed: the one that ends the worker, above all."""
    raise KeyboardInterrupt


def _fail(message: str, code: int) -> int:
    click.echo(f"bench-mtl: {message}", err=True)
    return code


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="bench-mtl")
def cli() -> None:
    """Compare specialised with generic solvers on structured multi-task problems, every number proven.

    \b
    Examples:
      bench-mtl run quick                          run a shipped suite, write results/quick/report.md
      bench-mtl run scene --data-dir ~/data        a suite on real data
      bench-mtl solve l1inf_hinge conic --data digits --param radius=5
      bench-mtl validate --cases 200               check everything against CVXPY
    """


@cli.command()
@click.argument("suite")
@click.option("--out", type=click.Path(path_type=Path), help="Output folder; results/SUITE by default.")
@data_dir_option
@plugins_option
def run(suite: str, out: Path | None, data_dir: Path | None, plugins: Path | None) -> int:
    """Run SUITE (a shipped name or a TOML file), store a row for every case and write the report.

    Cases that have a row already are not run again: the same command resumes an interrupted run.

    \b
    Examples:
      bench-mtl run quick
      bench-mtl run my-suite.toml --out results/mine --plugins my-plugins
    """
    from bench_mtl.progress import reporter
    from bench_mtl.registry import load_registry
    from bench_mtl.report import write_report
    from bench_mtl.runner import run_cases
    from bench_mtl.store import Store
    from bench_mtl.suite import expand
    from bench_mtl.suite_file import read_suite

    chosen = read_suite(suite)
    registry = load_registry(plugins)
    cases = expand(chosen, registry)
    for instance in {case.instance.key: case.instance for case in cases}.values():
        problem = instance.build(registry, data_dir)  # bad data end here, before anything is written
        for note in problem.notes:
            say(f"{instance.label}: {note}")
    folder = out or Path("results") / chosen.name
    try:
        with Store.create(folder, chosen) as store:
            finished = store.finished()
            waiting = [case for case in cases if case.key not in finished]
            if len(waiting) < len(cases):
                say(f"{len(cases) - len(waiting)} of {len(cases)} cases are done already")
            with reporter(len(waiting)) as show:
                run_cases(waiting, store, plugins=plugins, data_dir=data_dir, on_start=show.start, on_outcome=show.end)
        _print_report(folder, write_report(folder))
    except KeyboardInterrupt:
        return _fail("interrupted; what has finished is stored, the same command goes on from there", EXIT_INTERRUPTED)
    return _exit_code(folder)


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path))
def report(folder: Path) -> int:
    """Write the report of the results in FOLDER again: report.md, tables/, figures/.

    \b
    Example:
      bench-mtl report results/quick
    """
    from bench_mtl.report import write_report

    _print_report(folder, write_report(folder))
    return _exit_code(folder)


@cli.command("list")
@click.argument("what", type=click.Choice(["problems", "solvers", "suites", "data"]))
@data_dir_option
@plugins_option
def list_(what: str, data_dir: Path | None, plugins: Path | None) -> None:
    """List what there is: problems, solvers, suites or data.

    \b
    Examples:
      bench-mtl list solvers
      bench-mtl list data --data-dir ~/data
    """
    from bench_mtl import listing

    say(listing.render(what, data_dir=data_dir, plugins=plugins))


@cli.command()
@click.argument("problem")
@click.argument("solver")
@click.option("--data", required=True, help="A generator, an embedded or catalogued data set, or a data file.")
@click.option("--data-option", multiple=True, metavar="KEY=VALUE", help="Option of the data, e.g. tasks=10. Repeatable.")
@click.option("--param", multiple=True, metavar="KEY=VALUE", help="Parameter of the problem, e.g. radius=5. Repeatable.")
@click.option("--option", multiple=True, metavar="KEY=VALUE", help="Option of the solver, e.g. backend=ECOS. Repeatable.")
@click.option("--preprocess", multiple=True, help="none, unit_rows, standardise, tfidf or svd:K. Repeatable, in order.")
@click.option("--target", type=float, default=1e-6, show_default=True, help="Relative gap to prove.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time limit, checked between steps.")
@click.option("--iterations", type=int, help="Iteration limit.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the data generator.")
@click.option("--threads", type=int, default=1, show_default=True)
@click.option("--save", type=click.Path(path_type=Path), help="Write the solution and its certificate to this .npz file.")
@data_dir_option
@plugins_option
def solve(
    problem: str, solver: str, data: str, data_option: tuple[str, ...], param: tuple[str, ...], option: tuple[str, ...],
    preprocess: tuple[str, ...], target: float, seconds: float, iterations: int | None, seed: int, threads: int,
    save: Path | None, data_dir: Path | None, plugins: Path | None,
) -> int:  # fmt: skip
    """Solve one PROBLEM with one SOLVER in this process and show every certified sample.

    \b
    Examples:
      bench-mtl solve l1inf_hinge projected_subgradient --data synthetic_l1inf --param radius=truth --target 1e-2
      bench-mtl solve sparse_low_rank accelerated_gradient --data digits --param gamma=1 --param tau=5
    """
    from threadpoolctl import threadpool_limits

    from bench_mtl.checks import real_number, whole_number
    from bench_mtl.data.catalogue import spec_of
    from bench_mtl.environment import pinned_threads
    from bench_mtl.registry import load_registry
    from bench_mtl.suite import Instance
    from bench_mtl.types import Limits, Tolerance

    tolerance = Tolerance(real_number("--target", target, strict=True))
    limits = Limits(
        seconds=real_number("--seconds", seconds, strict=True),
        iterations=None if iterations is None else whole_number("--iterations", iterations, minimum=1),
    )
    whole_number("--threads", threads, minimum=1)
    registry = load_registry(plugins)
    spec: dict[str, Any] = {**spec_of(data, data_dir), **_pairs(data_option, "--data-option")}
    if preprocess:
        spec["preprocess"] = list(preprocess)
    chosen = registry.solver(solver, _pairs(option, "--option"))
    built = Instance(problem, problem, spec, _pairs(param, "--param"), whole_number("--seed", seed)).build(registry, data_dir)
    with _saving(save) if save is not None else contextlib.nullcontext() as file:
        say(f"{problem}: " + ", ".join(f"{key} = {value}" for key, value in built.dimensions.items()))
        for note in built.notes:
            say(f"note: {note}")
        with pinned_threads(threads), threadpool_limits(threads):
            if chosen.misfit(built) is None:
                chosen.warm_up()
            record = _solve_live(built, chosen, tolerance, limits)
        say(f"{record.status}: {record.reason}")
        times = ", ".join(f"{name} {value:.3g} s" for name, value in vars(record.times).items() if value)
        say(f"times: {times or 'none'}")
        if file is not None and save is not None:
            _save(file, save, record)
    if save is not None:
        say(f"solution written to {save}")
    return EXIT_FAILED if record.status.is_failure else 0


@cli.command()
@click.option("--cases", type=int, default=50, show_default=True, help="Random cases for each projection and each problem.")
@click.option("--seed", type=int, default=0, show_default=True)
@plugins_option
def validate(cases: int, seed: int, plugins: Path | None) -> int:
    """Check projections, certificates and every problem-solver pair against CVXPY on random small cases.

    \b
    Example:
      bench-mtl validate --cases 200
    """
    from bench_mtl.checks import whole_number
    from bench_mtl.registry import load_registry
    from bench_mtl.validate import validate as checks

    whole_number("--cases", cases, minimum=1)
    whole_number("--seed", seed)
    say(f"{'subject':44} {'check':24} {'cases':>6} {'failed':>6}  worst error")
    failures = 0
    for check in checks(load_registry(plugins), cases=cases, seed=seed):
        failures += check.failures
        worst = "-" if check.worst is None else f"{check.worst:.1e}"
        say(f"{check.subject:44} {check.what:24} {check.cases:6} {check.failures:6}  {worst}")
        if check.message:
            say(f"    {check.message}")
    say("all checks passed" if not failures else f"{failures} cases failed")
    return EXIT_FAILED if failures else 0


def _pairs(texts: tuple[str, ...], where: str) -> dict[str, Any]:
    """KEY=VALUE texts as a table; values are read as TOML and otherwise as strings."""
    from bench_mtl.suite_file import read_toml, require_storable

    table: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"{where} must be KEY=VALUE, not '{text}'")
        try:
            table[key] = read_toml(f"value = {value}")["value"]
        except InputError as error:
            raise InputError(f"{where} {key}: {error}") from None
        except ValueError:
            table[key] = value
        require_storable(f"{where} {key}", table[key])
    return table


def _solve_live(problem: Problem, solver: Solver, tolerance: Tolerance, limits: Limits) -> Record:
    """Run and show the samples: every one of a one-shot solver, at most ten a second of an iterative one, and the last."""
    import time

    from bench_mtl import driver

    say(f"{'seconds':>10} {'iteration':>10} {'passes':>10} {'objective':>16} {'dual bound':>16} {'rel. gap':>9} {'infeas.':>9}")
    shown = 0.0
    last: Sample | None = None

    def line(sample: Sample) -> str:
        c = sample.certificate
        counts = f"{sample.seconds:10.4f} {sample.step:10d} {sample.work:10.1f}"
        return f"{counts} {c.primal:16.9g} {c.dual:16.9g} {c.relative_gap:9.1e} {c.infeasibility:9.1e}"

    def show(sample: Sample) -> None:
        nonlocal shown, last
        last = sample
        if sample.asked is not None or time.monotonic() - shown >= 0.1:
            say(line(sample))
            shown, last = time.monotonic(), None

    record = driver.run(problem, solver, tolerance=tolerance, limits=limits, on_sample=show)
    if last is not None:
        say(line(last))
    return record


@contextlib.contextmanager
def _saving(path: Path) -> Iterator[IO[bytes]]:
    """PATH.part, open to be written before anything is solved; it takes the name PATH at the end, or goes."""
    from bench_mtl.paths import exists, is_file

    if exists("--save", path) and not is_file("--save", path):
        raise InputError(f"--save: {path} is not a file, so it cannot be replaced by one")
    part = path.with_name(f"{path.name}.part")
    try:
        with _writing_to(path):
            file = part.open("wb")
        with file:
            yield file
        with _writing_to(path):
            os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


@contextlib.contextmanager
def _writing_to(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"--save: the solution cannot be written to {path}: {error}") from None


def _save(file: IO[bytes], path: Path, record: Record) -> None:
    import numpy as np

    best = record.best
    if record.solution is None or best is None:
        raise InputError("--save: there is no solution to save")
    with _writing_to(path):
        np.savez_compressed(file, solution=record.solution, primal=best.primal, dual=best.dual, relative_gap=best.relative_gap)
        file.flush()


def _print_report(folder: Path, path: Path) -> None:
    from bench_mtl.report import summary_text

    say()
    say(summary_text(folder))
    say(f"\nreport: {path}")


def _exit_code(folder: Path) -> int:
    from bench_mtl.store import Store
    from bench_mtl.types import Status

    with Store.open(folder) as store:
        statuses = [Status(status) for status in store.runs()["status"]]
    failed = sum(status.is_failure for status in statuses)
    if failed:
        click.echo(f"{failed} of {len(statuses)} runs failed (wrong, crashed or error); the report says why", err=True)
    return EXIT_FAILED if failed else 0
