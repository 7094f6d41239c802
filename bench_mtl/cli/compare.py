"""`bench-mtl compare`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import answer, answer_json
from bench_mtl.cli.options import A_PATH, EXIT_FAILED, json_option


@click.command()
@click.argument("a", type=A_PATH)
@click.argument("b", type=A_PATH)
@click.option("--threshold", type=float, default=0.1, show_default=True, help="Share by which B may be slower than A.")
@click.option("--anyway", is_flag=True, help="Compare different machines or numbers of threads too.")
@json_option
def compare(a: Path, b: Path, threshold: float, anyway: bool) -> int:
    """Compare two results folders case by case: the old one A, the new one B.

    Exit code 0: B is no worse; 1: B is significantly slower, has lost a `verified`, or contradicts what A proves; 2: bad usage or input, or
    results that cannot be compared; 4: a bug of bench-mtl.

    \b
    Examples:
      bench-mtl compare results/before results/after
      bench-mtl compare results/before results/after --threshold 0.25
    """
    from bench_mtl.core.checks import real_number
    from bench_mtl.report.comparison_words import to_words, verdict
    from bench_mtl.results.comparison import compare as compared

    comparison = compared(a, b, threshold=real_number("--threshold", threshold), anyway=anyway)
    answer(to_words(comparison))
    answer_json(lambda: {"has_regressed": comparison.has_regressed, "verdict": verdict(comparison), "comparison": comparison})
    return EXIT_FAILED if comparison.has_regressed else 0
