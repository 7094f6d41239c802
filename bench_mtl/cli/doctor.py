"""`bench-mtl doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import say
from bench_mtl.cli.options import EXIT_FAILED, data_dir_option, plugins_option


@click.command()
@data_dir_option
@plugins_option
def doctor(data_dir: Path | None, plugins: Path | None) -> int:
    """Say what is installed, solver by solver, and whether clock, limits and storage work here.

    \b
    Example:
      bench-mtl doctor
    """
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
