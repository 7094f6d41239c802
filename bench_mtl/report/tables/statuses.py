"""How often each solver's runs ended how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_mtl.core.types import Status
from bench_mtl.results.frames import kinds

if TYPE_CHECKING:
    import pandas as pd


def statuses(runs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Return one row per solver: kind, tried (runs that were not skipped), and the count of every status, over all problems."""
    groups = runs.groupby("solver_label", sort=False)
    table = groups["solver"].first().map(kinds(runs, samples)).to_frame("kind")
    counts = {str(status): (runs["status"] == status).groupby(runs["solver_label"], sort=False).sum() for status in Status}
    table["tried"] = groups.size() - counts[Status.SKIPPED]
    return table.assign(**counts).reset_index().rename(columns={"solver_label": "solver"})
