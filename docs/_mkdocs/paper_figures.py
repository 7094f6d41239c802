"""The reports of papers' experiments with all their figures, which the repository leaves out and the site shows."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Where they are made; git ignores it.
DRAWN = ROOT / "results" / "site"


def drawn_reports() -> dict[str, Path]:
    """Return the text and the figures of these reports by their places on the site; what is older than its rows or the code is made."""
    code = max(file.stat().st_mtime for folder in ("bench_mtl", "papers") for file in (ROOT / folder).rglob("*.py"))
    rows = {file.parent.name: file for file in sorted((ROOT / "reports").glob("*/cells.sqlite"))}
    stale = [name for name, file in rows.items() if is_stale(DRAWN / name / "report.md", max(code, file.stat().st_mtime))]
    for name in stale:
        shutil.rmtree(DRAWN / name, ignore_errors=True)
        (DRAWN / name).mkdir(parents=True)
        shutil.copy(rows[name], DRAWN / name)
    draw([DRAWN / name for name in stale])
    files = [file for name in rows for pattern in ("report.md", "*.svg", "figures/*.svg") for file in sorted((DRAWN / name).glob(pattern))]
    return {f"reports/{file.relative_to(DRAWN).as_posix()}": file for file in files}


def draw(folders: Sequence[Path]) -> None:
    """Write reports, in whose texts every figure is shown in the place of its name."""
    sys.path.insert(0, str(ROOT))  # the experiments are not in the package that is installed
    from papers.report import write_report

    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for path, _ in pool.map(write_report, folders):
            text = re.sub(r"^Figure: `(figures/.*)`$", r"![](\1)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            path.write_text(text, encoding="utf-8")


def is_stale(file: Path, since: float) -> bool:
    """Return whether a file is not there, or older than this time."""
    return not file.exists() or file.stat().st_mtime < since
