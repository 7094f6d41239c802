"""What is gathered about a run while it goes on."""

from __future__ import annotations

import pytest

from bench_mtl.core.types import Certificate, Place, Record, Sample, Status
from bench_mtl.runner.gathered import WARM_UP, Gathered, Message, TooMuchError

BASELINE = Certificate(9.0, 1.0, 0.0)
SAMPLE = Sample(0.1, 1, 1.0, BASELINE)
BEGUN: list[Message] = [("problem", {"n": 3}, (), BASELINE), ("phase", WARM_UP, 0.1)]


def test_the_peak_is_the_largest_memory_that_was_seen_since_the_run_began() -> None:
    gathered = Gathered()
    assert gathered.peak_mib is None
    gathered.note_memory(900.0)
    gathered.take(("phase", WARM_UP, 0.1))
    assert gathered.peak_mib is None, "building and compiling do not count"
    for mib in (None, 0.0, 100.0, 300.0, 200.0, None, 0.0):
        gathered.note_memory(mib)
    assert gathered.peak_mib == 300.0
    gathered.take(("record", Record(Status.VERIFIED, ""), 250.0))
    assert gathered.peak_mib == 300.0, "what a worker says of itself does not make less of what was seen"
    gathered.take(("record", Record(Status.VERIFIED, ""), 350.0))
    assert gathered.peak_mib == 350.0


@pytest.mark.parametrize(
    "messages",
    [
        [("sample", SAMPLE)], [*BEGUN, ("phase", WARM_UP, 0.1)], [("phase", "solve", 0.1)], [("phase", "compile", -1.0)],
        [("phase", "\ud800", 1.0)], [("environment", {})], [("warmed",)], [("mistake", None)],
        [*BEGUN, ("sample", SAMPLE), ("sample", Sample(0.2, 2, 2.0, BASELINE, 1e-3))],
    ],
    ids=["no_start", "second_start", "solve", "negative", "surrogate", "environment", "warmed", "mistake", "both_kinds"],
)  # fmt: skip
def test_what_is_told_out_of_turn_is_refused(messages: list[Message]) -> None:
    gathered = Gathered()
    for message in messages[:-1]:
        gathered.take(message)
    with pytest.raises(TooMuchError):
        gathered.take(messages[-1])
    assert gathered.ended(Status.CRASHED, "").record.status is Status.CRASHED, "and harms no row"


def test_only_the_first_problem_counts() -> None:
    gathered, other = Gathered(), Certificate(2.0, 2.0, 0.0)
    for message in (*BEGUN, ("problem", {"n": 7}, (), other)):
        gathered.take(message)
    assert (gathered.baseline, gathered.dimensions) == (BASELINE, {"n": 3})


@pytest.mark.parametrize("status", Status)
def test_only_an_error_says_where_it_was_raised(status: Status) -> None:
    gathered, places = Gathered(), (Place("solvers/mine.py", 31, "Mine.steps", ""),)
    gathered.take(("record", Record(status, "", places=places), None))
    assert gathered.outcome().record.places == (places if status is Status.ERROR else ())
