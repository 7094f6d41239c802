"""Exponents of `quattoni-cost`, fitted to its rows, and what they say of the published bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.papers.experiment import Verdict
from bench_mtl.papers.summaries import CONFIDENCE, Judgement, Mean, mean

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.stats.fits import PowerLaw

#: An exponent within these is taken for 1.
BAR = (0.9, 1.1)
#: Of the sizes over which the time of the projection is judged; a tenth of one less is allowed, because sizes are rounded.
DECADES = 4.0


def exponent(sizes: Sequence[float], values: Sequence[float]) -> PowerLaw | None:
    """Return the fit of a power law to positive values at three points or more, of two sizes or more; None where there are fewer."""
    from bench_mtl.stats.fits import power_law

    known = [(size, value) for size, value in zip(sizes, values, strict=True) if value > 0.0]
    if len(known) < 3 or len({size for size, _ in known}) < 2:
        return None
    return power_law(*zip(*known, strict=True), confidence=CONFIDENCE)


def log_law(sizes: Sequence[float]) -> float:
    """Return the exponent that a fit finds where values are exactly n log n at these sizes; NaN where there are too few of them."""
    found = exponent(sizes, [size * math.log(size) for size in sizes])
    return math.nan if found is None else found.exponent


def ends(found: PowerLaw) -> tuple[float, float]:
    """Return the ends of the interval of an exponent of `exponent`."""
    assert found.low is not None, "three points have an interval"
    assert found.high is not None, "three points have an interval"
    return found.low, found.high


def text(found: PowerLaw | None) -> str:
    """Return an exponent with its interval."""
    if found is None:
        return "-"
    low, high = ends(found)
    return f"{found.exponent:.3f} ({low:.3f} to {high:.3f})"


def decades(sizes: Sequence[float]) -> float:
    """Return how many powers of ten lie between the smallest and the largest size."""
    return math.log10(max(sizes) / min(sizes)) if len(sizes) else 0.0


def judged_linear(found: Mapping[str, PowerLaw | None], below: str = "") -> Judgement:
    """Return whether exponents are 1 as far as `BAR` says, by their intervals, under every condition.

    Parameters
    ----------
    below : why an exponent may be below the bar, which is said where one is
    """
    known = {where: ends(fit) for where, fit in found.items() if fit is not None}
    parts = {
        "as published": [where for where, (low, high) in known.items() if BAR[0] <= low and high <= BAR[1]],
        "above": [where for where, (low, _) in known.items() if low > BAR[1]],
        "below": [where for where, (_, high) in known.items() if high < BAR[0]],
    }
    reason = f" ({below})" if below and parts["below"] else ""
    return _judged(found, parts, f"the {CONFIDENCE:.0%} interval is within {BAR[0]:g} to {BAR[1]:g}, a bar of ours{reason}")


def judged_at_most(found: Mapping[str, PowerLaw | None], limits: Mapping[str, float]) -> Judgement:
    """Return whether exponents are not above limits, by their intervals: all that an upper bound says.

    Parameters
    ----------
    limits : under each condition, the exponent that the published bound itself has at the same sizes
    """
    known = {where: ends(fit) for where, fit in found.items() if fit is not None}
    parts = {
        "as published": [where for where, (_, high) in known.items() if high <= limits[where]],
        "above": [where for where, (low, _) in known.items() if low > limits[where]],
    }
    shown = ", ".join(sorted({f"{limits[where]:.3f}" for where in known}))
    rule = f"the {CONFIDENCE:.0%} interval is not above the exponent of dm log dm at the same sizes ({shown}), which is an upper bound"
    return _judged(found, parts, rule)


def judged_slopes(slopes: Mapping[str, Mean], limit: float = 2.0) -> Judgement:
    """Return whether slopes over draws are consistent with an upper bound, by the intervals of their means."""
    found = {where: each for where, each in slopes.items() if each.repetitions > 1}
    if not found:
        return Judgement("-", Verdict.NOT_RUN, "an interval needs two draws of a set, or more")
    parts = {
        "as published": [where for where, each in found.items() if each.value + each.half <= limit],
        "above": [where for where, each in found.items() if each.value - each.half > limit],
    }
    ours = "; ".join(f"{where}: {each.text(2)}" for where, each in found.items())
    rule = (
        f"the {CONFIDENCE:.0%} interval over the draws is at or below {limit:g}. A slope of at most {limit:g} is consistent with an upper "
        f"bound; it does not prove the bound, and says nothing of whether it is tight"
    )
    return Judgement(ours, verdict(parts, list(found)), f"{_listed(list(found), parts)}; rule: {rule}")


def _judged(found: Mapping[str, PowerLaw | None], parts: Mapping[str, Sequence[str]], rule: str) -> Judgement:
    known = [where for where, fit in found.items() if fit is not None]
    if not known:
        return Judgement("-", Verdict.NOT_RUN, "an interval needs three cells of two sizes, or more")
    ours = "; ".join(f"{where} {text(found[where])}" for where in known)
    return Judgement(ours, verdict(parts, known), f"{_listed(known, parts)}; rule: {rule}")


def _listed(known: Sequence[str], parts: Mapping[str, Sequence[str]]) -> str:
    decided = {where for places in parts.values() for where in places}
    everything = {**parts, "undecided": [where for where in known if where not in decided]}
    return "; ".join(f"{words}: {', '.join(places)}" for words, places in everything.items() if places)


def verdict(parts: Mapping[str, Sequence[str]], known: Sequence[str]) -> Verdict:
    """Return what the conditions that are known say together: those "as published" speak for a statement, all other parts against it."""
    right = parts["as published"]
    wrong = [where for words, places in parts.items() if words != "as published" for where in places]
    if right and wrong:
        return Verdict.DEPENDS
    if wrong:
        return Verdict.NOT_REPRODUCED
    return Verdict.REPRODUCED if len(right) == len(known) else Verdict.UNKNOWN


def common_ladder(rows: pd.DataFrame) -> list[float]:
    """Return the accuracies that every one of these runs reached."""
    if not len(rows):
        return []
    shortest = min(map(len, rows["reached"]))
    return list(rows["ladder"].iloc[0][:shortest])


def smaller_half(ladder: Sequence[float]) -> Sequence[float]:
    """Return the smaller half of accuracies that fall, where what a bound says of small ones is seen first."""
    return ladder[len(ladder) // 2 :]


def slopes(rows: pd.DataFrame, ladder: Sequence[float]) -> Mean:
    """Return the slope of log iterations against log 1/eps over some accuracies: fitted draw by draw, then the mean."""
    found = []
    for row in rows.to_dict("records"):
        reached = dict(zip(row["ladder"], row["reached"], strict=False))
        fit = exponent([1.0 / eps for eps in ladder], [reached[eps] for eps in ladder])
        found += [] if fit is None else [fit.exponent]
    return mean(found)


# What is fitted.


def part_of(rows: pd.DataFrame, part: str, **settings: object) -> pd.DataFrame:
    """Return the rows of a part whose settings are these."""
    if "part" not in rows:
        return rows.iloc[:0]
    own = rows[rows["part"] == part]
    for name, value in settings.items():
        own = own[own[name] == value] if name in own else own.iloc[:0]
    return own


def of_time(part: pd.DataFrame, *, logarithm: bool = False) -> PowerLaw | None:
    """Return the exponent of the time of a projection in n, or in n log n."""
    if not len(part):
        return None
    sizes = part["entries"].tolist()
    return exponent([n * math.log(n) for n in sizes] if logarithm else sizes, part["best_seconds"].tolist())


def of_memory(part: pd.DataFrame) -> PowerLaw | None:
    """Return the exponent of the peak memory of a projection in n."""
    return exponent(part["entries"].tolist(), part["peak_bytes"].tolist()) if len(part) else None


def larger_half(part: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the sizes from the middle one on."""
    return part[part["size"] >= part["size"].drop_duplicates().median()] if len(part) else part


def of_iteration(part: pd.DataFrame, measure: str) -> PowerLaw | None:
    """Return the exponent of the time of an iteration, or of a part of it, in what grows."""
    return exponent(part["size"].tolist(), part[measure].tolist()) if len(part) else None


def axis_law(part: pd.DataFrame) -> float:
    """Return the exponent of dm log dm in what grows, at the sizes of these rows."""
    if not len(part):
        return math.nan
    cost = [n * math.log(n) for n in part["parameters"]]
    found = exponent(part["size"].tolist(), cost)
    return math.nan if found is None else found.exponent


def by_examples(own: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Return the rows of the steps to an accuracy for each number of examples a task, the smallest first."""
    return {int(size): own[own["examples"] == size] for size in sorted(own["examples"].unique())} if len(own) else {}
