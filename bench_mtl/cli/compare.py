"""`bench-mtl compare`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import say
from bench_mtl.cli.options import EXIT_FAILED


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--threshold", type=float, default=0.1, show_default=True, help="Share by which B may be slower than A.")
@click.option("--anyway", is_flag=True, help="Compare different machines or numbers of threads too.")
def compare(a: Path, b: Path, threshold: float, anyway: bool) -> int:
    """Compare two results folders case by case: the old one A, the new one B.

    Exit code 1 when B is significantly slower, has lost a `verified`, or contradicts what A proves.

    \b
    Examples:
      bench-mtl compare results/before results/after
      bench-mtl compare results/before results/after --threshold 0.25
    """
    from bench_mtl.core.checks import real_number
    from bench_mtl.report.comparison_text import to_words
    from bench_mtl.results.comparison import compare as compared

    comparison = compared(a, b, threshold=real_number("--threshold", threshold), anyway=anyway)
    say(to_words(comparison))
    return EXIT_FAILED if comparison.has_regressed else 0
