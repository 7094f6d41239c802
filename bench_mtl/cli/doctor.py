"""`bench-mtl doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import say
from bench_mtl.cli.options import EXIT_FAILED, data_dir_option, plugins_option


@click.command()
@data_dir_option
@plugins_option
@click.option("--compile", "compile_only", is_flag=True, help="Only compile all that solvers and projections call, so that no run has to.")
def doctor(data_dir: Path | None, plugins: Path | None, compile_only: bool) -> int:
    """Say what is installed, solver by solver, and whether clock, limits and storage work here.

    \b
    Examples:
      bench-mtl doctor
      bench-mtl doctor --compile
    """
    from bench_mtl.runner.planning import require_importable

    require_importable(plugins)
    if compile_only:
        return _compile(plugins)
    from bench_mtl.validation.doctor import findings

    topic, broken = "", 0
    for finding in findings(plugins, data_dir):
        if finding.topic != topic:
            topic = finding.topic
            say(f"\n{topic}" if broken or topic != "machine" else topic)
        mark = {True: "ok", False: "BROKEN", None: ""}[finding.works]
        say(f"  {finding.what:32} {mark:7} {finding.found}")
        broken += finding.works is False
    say("\nall works" if not broken else f"\n{broken} broken")
    return EXIT_FAILED if broken else 0


def _compile(plugins: Path | None) -> int:
    """Compile ahead of time, and say what takes how long."""
    import time

    from bench_mtl.core.errors import plural
    from bench_mtl.validation.ahead_of_time import compile_all

    start, functions, broken = time.perf_counter(), 0, 0
    for done in compile_all(plugins):
        functions, broken = functions + done.functions, broken + bool(done.trouble)
        if done.trouble or done.functions:
            found = f"does not work: {done.trouble}" if done.trouble else plural(done.functions, "function")
            say(f"  {done.part:28} {done.seconds:6.1f} s  {found}")
    say(f"{plural(functions, 'function')} compiled in {time.perf_counter() - start:.0f} s; the rest was there")
    return EXIT_FAILED if broken else 0
