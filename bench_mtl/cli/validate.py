"""`bench-mtl validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_mtl.cli.console import answer, answer_json, say
from bench_mtl.cli.options import EXIT_FAILED, json_option, plugins_option, quiet_option

if TYPE_CHECKING:
    from bench_mtl.validation.validate import Check


@click.command()
@click.option("--cases", type=int, default=50, show_default=True, help="Random cases for each projection and each problem.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--only", multiple=True, metavar="NAME", help="Only this problem, solver or projection, and its pairs. Repeatable.")
@plugins_option
@quiet_option
@json_option
def validate(cases: int, seed: int, only: tuple[str, ...], plugins: Path | None) -> int:
    """Check projections, certificates and every problem-solver pair against CVXPY on random small cases.

    Bounds of the built-in problems are also held to exact rational arithmetic, on as many small nasty instances of each.

    Exit code 0: all checks passed; 1: some failed; 2: bad usage or input; 4: a bug of bench-mtl; 130: interrupted.

    \b
    Examples:
      bench-mtl validate --cases 200
      bench-mtl validate --plugins my-plugins --only heavy_ball
    """
    from bench_mtl.core.checks import whole_number
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.runner.planning import require_importable
    from bench_mtl.validation.validate import validate as checks

    whole_number("--cases", cases, minimum=1)
    whole_number("--seed", seed)
    require_importable(plugins)
    found = checks(load_registry(plugins), cases=cases, seed=seed, only=only)
    say(f"{'subject':44} {'check':24} {'cases':>6} {'failed':>6}  worst error")
    failures = 0
    seen: list[Check] = []
    for check in found:
        failures += check.failures
        seen.append(check)
        tell = answer if check.failures else say  # --quiet leaves what failed
        worst = "-" if check.worst is None else f"{check.worst:.1e}"
        tell(f"{check.subject:44} {check.what:24} {check.cases:6} {check.failures:6}  {worst}")
        if check.message:
            tell(f"    {check.message}")
    say("all checks passed" if not failures else f"{failures} cases failed")
    answer_json(lambda: {"failures": failures, "checks": seen})
    return EXIT_FAILED if failures else 0
