"""`bench-mtl validate` and `bench-mtl doctor`: whether all is right, and whether all works here."""

from __future__ import annotations

import time
from pathlib import Path

import click

from bench_mtl.cli.console import answer, answer_json, say
from bench_mtl.cli.options import EXIT_FAILED, plugins_option, script_options, source_options
from bench_mtl.core.errors import plural


@click.command()
@click.option("--cases", type=int, default=50, show_default=True, help="Random cases for each projection and each problem.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--only", multiple=True, metavar="NAME", help="Only this problem, solver or projection, and its pairs. Repeatable.")
@plugins_option
@script_options
def validate(cases: int, seed: int, only: tuple[str, ...], plugins: Path | None) -> int:
    """Check projections, certificates and every problem-solver pair against CVXPY on random small cases.

    Bounds of the built-in problems are also held to exact rational arithmetic, on as many small nasty instances of each.

    \b
    Examples:
      bench-mtl validate --cases 200
      bench-mtl validate --plugins my-plugins --only heavy_ball
    """
    from bench_mtl.core.checks import whole_number
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.runner.planning import require_importable
    from bench_mtl.validation.validate import validate as checks_of

    whole_number("--cases", cases, minimum=1)
    whole_number("--seed", seed)
    require_importable(plugins)
    made = checks_of(load_registry(plugins), cases=cases, seed=seed, only=only)
    say(f"{'subject':44} {'check':24} {'cases':>6} {'failed':>6}  worst error")
    checks = []
    for check in made:
        checks.append(check)
        tell = answer if check.failures else say  # --quiet leaves what failed
        worst = "-" if check.worst is None else f"{check.worst:.1e}"
        tell(f"{check.subject:44} {check.what:24} {check.cases:6} {check.failures:6}  {worst}")
        if check.message:
            tell(f"    {check.message}")
    failures = sum(check.failures for check in checks)
    say("all checks passed" if not failures else f"{failures} cases failed")
    answer_json(lambda: {"failures": failures, "checks": checks})
    return EXIT_FAILED if failures else 0


@click.command()
@source_options
@click.option(
    "--compile/--no-compile", default=None,
    help="Only compile all that solvers and projections call, so that no run has to; or look at all but what would compile.",
)  # fmt: skip
@script_options
def doctor(data_dir: Path | None, plugins: Path | None, compile: bool | None) -> int:
    """Say what is installed, solver by solver, and whether clock, limits and storage work here.

    --quiet leaves what is broken.

    \b
    Examples:
      bench-mtl doctor
      bench-mtl doctor --compile
      bench-mtl doctor --no-compile
    """
    from bench_mtl.runner.planning import require_importable

    require_importable(plugins)
    if compile:
        return _compile(plugins)
    from bench_mtl.validation.doctor import findings as look

    topic = ""
    findings = []
    for finding in look(plugins, data_dir, compiles=compile is None):
        if finding.topic != topic:
            say(f"\n{finding.topic}" if topic else finding.topic)
        topic = finding.topic
        findings.append(finding)
        mark = {True: "ok", False: "BROKEN", None: ""}[finding.works]
        (answer if finding.works is False else say)(f"  {finding.what:32} {mark:7} {finding.found}")
    broken = sum(finding.works is False for finding in findings)
    say("\nall works" if not broken else f"\n{broken} broken")
    answer_json(lambda: {"broken": broken, "findings": findings})
    return EXIT_FAILED if broken else 0


def _compile(plugins: Path | None) -> int:
    """Compile ahead of time, and say what takes how long."""
    from bench_mtl.validation.ahead_of_time import compile_all

    start = time.perf_counter()
    parts = []
    for part in compile_all(plugins):
        parts.append(part)
        words = f"does not work: {part.trouble}" if part.trouble else plural(part.functions, "function")
        if part.trouble or part.functions:
            (answer if part.trouble else say)(f"  {part.part:28} {part.seconds:6.1f} s  {words}")
    functions, broken = sum(part.functions for part in parts), sum(bool(part.trouble) for part in parts)
    say(f"{plural(functions, 'function')} compiled in {time.perf_counter() - start:.0f} s; the rest was there")
    answer_json(lambda: {"broken": broken, "functions": functions, "parts": parts})
    return EXIT_FAILED if broken else 0
