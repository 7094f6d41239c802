"""What the tables of a report are called, and how they are printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_mtl.report.render import BLANK, display
from bench_mtl.results.frames import all_skipped

if TYPE_CHECKING:
    import pandas as pd

#: What a table repeats in every row is left out of its printed form.
_CONSTANT = ("Seed", "Repetition", "Runs")

#: Columns for machines: CSV and Parquet only.
_DATA_ONLY = ("Instance", "Finding")

#: Of a table in print; its CSV and Parquet files have them all.
MOST_ROWS = 500


@dataclass(frozen=True)
class About:
    """What a table is."""

    title: str
    sentence: str


#: By the names of their files, in the order in which they are shown.
TABLES = {
    "winners": About("Winners", "The fastest solver to each target, and the fastest of the other kind."),
    "speed_ups": About("Speed-ups", "Geometric means of the ratios of like problems."),
    "comparisons": About("Comparisons", "Solver against solver over like problems, with intervals and paired tests."),
    "means": About("Means", "Shifted geometric means of the time to each target over like problems, with failures entered in three ways."),
    "summary": About("Summary", "Verified accuracy and time to each target."),
    "measures": About("Measures", "What problems measure of points: at each run's best point and at its last one."),
    "scaling": About("Scaling", "Exponents of the time to the last target in the size of the data."),
    "times": About("Times", "Seconds by what they were spent on."),
    "tolerances": About("Tolerances asked", "What each tolerance asked of a generic solver gave."),
    "objectives": About("Objectives", "Proven enclosure of the optimum by every run."),
    "enclosures": About("Enclosures", "Best proven enclosure of the optimum of every instance."),
    "time_to_gap": About("Time to each target", "Median time to each target, with the fastest and the slowest run, and passes."),
    "instances": About("Instances", "Time and passes to each target on every instance."),
    "statuses": About("Statuses", "How often each solver's runs ended how."),
    "not_verified": About("Not verified", "Runs that are not verified, and why."),
}


def printed(table: pd.DataFrame, *drop: str) -> pd.DataFrame:
    """A table as text for people, without what its rows all share and without the columns titled `drop`."""
    shown = display(table)
    shared = [title for title in _CONSTANT if title in shown and len(set(shown[title]) - {BLANK}) <= 1]
    return shown.drop(columns=[title for title in (*shared, *_DATA_ONLY, *drop) if title in shown])


def without_skipped(summary: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows of solvers that were run, and a sentence that names the others."""
    skipped = all_skipped(summary["status"])
    names = ", ".join(dict.fromkeys(summary.loc[skipped, "solver"].map(str)))
    return summary[~skipped], f"Skipped, for they do not fit: {names}." if names else ""
