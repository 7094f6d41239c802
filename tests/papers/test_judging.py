"""Verdicts on what is published: by intervals, at every place, under every protocol."""

import math
from typing import Any

import pandas as pd
import pytest

from bench_mtl.runner import Found
from papers.experiment import Experiment, Scale
from papers.judge import Reading, Verdict, decided, judge
from papers.published import Claim
from papers.values import Mean


def experiment(**more: object) -> Experiment:
    """An experiment that only judges."""
    words = {"name": "toy", "title": "Toy", "source": "Somebody 2001", "about": "", "scales": {"small": Scale((), "")}}
    return Experiment(**words, compute=lambda settings, folder: Found({}, "verified", ""), values=lambda rows: rows, claims=(), **more)


def frame(values: dict[tuple[str, ...], list[float]], *columns: str) -> pd.DataFrame:
    """A tidy frame: values of the repetitions by settings; the last setting is the measure."""
    rows = [(*key, seed, value) for key, each in values.items() for seed, value in enumerate(each)]
    return pd.DataFrame(rows, columns=[*columns, "measure", "seed", "value"])


def claim(relation: str, **more: str) -> Claim:
    return Claim(statement="so it is", where="table 1", **{"measure": "error", "subject": "a", "relation": relation, **more})


CLEAR, UNCLEAR = Mean(1.0, 0.5, 3, 0.4), Mean(1.0, 2.0, 3, 0.4)


@pytest.mark.parametrize(
    ("relation", "found", "margin", "reading"),
    [
        ("above", CLEAR, 0.0, Reading.HOLDS),
        ("above", CLEAR, 2.0, Reading.OPEN),  # less than what decides
        ("above", UNCLEAR, 0.0, Reading.OPEN),
        ("above", Mean(1.0, math.nan, 1), 0.0, Reading.OPEN),  # one repetition has no interval
        ("above", Mean(1.0, 0.0, 1), 0.0, Reading.HOLDS),  # a value of all repetitions is exact
        ("below", CLEAR, 0.0, Reading.FAILS),
        ("rises", CLEAR, 0.0, Reading.HOLDS),
        ("falls", CLEAR, 0.0, Reading.FAILS),
        ("at least", Mean(-1.0, 0.5, 3), 1.5, Reading.HOLDS),
        ("at least", Mean(-1.0, 0.5, 3), 0.4, Reading.FAILS),
        ("at least", Mean(-1.0, 0.5, 3), 1.0, Reading.OPEN),
        ("at most", CLEAR, 1.5, Reading.HOLDS),
        ("at most", CLEAR, 0.4, Reading.FAILS),
        ("similar", CLEAR, 1.5, Reading.HOLDS),
        ("similar", CLEAR, 0.4, Reading.FAILS),
        ("similar", CLEAR, 1.0, Reading.OPEN),
        ("within", UNCLEAR, 1.0, Reading.HOLDS),  # the mean alone says so
        ("within", Mean(3.0, 0.5, 3, 0.4), 1.0, Reading.FAILS),
        ("within", Mean(3.0, 0.5, 3, 1.6), 1.0, Reading.OPEN),  # within two deviations
        ("within", Mean(3.0, 2.5, 3, 0.4), 1.0, Reading.OPEN),
        ("within", Mean(3.0, math.nan, 1), 1.0, Reading.OPEN),
        ("within", Mean(3.0, 0.0, 1), 1.0, Reading.FAILS),
    ],
)
def test_relations_are_decided_by_intervals(relation: str, found: Mean, margin: float, reading: Reading) -> None:
    assert decided(relation, found, margin) is reading


def test_the_published_deviation_counts_too() -> None:
    assert decided("within", Mean(3.0, 0.5, 3, 0.4), 1.0, published_deviation=2.0) is Reading.OPEN


