"""Judges what is published by our values: a claim holds, does not, or is open by intervals, under every protocol that the paper allows."""

from __future__ import annotations

import enum
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from papers.published import Claim
from papers.values import MEASURE, NONE, Mean, by_seed, chosen, difference, mean

if TYPE_CHECKING:
    import pandas as pd

    from papers.experiment import Experiment


class Reading(enum.StrEnum):
    """What our values say of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "open"
    NOT_RUN = "not run"


class Verdict(enum.StrEnum):
    """The verdict on a published number or statement."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    DEPENDS = "depends on the protocol"
    UNKNOWN = "cannot be known"
    OTHER_DATA = "other data"
    NOT_RUN = "not run"


#: Relations that nothing is decided by, and what they mean.
UNDECIDED = {"shown": Verdict.UNKNOWN, "lost": Verdict.UNKNOWN, "not run": Verdict.NOT_RUN}

#: How each relation is decided; printed in reports that have it. D is a difference of two models, or of ours and the published number.
RULES: Mapping[str, str] = {
    "above": "above: D > 0 over all of its interval, and D is at least the margin",
    "below": "below: D < 0 over all of its interval, and -D is at least the margin",
    "rises": "rises: as above, D from the first place to the last",
    "falls": "falls: as below, D from the first place to the last",
    "at least": "at least: D is not below minus the margin over all of its interval",
    "at most": "at most: D is not above the margin over all of its interval",
    "similar": "similar: D is within the margin of 0 over all of its interval",
    "within": "within: our mean is no further from the published number than the margin; it does not hold where the mean is further away "
    "than that over all of its interval, and than twice the deviation of the difference of two repetitions, one there and one here",
    "within factor": "within factor: our number is the published one times or divided by at most the margin",
}

_FLIPPED = {"below": "above", "falls": "above", "rises": "above", "at most": "at least"}


def decided(relation: str, found: Mean, margin: float, published_deviation: float = 0.0) -> Reading:
    """Return what a difference, of two models or of ours and a published number, says of a relation; without an interval nothing."""
    value, half = found.value, found.half
    if relation in ("below", "falls", "at most"):
        value = -value
    holds, fails = False, False
    match _FLIPPED.get(relation, relation):
        case "above":
            holds, fails = value > half and value >= margin, -value > half and -value >= margin
        case "at least":
            holds, fails = value - half >= -margin, value + half < -margin
        case "similar":
            holds, fails = abs(value) + half <= margin, abs(value) - half > margin
        case "within":
            apart = 2.0 * math.hypot(published_deviation, found.deviation)
            holds = abs(value) <= margin
            fails = not holds and abs(value) - half > margin and not abs(value) <= (0.0 if half == 0.0 else apart)
        case other:
            raise ValueError(f"unknown relation '{other}'")
    return Reading.HOLDS if holds else Reading.FAILS if fails else Reading.OPEN


class Outcome(NamedTuple):
    """A claim under one protocol."""

    reading: Reading
    ours: str
    why: str = ""
    value: float = math.nan  # our number, where the claim is one


Protocol = tuple[tuple[str, str], ...]
"""Columns and their values, without those that do not matter."""


class Judged(NamedTuple):
    """A claim with its verdict."""

    claim: Claim
    case: str  # for which value of the columns that claims are judged by one by one
    verdict: Verdict
    ours: str
    why: str
    by_protocol: Mapping[Protocol, Outcome]  # the default protocol first
    reading: str = ""  # of a statement on other data: what ours say of it there

    @property
    def value(self) -> float:
        """Our number under the default protocol; NaN where there is none."""
        return next(iter(self.by_protocol.values())).value if self.by_protocol else math.nan


def judge(claim: Claim, frame: pd.DataFrame, experiment: Experiment) -> list[Judged]:
    """Return the verdict of a claim, one for each value of the columns `experiment.each` that the claim does not name."""
    if claim.relation in ("lost", "not run"):
        return [Judged(claim, "", UNDECIDED[claim.relation], NONE, claim.note, {})]
    frame = frame[frame[MEASURE] == claim.measure]
    named = {*claim.places, *selected(claim.subject, experiment), *selected(claim.rival, experiment)}
    main = {column: value for column, value in experiment.main.items() if column not in named}
    where = {**main, **{column: values for column, values in claim.places.items() if values != ["*"]}}
    frame = chosen(frame, where) if len(frame) else frame  # without rows it may have no columns
    if not len(frame):
        return [Judged(claim, "", Verdict.NOT_RUN, NONE, "no cell has an outcome", {})]
    each = [column for column in experiment.each if column not in named]
    cases = frame.groupby(each, sort=False) if each else [((), frame)]
    return [_judged(claim, ", ".join(str(name) for name in case if name != NONE), part, experiment) for case, part in cases]


