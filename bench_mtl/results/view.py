"""What of the results a report is made of, and against what it measures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import unknown
from bench_mtl.results.selection import Selection, data_word

if TYPE_CHECKING:
    import pandas as pd

#: How a report begins to say that it is not of everything.
VIEW = "This is a view of the results: "

#: The columns of the keys of a selection that are not called as these.
_COLUMNS = {"problem": "problem_label", "family": "problem", "solver": "solver_label"}


@dataclass(frozen=True)
class View:
    """What of the results to report: to `targets` in the place of the suite's, of the runs that the texts of a `Selection` `select`.

    Speed-ups are taken against the solver with the label `baseline`, or else on every problem against the fastest generic one.
    """

    targets: tuple[float, ...] = ()
    baseline: str | None = None
    select: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for target in self.targets:
            real_number("--target", target, strict=True, maximum=1.0)
        Selection(self.select, "--select")  # looks at the texts

    def selected(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of `runs` to report; raises InputError where there is none, or the baseline is not among their solvers."""
        chosen = runs
        if self.select:
            places = Selection(self.select, "--select").places(lambda key: _words(runs, key), len(runs), "run")
            chosen = runs.iloc[places]
        labels = [str(label) for label in chosen["solver_label"]]
        if self.baseline is not None and self.baseline not in labels:
            raise unknown("solver of --baseline", self.baseline, labels)
        return chosen.reset_index(drop=True)

    @property
    def sentence(self) -> str:
        """What is not as the suite has it; empty where all is."""
        parts = [f"only runs with {', '.join(self.select)}"] if self.select else []
        parts += ["targets other than the suite's"] if self.targets else []
        parts += [f"speed-ups against {self.baseline}"] if self.baseline is not None else []
        return f"{VIEW}{'; '.join(parts)}." if parts else ""


def _words(runs: pd.DataFrame, key: str) -> list[str]:
    """Return the value of a key of each run, as it is written on the command line; a problem without a seed has an empty one."""
    values = runs[_COLUMNS.get(key, key)]
    if key == "data":
        return [data_word(json.loads(text)) for text in values]
    return ["" if missing else str(value) for value, missing in zip(values, values.isna(), strict=True)]
