"""Published numbers and statements under every protocol that the paper's words allow: where they lie, and what they depend on."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bench_mtl.papers.chen.variants import DEFAULT, MEASURES, Variant, depends_on, short, variants
from bench_mtl.papers.experiment import Section, Verdict
from bench_mtl.papers.summaries import NO_PAIR, Judgement, mean

if TYPE_CHECKING:
    import pandas as pd

#: A number counts as reproduced within this many points.
CLOSE = 1.0

#: Where a number of ours lies; the last: it is further away, but our repetitions are too few to say that their mean is.
INSIDE, BETWEEN, OUTSIDE, OPEN = f"within {CLOSE:g} point", "within two deviations", "outside", "undecided"

_NOT_RUN = "not run"

_VERDICTS: Mapping[str, Verdict] = {
    INSIDE: Verdict.REPRODUCED,
    BETWEEN: Verdict.UNKNOWN,
    OUTSIDE: Verdict.NOT_REPRODUCED,
    OPEN: Verdict.UNKNOWN,
}


class Reading(NamedTuple):
    """Our number in place of a published one, under one protocol."""

    variant: Variant
    value: float
    """Mean over the repetitions, in per cent."""
    deviation: float
    place: str
    """`INSIDE`, `BETWEEN`, `OUTSIDE` or `OPEN`."""


class Numbers(NamedTuple):
    """A published number with all readings of it that there are, of the protocols in their order."""

    data: str
    measure: str
    model: str
    published: float
    readings: tuple[Reading, ...]

    @property
    def ours(self) -> float | None:
        """Ours under the default protocol; None where that was not run."""
        return next((each.value for each in self.readings if each.variant == DEFAULT), None)

    @property
    def nearest(self) -> Reading:
        """The one next to the published number, of equal ones the first; never more than that."""
        return min(self.readings, key=lambda each: abs(each.value - self.published))


def place(difference: float, spread: float, own: Own) -> str:
    """Return where a number lies.

    Parameters
    ----------
    difference : of our mean and the published one
    spread : the published deviation of a repetition
    """
    if abs(difference) <= CLOSE:
        return INSIDE
    if math.isnan(own.deviation):
        return OPEN
    if abs(difference) <= 2.0 * math.hypot(spread, own.deviation):
        return BETWEEN
    return OUTSIDE if abs(difference) - own.half > CLOSE else OPEN


class Own(NamedTuple):
    """Our repetitions of a number, in per cent."""

    mean: float
    deviation: float
    half: float
    """Half of the interval of the mean."""


Means = Mapping[tuple[str, ...], Mapping[str, Own]]
"""By data set, learner, features and intercept, our number for every column of scores."""


def means_of(rows: pd.DataFrame) -> Means:
    """Return the means of the cells."""
    if not len(rows):
        return {}
    columns = sorted({variant.column(measure) for measure in MEASURES for variant in variants(measure)})
    groups = (100.0 * rows[columns]).groupby([rows[key] for key in ("data", "model", "features", "intercept")])
    return {tuple(map(str, key)): {column: _own(part[column].dropna().tolist()) for column in columns} for key, part in groups}


def _own(values: Sequence[float]) -> Own:
    found = mean(values)
    deviation = statistics.stdev(values) if len(values) > 1 else math.nan
    return Own(found.value, deviation, found.half)


def readings(means: Means, entry: Mapping[str, str], own: str) -> Numbers:
    """Return a published row (data, measure, model, mean, deviation) with our readings on the data set of the name `own`."""
    theirs, spread = float(entry["mean"]), float(entry["deviation"])
    found = []
    for variant in variants(entry["measure"]):
        here = means.get((own, entry["model"], variant.features, variant.intercept), {})
        ours = here.get(variant.column(entry["measure"]))
        if ours is not None and not math.isnan(ours.mean):
            found.append(Reading(variant, ours.mean, ours.deviation, place(ours.mean - theirs, spread, ours)))
    return Numbers(entry["data"], entry["measure"], entry["model"], theirs, tuple(found))


def judged_number(numbers: Numbers) -> Judgement:
    """Return one verdict where all protocols agree, and what it depends on where some are inside and others outside."""
    if not numbers.readings:
        return Judgement("-", Verdict.NOT_RUN, "no cell has an outcome")
    values = [each.value for each in numbers.readings]
    shown = f"{min(values):.1f} to {max(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"
    verdict, why = _agreed({each.variant: _VERDICTS[each.place] for each in numbers.readings})
    counts = Counter(each.place for each in numbers.readings)
    listed = ", ".join(f"{counts[where]} {where}" for where in (INSIDE, BETWEEN, OUTSIDE, OPEN) if counts[where])
    return Judgement(shown, verdict, f"of {len(values)} protocols {listed}{why}")


def judged_statement(judged: Mapping[Variant, Judgement]) -> Judgement:
    """Return under how many protocols a statement holds, with one verdict where all agree, and what it depends on where they do not."""
    found = {variant: each for variant, each in judged.items() if each.verdict is not Verdict.NOT_RUN}
    if not found:
        return NO_PAIR
    verdict, why = _agreed({variant: each.verdict for variant, each in found.items()})
    first, example = next(iter(found.items()))
    yes, no, open_ = held(found)
    rule = f"by protocol{why}; with {first.words()}, {example.ours}: {example.why}"
    return Judgement(f"{yes} of {len(found)} yes, {no} no, {open_} open", verdict, rule)


def held(judged: Mapping[Variant, Judgement]) -> tuple[int, int, int]:
    """Count the protocols under which a statement holds, does not, and is open."""
    counts = Counter(each.verdict for each in judged.values())
    yes, no = counts[Verdict.REPRODUCED], counts[Verdict.NOT_REPRODUCED]
    return yes, no, len(judged) - yes - no


def _agreed(verdicts: Mapping[Variant, Verdict]) -> tuple[Verdict, str]:
    kinds = set(verdicts.values())
    if {Verdict.REPRODUCED, Verdict.NOT_REPRODUCED} <= kinds:
        sure = {variant: each for variant, each in verdicts.items() if each in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)}
        names = depends_on(sure)
        return Verdict.DEPENDS, f"; depends on {', '.join(names)}" if names else "; no choice alone is seen to change it"
    return (kinds.pop() if len(kinds) == 1 else Verdict.UNKNOWN), ""


_ABOUT_NUMBERS = f"""\
For every published number the range of ours over the protocols, in per cent, and the protocol whose number is the nearest: its features,
its intercept, its rule of decision or kind of AUC. A ~ stands where it is further than {CLOSE:g} point away but within two deviations, an x
where it is outside, a ? where our repetitions do not decide. That it is the nearest does not make it the paper's: of this many one is near
by chance too."""

_MARKS: Mapping[str, str] = {INSIDE: "", BETWEEN: " ~", OUTSIDE: " x", OPEN: " ?"}


def number_table(numbers: Sequence[Numbers]) -> Section:
    """Return the range of every published number, and the protocol nearest to it; all readings with all digits in the file."""
    import pandas as pd

    table = [
        {
            "data": each.data, "measure": each.measure, "model": each.model, "published": each.published,
            "features": reading.variant.features, "intercept": reading.variant.intercept, "decision": reading.variant.decision,
            "auc": reading.variant.auc, "mean": reading.value, "deviation": reading.deviation, "place": reading.place,
        }
        for each in numbers
        for reading in each.readings
    ]  # fmt: skip
    shown = []
    for each in numbers:
        if each.readings:
            values, nearest = [reading.value for reading in each.readings], each.nearest
            shown.append(
                [
                    f"{each.data} {short(each.measure)} {each.model}", f"{each.published:.1f}", f"{min(values):.1f} to {max(values):.1f}",
                    f"{nearest.value:.1f}{_MARKS[nearest.place]}", nearest.variant.label(each.measure),
                ]
            )  # fmt: skip
    heads = ["Number", "Published", "Ours", "Nearest", "Under"]
    return Section("Sensitivity", _ABOUT_NUMBERS, "sensitivity", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"))


def count_table(numbers: Sequence[Numbers], on_other_data: bool = False) -> Section:
    """Return how many published numbers are near under the default protocol, under the best single one of each data set, and under any."""
    import pandas as pd

    rows = [[name, title, *counts] for name, title, counts in _counts(numbers)]
    table = pd.DataFrame(rows, columns=["data", "protocol", INSIDE, BETWEEN, OUTSIDE, OPEN, _NOT_RUN])
    shown = table.astype("str").rename(columns=lambda name: name[0].upper() + name[1:])
    text = f"""\
