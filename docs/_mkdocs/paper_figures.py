"""The reports of papers' experiments with all their figures, which the repository leaves out and the site shows."""

from __future__ import annotations

import shutil
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Where they are made; git ignores it.
DRAWN = ROOT / "results" / "site"


def drawn_reports() -> dict[str, Path]:
    """Return the text and the figures of these reports by their places on the site; what is older than its rows or the code is made."""
    from bench_mtl.papers import rewrite_paper_report

    code = max(file.stat().st_mtime for file in (ROOT / "bench_mtl").rglob("*.py"))
    rows = {file.parent.name: file for file in sorted((ROOT / "reports").glob("*/cells.sqlite"))}
    stale = [name for name, file in rows.items() if is_stale(DRAWN / name / "report.md", max(code, file.stat().st_mtime))]
    for name in stale:
        shutil.rmtree(DRAWN / name, ignore_errors=True)
        (DRAWN / name).mkdir(parents=True)
        shutil.copy(rows[name], DRAWN / name)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(rewrite_paper_report, [DRAWN / name for name in stale], stale, repeat(("md", "svg"))))
    files = [file for name in rows for pattern in ("report.md", "figures/*.svg") for file in sorted((DRAWN / name).glob(pattern))]
    return {f"reports/{file.relative_to(DRAWN).as_posix()}": file for file in files}


def is_stale(file: Path, since: float) -> bool:
    """Return whether a file is not there, or older than this time."""
    return not file.exists() or file.stat().st_mtime < since
