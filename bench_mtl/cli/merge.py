"""`bench-mtl merge`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import answer_json, say
from bench_mtl.cli.options import A_PATH, json_option


@click.command()
@click.argument("folders", nargs=-1, required=True, type=A_PATH)
@click.option("-o", "--out", required=True, type=A_PATH, help="New results folder.")
@click.option("--without-proofs", is_flag=True, help="Leave out what `check --recertify` needs, most of the file.")
@json_option
def merge(folders: tuple[Path, ...], out: Path, without_proofs: bool) -> None:
    """Bring the results of one suite in several FOLDERS, from several machines, together in a new one.

    Of a case that several folders have, the row of the folder given first counts; the others are kept, but not reported.

    Exit code 0: merged; 2: bad usage or input, and nothing is written; 3: the disk is full; 4: a bug of bench-mtl.

    \b
    Examples:
      bench-mtl merge laptop/quick server/quick -o results/quick-both
      bench-mtl merge results/large -o to-publish/large --without-proofs
    """
    from bench_mtl.results.merge import merge as bring_together

    merged = bring_together(folders, out, proofs=not without_proofs)
    say(f"{out}: {merged.runs} runs of {len(folders)} folder{'s' if len(folders) > 1 else ''}")
    if merged.superseded == 1:
        say("1 row is of a case that a folder before has too: it is kept as superseded")
    elif merged.superseded:
        say(f"{merged.superseded} rows are of cases that a folder before has too: they are kept as superseded")
    if merged.ambiguous:
        say(f"{merged.ambiguous} runs share problem, solver, seed and repetition with another, but not version, data, options or limits")
    if len(merged.machines) > 1:
        say("the runs were made on different machines, whose times are not comparable:")
        for machine in merged.machines:
            say(f"  {machine['processor']}, {machine['logical_cores']} cores, {machine['memory_gib']} GiB")
    say(f"bench-mtl report {out} writes the report")
    answer_json(lambda: {"folder": out, "folders": folders, "merged": merged})
