"""`bench-mtl publish`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import answer, answer_json, say, warn
from bench_mtl.cli.options import A_PATH, EXIT_FAILED, data_dir_option, json_option, plugins_option, quiet_option
from bench_mtl.core.errors import plural


@click.command()
@click.argument("results", nargs=-1, required=True, type=A_PATH)
@click.option("--out", required=True, type=A_PATH, help="Folder of the site: new, empty or an earlier site.")
@click.option("--title", default="Comparisons of solvers", show_default=True, help="Title of the index.")
@click.option("--instances", is_flag=True, help="Build the instances again and write them as npz and as MPS or CBF; takes its time.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes that draw figures.")
@data_dir_option
@plugins_option
@quiet_option
@json_option
def publish(
    results: tuple[Path, ...], out: Path, title: str, instances: bool, jobs: int, data_dir: Path | None, plugins: Path | None
) -> int:
    """Write a static site of RESULTS: results folders, or folders of such.

    An index of all suites, the report of each, a page for every instance with its rows, leader boards by problem and target, and the
    history of suites that were run several times. It needs no server and asks the network for nothing. An earlier site is replaced when
    the new one is complete.

    Exit code 1 when proven bounds in some results exclude each other; the site says where.

    \b
    Examples:
      bench-mtl publish reports --out site --jobs 2
      bench-mtl publish results/quick results/mine --out site --title "Our solvers"
      bench-mtl publish results/mine --out site --instances --data-dir ~/data
    """
    from bench_mtl.publish import publish as written

    site = written(results, out, title=title, instances=instances, data_dir=data_dir, plugins=plugins, jobs=jobs)
    if site.left_out:
        warn(f"no results of a suite, left out: {', '.join(site.left_out)}")
    say(f"{plural(site.suites, 'suite')}, leader boards of {plural(site.families, 'problem')}")
    answer(f"site: {site.index}, {plural(site.instances, 'instance')}")
    answer_json(lambda: site)
    for name in site.contradictions:
        warn(f"proven bounds in {name} contradict each other")
    return EXIT_FAILED if site.contradictions else 0
