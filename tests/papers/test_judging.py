"""Verdicts on what is published: by intervals, at every place, under every protocol."""

from __future__ import annotations

import math

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
    ("b", "20", "error"): [1.0, 1.0, 1.0],
}


@pytest.mark.parametrize(
    ("at", "verdict", "why"),
    [
        ("size=10", Verdict.REPRODUCED, ""),
        ("size=20", Verdict.UNKNOWN, ""),
        ("size=10|20", Verdict.UNKNOWN, "holds at 10; open at 20"),
        ("size=*", Verdict.UNKNOWN, "holds at 10; open at 20"),
        ("size=10|40", Verdict.UNKNOWN, "holds at 10; not run at 40"),  # what was not run is not known to hold
        ("size=40", Verdict.NOT_RUN, "no cell has an outcome"),
    ],
)
def test_a_claim_holds_where_it_does_at_every_place(at: str, verdict: Verdict, why: str) -> None:
    (judged,) = judge(claim("below", rival="b", at=at), frame(SIZES, "model", "size"), experiment())
    assert (judged.verdict, judged.why) == (verdict, why)


def test_one_place_is_enough_to_fail() -> None:
    values = {**SIZES, ("b", "20", "error"): [0.1, 0.2, 0.1]}
    (judged,) = judge(claim("below", rival="b", at="size=10|20"), frame(values, "model", "size"), experiment())
    assert (judged.verdict, judged.ours) == (Verdict.NOT_REPRODUCED, "10: -1.03; 20: +0.867")


def test_all_rivals_are_those_of_the_experiment() -> None:
    toy = experiment(subjects=("a", "b", "c"))
    (judged,) = judge(claim("below", rival="*", at="size=10"), frame(SIZES, "model", "size"), toy)
    assert judged.why == "holds at b; not run at c"


PROTOCOLS = {
    ("a", "plain", "small", "error"): [1.0, 1.1, 0.9],
    ("b", "plain", "small", "error"): [2.0, 2.2, 1.9],
    ("a", "scaled", "small", "error"): [3.0, 3.1, 2.9],
    ("b", "scaled", "small", "error"): [2.0, 2.2, 1.9],
    ("a", "plain", "large", "error"): [1.0, 1.1, 0.9],
    ("b", "plain", "large", "error"): [1.0, 1.0, 1.0],
}
OPEN = {"protocols": {"features": ("plain", "scaled"), "step": ("small", "large")}, "titles": {"features": "scaling"}}


def test_a_verdict_depends_on_what_alone_changes_it() -> None:
    (judged,) = judge(claim("below", rival="b"), frame(PROTOCOLS, "model", "features", "step"), experiment(**OPEN))
    assert judged.verdict is Verdict.DEPENDS
    assert judged.ours == "holds under 1, does not hold under 1, open under 1"
    assert "depends on scaling" in judged.why
    assert next(iter(judged.by_protocol)) == (("features", "plain"), ("step", "small"))


def test_what_does_not_matter_to_a_measure_is_no_protocol() -> None:
    values = {
        (model, "plain", "-", "error"): each
        for (model, features, step, _), each in PROTOCOLS.items()
        if (features, step) == ("plain", "small")
    }
    (judged,) = judge(claim("below", rival="b"), frame(values, "model", "features", "step"), experiment(**OPEN))
    assert list(judged.by_protocol) == [(("features", "plain"),)]
    assert judged.verdict is Verdict.REPRODUCED


def test_nothing_on_other_data_is_called_reproduced() -> None:
    tidy = frame({(model, "news", "error"): each for (model, size, _), each in SIZES.items() if size == "10"}, "model", "data")
    number = claim("within", at="data=news", published="1", margin="1")
    for toy in (experiment(other_data="documents"), experiment(stand_ins={"news": "documents"})):
        for said, reading in ((claim("below", rival="b", at="data=news"), "holds"), (number, "")):
            (judged,) = judge(said, tidy, toy)
            assert (judged.verdict, judged.reading) == (Verdict.OTHER_DATA, reading)
    assert judge(number, tidy, experiment())[0].verdict is Verdict.REPRODUCED


def test_claims_are_judged_for_each_value_of_a_column_that_they_do_not_name() -> None:
    tidy, toy = frame(SIZES, "model", "size"), experiment(each=("size",))
    assert [(each.case, each.verdict) for each in judge(claim("below", rival="b"), tidy, toy)] == [
        ("10", Verdict.REPRODUCED),
        ("20", Verdict.UNKNOWN),
    ]
    assert [each.case for each in judge(claim("below", rival="b", at="size=20"), tidy, toy)] == [""]


def test_columns_that_are_neither_named_nor_chosen_are_an_error() -> None:
    with pytest.raises(ValueError, match="say which in 'size'"):
        judge(claim("below", rival="b"), frame(SIZES, "model", "size"), experiment())
    (judged,) = judge(claim("below", rival="b"), frame(SIZES, "model", "size"), experiment(main={"size": "10"}))
    assert judged.verdict is Verdict.REPRODUCED


def test_a_subject_may_be_of_another_column() -> None:
    (judged,) = judge(claim("above", subject="size=10", rival="size=20", at="model=b"), frame(SIZES, "model", "size"), experiment())
    assert judged.verdict is Verdict.REPRODUCED


GROWTH = {("a", str(size), "error"): [size**1.5, 1.01 * size**1.5] for size in (10, 20, 40, 80)}


@pytest.mark.parametrize(("relation", "verdict"), [("rises", Verdict.REPRODUCED), ("falls", Verdict.NOT_REPRODUCED)])
def test_growth_along_a_column(relation: str, verdict: Verdict) -> None:
    (judged,) = judge(claim(relation, along="size"), frame(GROWTH, "model", "size"), experiment())
    assert judged.verdict is verdict


def test_what_decides_nothing() -> None:
    tidy = frame(SIZES, "model", "size")
    (shown,) = judge(claim("shown", subject="*", at="size=10|20", published="lost"), tidy, experiment(subjects=("a", "b")))
    assert (shown.verdict, shown.ours) == (Verdict.UNKNOWN, "1 to 2.033")
    assert judge(claim("lost", note="no copy"), tidy, experiment())[0].verdict is Verdict.UNKNOWN
    assert judge(claim("not run", note="too long"), tidy, experiment())[0].verdict is Verdict.NOT_RUN


@pytest.mark.parametrize(("published", "verdict"), [("1.9", Verdict.REPRODUCED), ("0.4", Verdict.NOT_REPRODUCED)])
def test_within_a_factor(published: str, verdict: Verdict) -> None:
    said = claim("within factor", at="size=10", published=published, margin="2")
    assert judge(said, frame(SIZES, "model", "size"), experiment())[0].verdict is verdict
