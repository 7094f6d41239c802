"""What of the results a report is made of, and against what it measures."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: What runs can be selected by, with the column it stands for.
SELECTABLE = {
    "problem": "problem_label",
    "family": "problem",
    "solver": "solver_label",
    "seed": "seed",
    "repetition": "repetition",
}

#: At most this many names are listed to somebody who asked for one that is not there.
_MOST_NAMES = 20


@dataclass(frozen=True)
class View:
    """What of the results to report.

    Parameters
    ----------
    targets : relative gaps that take the place of the suite's; none: the suite's
    baseline : label of the solver that speed-ups are taken against; None: on every problem the fastest generic one
    select : texts KEY=PATTERN, with a key of `SELECTABLE` and a pattern of `fnmatch`. Patterns of one key are alternatives, different keys
        must all hold.

    Raises
    ------
    InputError : a target that is not above zero and at most 1, or a text that is not KEY=PATTERN with a known key.
    """

    targets: tuple[float, ...] = ()
    baseline: str | None = None
    select: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for target in self.targets:
            if real_number("--target", target, strict=True) > 1.0:
                raise InputError(f"--target must be a relative gap, above 0 and at most 1, not {target:g}")
        for text in self.select:
            key, equals, pattern = text.partition("=")
            if not equals or not pattern or key not in SELECTABLE:
                raise InputError(f"--select must be KEY=PATTERN with a key of {', '.join(SELECTABLE)}, not '{text}'")

    def selected(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of `runs` to report.

        Raises
        ------
        InputError : there is none, or the baseline is not among their solvers.
        """
        patterns: dict[str, list[str]] = {}
        for text in self.select:
            key, _, pattern = text.partition("=")
            patterns.setdefault(key, []).append(pattern)
        chosen = runs
        for key, of_key in patterns.items():
            values = runs[SELECTABLE[key]].map(_text)
            fits = values.map(lambda value, of_key=of_key: any(fnmatch.fnmatchcase(value, pattern) for pattern in of_key))
            if not fits.any():
                raise InputError(f"--select: no run has a {key} like {' or '.join(of_key)}: there are {_named(values)}")
            chosen = chosen[fits.reindex(chosen.index)]
        if chosen.empty:
            raise InputError(f"--select: no run fits {' and '.join(self.select)} together")
        if self.baseline is not None and self.baseline not in set(chosen["solver_label"]):
            raise InputError(f"--baseline: no solver is called '{self.baseline}': there are {_named(chosen['solver_label'])}")
        return chosen.reset_index(drop=True)

    @property
    def sentence(self) -> str:
        """What is not as the suite has it; empty where all is."""
        parts = [f"only runs with {', '.join(self.select)}"] if self.select else []
        parts += ["targets other than the suite's"] if self.targets else []
        parts += [f"speed-ups against {self.baseline}"] if self.baseline is not None else []
        return f"This is a view of the results: {'; '.join(parts)}." if parts else ""


def _text(value: Any) -> str:
    """Return a value as it is written on the command line; a problem without a seed has an empty one."""
    import pandas as pd

    return "" if pd.isna(value) else f"{value:g}" if isinstance(value, float) else str(value)


def _named(values: Sequence[str] | pd.Series[str]) -> str:
    names = list(dict.fromkeys(map(str, values)))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
