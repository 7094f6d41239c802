"""`bench-mtl doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_mtl.cli.console import answer, answer_json, say
from bench_mtl.cli.options import EXIT_FAILED, data_dir_option, json_option, plugins_option, quiet_option

if TYPE_CHECKING:
    from bench_mtl.validation.ahead_of_time import Compiled
    from bench_mtl.validation.doctor import Finding


@click.command()
@data_dir_option
@plugins_option
@click.option(
    "--compile/--no-compile",
    default=None,
    help="Only compile all that solvers and projections call, so that no run has to; or look at all but what would compile.",
)
@quiet_option
@json_option
def doctor(data_dir: Path | None, plugins: Path | None, compile: bool | None) -> int:
    """Say what is installed, solver by solver, and whether clock, limits and storage work here.

    --quiet leaves what is broken.

    Exit code 0: all works; 1: something is broken; 2: bad usage or input; 4: a bug of bench-mtl; 130: interrupted.

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
    from bench_mtl.validation.doctor import findings

    topic, broken = "", 0
    seen: list[Finding] = []
    for finding in findings(plugins, data_dir, compiles=compile is None):
        seen.append(finding)
        if finding.topic != topic:
            topic = finding.topic
            say(f"\n{topic}" if broken or topic != "machine" else topic)
        mark = {True: "ok", False: "BROKEN", None: ""}[finding.works]
        (answer if finding.works is False else say)(f"  {finding.what:32} {mark:7} {finding.found}")
        broken += finding.works is False
    say("\nall works" if not broken else f"\n{broken} broken")
    answer_json(lambda: {"broken": broken, "findings": seen})
    return EXIT_FAILED if broken else 0


def _compile(plugins: Path | None) -> int:
    """Compile ahead of time, and say what takes how long."""
    import time

    from bench_mtl.core.errors import plural
    from bench_mtl.validation.ahead_of_time import compile_all

    start, functions, broken = time.perf_counter(), 0, 0
    parts: list[Compiled] = []
    for done in compile_all(plugins):
        parts.append(done)
        functions, broken = functions + done.functions, broken + bool(done.trouble)
        if done.trouble or done.functions:
            found = f"does not work: {done.trouble}" if done.trouble else plural(done.functions, "function")
            (answer if done.trouble else say)(f"  {done.part:28} {done.seconds:6.1f} s  {found}")
    say(f"{plural(functions, 'function')} compiled in {time.perf_counter() - start:.0f} s; the rest was there")
    answer_json(lambda: {"broken": broken, "functions": functions, "parts": parts})
    return EXIT_FAILED if broken else 0