SIZES = {
    ("a", "10", "error"): [1.0, 1.1, 0.9],
    ("b", "10", "error"): [2.0, 2.2, 1.9],
    ("a", "20", "error"): [1.0, 1.1, 0.9],
    ("b", "20", "error"): [2.0, 1.0, 1.0],
}
ONE_FAILS = {**SIZES, ("b", "20", "error"): [0.1, 0.2, 0.1]}
GROWTH = {("a", str(size), "error"): [size**1.5, 1.01 * size**1.5] for size in (10, 20, 40, 80)}
YES, NO, OPEN = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("values", "said", "toy", "found"),
    [
        (SIZES, claim("below", rival="b", at="size=10"), {}, (YES, "-1.03", "")),
        (SIZES, claim("below", rival="b", at="size=20"), {}, (OPEN, "-0.333", "")),
        (SIZES, claim("below", rival="b", at="size=*"), {}, (OPEN, "10: -1.03; 20: -0.333", "holds at 10; open at 20")),
        (SIZES, claim("below", rival="b", at="size=10|40"), {}, (OPEN, "10: -1.03", "holds at 10; not run at 40")),
        (
            {(name, size, "x", kind): values for (name, size, kind), values in SIZES.items()},
            claim("below", rival="b", at="size=10|40; over=*"),
            {},
            (OPEN, "10 x: -1.03", "holds at 10 x; not run at 40 x"),
        ),
        (SIZES, claim("below", rival="b", at="size=40"), {}, (Verdict.NOT_RUN, "-", "no cell has an outcome")),
        (ONE_FAILS, claim("below", rival="b", at="size=10|20"), {}, (NO, "10: -1.03; 20: +0.867", "holds at 10; does not hold at 20")),
        (SIZES, claim("below", rival="*", at="size=10"), {"subjects": ("a", "b", "c")}, (OPEN, "b: -1.03", "holds at b; not run at c")),
        (SIZES, claim("below", rival="b"), {"main": {"size": "10"}}, (YES, "-1.03", "")),
        (ONE_FAILS, claim("above", subject="size=10", rival="size=20", at="model=b"), {}, (YES, "+1.9", "")),
        (GROWTH, claim("rises", along="size"), {}, (YES, "+687", "")),
        (GROWTH, claim("falls", along="size"), {}, (NO, "+687", "")),
        (SIZES, claim("shown", subject="*", at="size=10|20", published="lost"), {"subjects": ("a", "b")}, (OPEN, "1 to 2.033", "")),
        (SIZES, claim("lost", note="no copy"), {}, (OPEN, "-", "no copy")),
        (SIZES, claim("not run", note="too long"), {}, (Verdict.NOT_RUN, "-", "too long")),
        (SIZES, claim("within factor", at="size=10", published="1.9", margin="2"), {}, (YES, "1", "")),
        (SIZES, claim("within factor", at="size=10", published="0.4", margin="2"), {}, (NO, "1", "")),
    ],
    ids=lambda each: f"{each.relation} {each.at}" if isinstance(each, Claim) else "",
)
def test_a_claim_holds_where_it_does_at_every_place(values: Any, said: Claim, toy: Any, found: tuple[Verdict, str, str]) -> None:
    columns = ("model", "size", "over")[: len(next(iter(values))) - 1]
    (judged,) = judge(said, frame(values, *columns), experiment(**toy))
    assert (judged.verdict, judged.ours, judged.why) == found


PROTOCOLS = {
    ("a", "plain", "small", "error"): [1.0, 1.1, 0.9],
    ("b", "plain", "small", "error"): [2.0, 2.2, 1.9],
    ("a", "scaled", "small", "error"): [3.0, 3.1, 2.9],
    ("b", "scaled", "small", "error"): [2.0, 2.2, 1.9],
    ("a", "plain", "large", "error"): [1.0, 1.1, 0.9],
    ("b", "plain", "large", "error"): [1.0, 1.0, 1.0],
}


def test_a_verdict_depends_on_what_alone_changes_it_and_what_does_not_matter_is_no_protocol() -> None:
    toy = experiment(protocols={"features": ("plain", "scaled"), "step": ("small", "large")}, titles={"features": "scaling"})
    (judged,) = judge(claim("below", rival="b"), frame(PROTOCOLS, "model", "features", "step"), toy)
    assert judged.verdict is Verdict.DEPENDS
    assert judged.ours == "holds under 1, does not hold under 1, open under 1"
    assert "depends on scaling" in judged.why
    assert next(iter(judged.by_protocol)) == (("features", "plain"), ("step", "small"))
    values = {(model, "plain", "-", "error"): PROTOCOLS[model, "plain", "small", "error"] for model in "ab"}
    (judged,) = judge(claim("below", rival="b"), frame(values, "model", "features", "step"), toy)
    assert (list(judged.by_protocol), judged.verdict) == ([(("features", "plain"),)], YES)


def test_nothing_on_other_data_is_called_reproduced() -> None:
    tidy = frame({(model, "news", "error"): each for (model, size, _), each in SIZES.items() if size == "10"}, "model", "data")
    number = claim("within", at="data=news", published="1", margin="1")
    for toy in (experiment(other_data="documents"), experiment(stand_ins={"news": "documents"})):
        for said, reading in ((claim("below", rival="b", at="data=news"), "holds"), (number, "")):
            (judged,) = judge(said, tidy, toy)
            assert (judged.verdict, judged.reading) == (Verdict.OTHER_DATA, reading)
    assert judge(number, tidy, experiment())[0].verdict is YES


def test_claims_are_judged_for_each_value_of_a_column_that_they_do_not_name_and_columns_left_open_are_an_error() -> None:
    tidy, toy = frame(SIZES, "model", "size"), experiment(each=("size",))
    assert [(each.case, each.verdict) for each in judge(claim("below", rival="b"), tidy, toy)] == [("10", YES), ("20", OPEN)]
    assert [each.case for each in judge(claim("below", rival="b", at="size=20"), tidy, toy)] == [""]
    with pytest.raises(ValueError, match="say which in 'size'"):
        judge(claim("below", rival="b"), tidy, experiment())