def _judged(claim: Claim, case: str, frame: pd.DataFrame, experiment: Experiment) -> Judged:
    every = {
        protocol: under_protocol(claim, chosen(frame, dict(protocol)), experiment) for protocol in _protocols(frame, experiment, claim)
    }
    by_protocol = {protocol: outcome for protocol, outcome in every.items() if outcome.reading is not Reading.NOT_RUN}
    if not by_protocol:
        return Judged(claim, case, Verdict.NOT_RUN, NONE, "no cell of it has an outcome", {})
    readings = {protocol: outcome.reading for protocol, outcome in by_protocol.items()}
    (default, first), number = next(iter(by_protocol.items())), Counter(readings.values())
    counts = ", ".join(f"{name} under {number[name]}" for name in (Reading.HOLDS, Reading.FAILS, Reading.OPEN) if number[name])
    verdict, why = _agreed(readings, experiment)
    if len(by_protocol) == 1:
        ours, why = first.ours, first.why
    elif claim.is_number:
        ours, why = _ends([each.value for each in by_protocol.values()]), f"of {len(by_protocol)} protocols {counts}{why}"
    else:
        ours, because = counts, f"{first.ours} ({first.why})".removesuffix(" ()")
        why = f"of {len(by_protocol)} protocols{why}; with {words(default)}: {because}"
    reading = "" if claim.is_number else str(_READINGS.get(verdict, "depends"))
    if claim.relation == "shown":
        verdict, why = Verdict.UNKNOWN, ""
    is_other = bool(experiment.other_data) or any(name in experiment.stand_ins for name in claim.places.get("data", []))
    why = "; ".join(filter(None, [why, claim.note]))
    return Judged(claim, case, Verdict.OTHER_DATA if is_other else verdict, ours, why, by_protocol, reading if is_other else "")


_VERDICTS = {Reading.HOLDS: Verdict.REPRODUCED, Reading.FAILS: Verdict.NOT_REPRODUCED, Reading.OPEN: Verdict.UNKNOWN}
_READINGS = {verdict: reading for reading, verdict in _VERDICTS.items()}


def _protocols(frame: pd.DataFrame, experiment: Experiment, claim: Claim) -> list[Protocol]:
    """Return the protocols of the rows, in the order of the experiment, without columns that do not matter or that the claim names."""
    orders = {name: [*values, NONE] for name, values in experiment.protocols.items() if name not in claim.places}
    there = set(frame[list(orders)].itertuples(index=False, name=None))
    every = sorted(there, key=lambda values: [order.index(value) for order, value in zip(orders.values(), values, strict=True)])
    return [tuple((name, value) for name, value in zip(orders, values, strict=True) if value != NONE) for values in every]


def words(protocol: Protocol) -> str:
    """Return a protocol in short: its values, of numbers with what they are of."""
    return ", ".join(f"{column} {value}" if value[0].isdigit() else value for column, value in protocol) or "the only protocol"


def _agreed(readings: Mapping[Protocol, Reading], experiment: Experiment) -> tuple[Verdict, str]:
    """Return the verdict where all protocols agree, and what alone changes it where some say yes and others no."""
    kinds = set(readings.values())
    if not {Reading.HOLDS, Reading.FAILS} <= kinds:
        return (_VERDICTS[kinds.pop()] if len(kinds) == 1 else Verdict.UNKNOWN), ""
    names: dict[str, None] = {}
    for (one, first), (two, second) in itertools.combinations(readings.items(), 2):
        here, there = dict(one), dict(two)
        unlike = [experiment.head(name) for name in here | there if here.get(name) != there.get(name)]
        if len(unlike) == 1 and {first, second} == {Reading.HOLDS, Reading.FAILS}:
            names[unlike[0]] = None
    return Verdict.DEPENDS, f"; depends on {', '.join(names)}" if names else "; no choice alone is seen to change it"