Of the {len(numbers)} published numbers, how many of ours are how near. The single best protocol is one and the same for all measures and
learners of a data set: the one with the most numbers within {CLOSE:g} point, then the most within two deviations. It was chosen for that,
and is not called the paper's. The range counts for every number its nearest protocol. The paper says "the averaged area under the curve",
which hardly means the pooled one: it is counted with and without."""
    if on_other_data:
        text += "\nWhere the data are other ones in the place of the paper's, a near number is chance."
    return Section("How many published numbers are near", text, "counts", table, shown)


def headline(numbers: Sequence[Numbers]) -> str:
    """Return in a paragraph how many published numbers are near under the default protocol, the best of each data set, and any."""
    kinds = (INSIDE, BETWEEN, OUTSIDE, OPEN, _NOT_RUN)
    default, best, range_, _ = (dict(zip(kinds, counts, strict=True)) for name, _, counts in _counts(numbers) if name == "all")
    left = [each[OPEN] + each[_NOT_RUN] for each in (default, best, range_)]
    open_ = f" {left[0]}, {left[1]} and {left[2]} are not run, or not decided by our repetitions." if any(left) else ""
    return (
        f"Of {len(numbers)} published numbers {default[INSIDE]} are within {CLOSE:g} point of ours under the default protocol "
        f"({DEFAULT.words()}); {best[INSIDE]} with the one protocol of each data set that has the most; "
        f"{range_[INSIDE]} with a protocol chosen for each number by itself. Within two deviations are {default[BETWEEN]}, {best[BETWEEN]} "
        f"and {range_[BETWEEN]} more; outside {default[OUTSIDE]}, {best[OUTSIDE]} and {range_[OUTSIDE]}.{open_}"
    )


def _counts(numbers: Sequence[Numbers]) -> Iterator[tuple[str, str, list[int]]]:
    """Yield data set, protocol and how many numbers lie where, in the order of the columns of `count_table`."""
    names = list(dict.fromkeys(each.data for each in numbers))
    default, range_, of_labels = ([Counter[str]() for _ in names] for _ in range(3))
    best = []
    for name, plain, over, own in zip(names, default, range_, of_labels, strict=True):
        of = [each for each in numbers if each.data == name]
        plain.update(places(of, DEFAULT))
        over.update(each.nearest.place if each.readings else _NOT_RUN for each in of)
        own.update(each.nearest.place if each.readings else _NOT_RUN for each in map(_without_pooled, of))
        counted = {variant: Counter(places(of, variant)) for variant in variants()}
        best.append(max(counted.items(), key=lambda pair: (pair[1][INSIDE], pair[1][BETWEEN], -pair[1][_NOT_RUN])))
    parts = [
        (DEFAULT.words(), list(zip(names, default, strict=True))),
        ("single best", [(name, counts) for name, (_, counts) in zip(names, best, strict=True)]),
        ("range", list(zip(names, range_, strict=True))),
        ("range without the pooled AUC", list(zip(names, of_labels, strict=True))),
    ]
    chosen = {name: variant.words() for name, (variant, _) in zip(names, best, strict=True)}
    for words, of_sets in parts:
        for name, counts in [*of_sets, ("all", sum((counts for _, counts in of_sets), Counter[str]()))]:
            title = f"{words}: {chosen[name]}" if words == "single best" and name in chosen else words
            yield name, title, [counts[where] for where in (INSIDE, BETWEEN, OUTSIDE, OPEN, _NOT_RUN)]


def _without_pooled(each: Numbers) -> Numbers:
    return each._replace(readings=tuple(reading for reading in each.readings if reading.variant.auc == "per label"))


def places(numbers: Sequence[Numbers], variant: Variant) -> Iterator[str]:
    """Yield where each number lies under one protocol."""
    for each in numbers:
        plain = replace(variant, decision="at 0") if each.measure == "average AUC" else replace(variant, auc="per label")
        yield next((reading.place for reading in each.readings if reading.variant == plain), _NOT_RUN)


_ABOUT_STATEMENTS = """\
Every statement of the text judged under each protocol by itself, by paired differences over its repetitions: under how many it holds, under
how many it does not, and how many leave it open. Where some say yes and others no, what alone changes the verdict is named."""


def statement_table(judged: Sequence[tuple[str, Mapping[Variant, Judgement]]]) -> Section:
    """Return under how many protocols each statement holds; statements are in short."""
    import pandas as pd

    table, shown = [], []
    for what, by_variant in judged:
        found = {variant: each for variant, each in by_variant.items() if each.verdict is not Verdict.NOT_RUN}
        for variant, each in found.items():
            table.append(
                {
                    "statement": what, "features": variant.features, "intercept": variant.intercept, "decision": variant.decision,
                    "auc": variant.auc, "ours": each.ours, "reading": str(each.verdict), "why": each.why,
                }
            )  # fmt: skip
        if found:
            why = _agreed({variant: each.verdict for variant, each in found.items()})[1]
            shown.append([what, *map(str, held(found)), why.removeprefix("; ").removeprefix("depends on ") or "-"])
    display = pd.DataFrame(shown, columns=["Statement", "Holds", "Not", "Open", "Depends on"], dtype="str")
    return Section("Statements under the protocols", _ABOUT_STATEMENTS, "statements", pd.DataFrame(table), display)
