"""What repetitions say together: means with intervals, and the statements of a paper judged by them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_mtl.papers.experiment import Verdict

if TYPE_CHECKING:
    import pandas as pd

#: Of the t intervals of means over repetitions.
CONFIDENCE = 0.95


class Mean(NamedTuple):
    """A mean over repetitions with the half width of its t interval, NaN where there is one repetition only."""

    value: float
    half: float
    repetitions: int

    def text(self, digits: int = 4, *, sign: bool = False) -> str:
        """Return the mean ± half of the interval; "-" where there is no repetition."""
        if not self.repetitions:
            return "-"
        shown = f"{self.value:{'+' if sign else ''}.{digits}f}"
        return shown if math.isnan(self.half) else f"{shown} ± {self.half:.{digits}f}"


class Judgement(NamedTuple):
    """Our side of a comparison."""

    ours: str
    verdict: Verdict
    why: str


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of one value a repetition."""
    import numpy as np

    from bench_mtl.stats.arrays import student_half_width

    count = len(values)
    if count < 2:
        return Mean(values[0] if count else math.nan, math.nan, count)
    return Mean(float(np.mean(values)), student_half_width(np.array(values), CONFIDENCE), count)


def paired_difference(rows: pd.DataFrame, measure: str, column: str, subject: Hashable, rival: Hashable) -> Mean:
    """Return the mean of `measure` where `column` is the subject minus that where it is the rival, seed by seed where both are there."""
    both = rows.pivot_table(index="seed", columns=column, values=measure).reindex(columns=[subject, rival])
    return mean((both[subject] - both[rival]).dropna().tolist())


def judged_order(differences: Mapping[Any, Mean], sign: float, conditions: str = "", digits: int = 4, least: float = 0.0) -> Judgement:
    """Return whether paired differences all have the published sign (+1 or -1), by their intervals.

    Parameters
    ----------
    differences : by the condition under which each was found. One without a repetition is missing: it decides nothing, and neither do the
        others then, unless they contradict
    conditions : what the conditions are, after a list of them, such as "examples a task"
    digits : of the differences shown
    least : a smaller difference decides nothing, such as what fits to the same accuracy differ by
    """
    found = {where: each for where, each in differences.items() if each.repetitions}
    if not found:
        return NO_PAIR
    right = [where for where, each in found.items() if sign * each.value > each.half and sign * each.value >= least]
    wrong = [where for where, each in found.items() if -sign * each.value > each.half and -sign * each.value >= least]
    smallest = f" (differences below {least:g} decide nothing)" if least else ""
    rule = f"{CONFIDENCE:.0%} interval of the paired differences over the repetitions{_fewer(found)}{smallest}"
    verdict, listed = _sorted(differences, found, ("as published", right), ("the other way", wrong))
    why = f"the {rule} excludes 0 everywhere" if verdict is Verdict.REPRODUCED else f"by the {rule}: {listed} {conditions}".rstrip()
    return Judgement(_shown(found, digits), verdict, why)


def judged_not_below(differences: Mapping[Any, Mean], margin: float, digits: int = 4) -> Judgement:
    """Return whether paired differences are nowhere below -margin, by their intervals: for "as good as" without a number."""
    found = {where: each for where, each in differences.items() if each.repetitions}
    if not found:
        return NO_PAIR
    right = [where for where, each in found.items() if each.value - each.half >= -margin]
    wrong = [where for where, each in found.items() if each.value + each.half < -margin]
    rule = f"{CONFIDENCE:.0%} interval of the paired differences against a margin of {margin:g} (the paper names none){_fewer(found)}"
    verdict, listed = _sorted(differences, found, ("not below", right), ("below", wrong))
    return Judgement(_shown(found, digits), verdict, f"by the {rule}: {listed}")


#: Nothing to judge by.
NO_PAIR = Judgement("-", Verdict.NOT_RUN, "no cell of both models has an outcome")


def _sorted(
    differences: Mapping[Any, Mean], found: Mapping[Any, Mean], right: tuple[str, list[Any]], wrong: tuple[str, list[Any]]
) -> tuple[Verdict, str]:
    """Return what conditions that speak for and against a statement, each with its words, say together with those that do not decide."""
    open_ = [where for where in found if where not in (*right[1], *wrong[1])]
    missing = [where for where in differences if where not in found]
    parts = [right, wrong, ("undecided", open_), ("no pair", missing)]
    verdict = Verdict.NOT_REPRODUCED if wrong[1] else Verdict.UNKNOWN if open_ or missing else Verdict.REPRODUCED
    return verdict, "; ".join(f"{words} at {', '.join(map(str, places))}" for words, places in parts if places)


def _shown(differences: Mapping[Any, Mean], digits: int) -> str:
    """Differences by condition, as text."""
    return "; ".join(f"{where}: {each.value:+.{digits}f}" for where, each in differences.items())


def _fewer(found: Mapping[Any, Mean]) -> str:
    """Return which differences are of fewer pairs than the others, where there are such."""
    most = max(each.repetitions for each in found.values())
    fewer = [f"{where} {each.repetitions}" for where, each in found.items() if each.repetitions < most]
    return f" ({most} pairs, fewer at {', '.join(fewer)})" if fewer else ""


def judged_high(means: Mapping[Any, Mean], least: float, conditions: str = "") -> Judgement:
    """Return whether means that are called high without a number are all at least `least`."""
    found = {where: each for where, each in means.items() if each.repetitions}
    if not found:
        return Judgement("-", Verdict.NOT_RUN, "no cell of the model has an outcome")
    ours = "; ".join(f"{where}: {each.value:.3f}" for where, each in found.items())
    low = [where for where, each in found.items() if not each.value >= least]
    rule = f"high is taken for a mean of at least {least:g}; the paper names no number"
    if low:
        return Judgement(ours, Verdict.NOT_REPRODUCED, f"lower at {', '.join(map(str, low))} {conditions}".rstrip() + f" ({rule})")
    return Judgement(ours, Verdict.REPRODUCED, f"everywhere ({rule})")