def under_protocol(claim: Claim, frame: pd.DataFrame, experiment: Experiment) -> Outcome:
    """Return a claim under one protocol: it holds where it does at every place against every rival, and fails where it does at one."""
    if claim.relation in ("shown", "within", "within factor"):
        return _number(claim, frame, experiment)
    found = differences(claim, frame, experiment)
    there = {where: each for where, each in found.items() if each.repetitions}
    if not there:
        return Outcome(Reading.NOT_RUN, NONE)
    readings = {where: decided(claim.relation, each, claim.slack) for where, each in there.items()}
    by_reading = {name: [where for where, each in readings.items() if each is name] for name in Reading}
    by_reading[Reading.NOT_RUN] = [where for where in found if where not in there]
    reading = (
        Reading.FAILS if by_reading[Reading.FAILS] else Reading.HOLDS if len(by_reading[Reading.HOLDS]) == len(found) else Reading.OPEN
    )
    listed = "; ".join(f"{name} at {', '.join(places)}" for name, places in by_reading.items() if places)
    shift = claim.number or 0.0 if not claim.rival else 0.0
    sign = "" if shift else "+"
    ours = "; ".join(f"{where}: {digits(each.value + shift, 3, sign)}".removeprefix(": ") for where, each in there.items())
    return Outcome(reading, ours, "" if len(found) == 1 or reading is Reading.HOLDS else listed)


def _number(claim: Claim, frame: pd.DataFrame, experiment: Experiment) -> Outcome:
    subjects, places = _names(claim.subject, "", experiment) or [""], _places(claim, frame)
    means = [mean(by_seed(chosen(frame, place | selected(name, experiment)))) for name in subjects for place in places]
    means = [each for each in means if each.repetitions]
    if not means:
        return Outcome(Reading.NOT_RUN, NONE)
    ours, published = means[0], claim.number
    if published is None or claim.relation == "shown":
        return Outcome(Reading.OPEN, _ends([each.value for each in means]), "", ours.value if len(means) == 1 else math.nan)
    if claim.relation == "within factor":
        factor = max(ours.value / published, published / ours.value) if ours.value > 0.0 else math.inf
        return Outcome(Reading.HOLDS if factor <= claim.slack else Reading.FAILS, digits(ours.value), "", ours.value)
    deviation = float(claim.deviation or 0.0)
    reading = decided("within", ours._replace(value=ours.value - published), claim.slack, deviation)
    return Outcome(reading, digits(ours.value), "", ours.value)


def digits(value: float, count: int = 4, sign: str = "") -> str:
    """Return a number with so many digits, and one that has more before its point with all of these."""
    return f"{value:{sign}.0f}" if 10.0**count <= abs(value) < 1e7 else f"{value:{sign}.{count}g}"


def _ends(values: Sequence[float]) -> str:
    """Return the least and the largest number, or the one that there is."""
    return " to ".join(dict.fromkeys(digits(value) for value in (min(values), max(values))))


def differences(claim: Claim, frame: pd.DataFrame, experiment: Experiment) -> dict[str, Mean]:
    """Return what a statement is decided by, at every place and against every rival; of no repetition where something is missing.

    That is the difference of two models, of the ends of a column, or of ours and the published number.
    """
    subjects = _names(claim.subject, "", experiment) or [""]
    rivals = _names(claim.rival, claim.subject, experiment) or [""]
    found = {}
    for subject, rival, place in itertools.product(subjects, rivals, _places(claim, frame)):
        names = [experiment.text(name) for name, all_ in ((subject, subjects), (rival, rivals)) if len(all_) > 1]
        ours, theirs = (chosen(frame, place | selected(name, experiment)) for name in (subject, rival))
        if claim.along:
            sizes = sorted(ours[claim.along].unique(), key=float)
            ends = [by_seed(ours[ours[claim.along] == size]) for size in (*sizes[-1:], *sizes[:1])]
            each = mean(difference(*ends)) if len(sizes) > 1 else Mean()
        elif rival:
            each = mean(difference(by_seed(ours), by_seed(theirs)))
        else:
            each = mean(by_seed(ours))
            each = each._replace(value=each.value - (claim.number or 0.0))
        found[" ".join([*names, *place.values()])] = each
    return found


def selected(name: str, experiment: Experiment) -> dict[str, str]:
    """Return the columns that a subject or rival of a claim chooses: ``l1``, or ``radius=validation`` of another column."""
    column, _, value = name.rpartition("=")
    return {column or experiment.subject: value} if name else {}


def _names(text: str, but: str, experiment: Experiment) -> list[str]:
    """Return the subjects or rivals that a claim names; "*" is all of the experiment but those on the other side."""
    return [name for name in experiment.subjects if name != but] if text == "*" else [name for name in text.split("|") if name]


def _places(claim: Claim, frame: pd.DataFrame) -> list[dict[Any, str]]:
    """Return the places that a claim is about: what it names, or of a column with "*" what there is."""
    several = claim.several
    named = {column: values for column, values in several.items() if values != ["*"]}
    others = [column for column in several if column not in named]
    there: list[dict[Any, str]] = frame[others].drop_duplicates().to_dict("records") if others else [{}]
    every = [dict(zip(named, place, strict=True)) | at for place in itertools.product(*named.values()) for at in there]
    return [{column: place[column] for column in several} for place in every]
