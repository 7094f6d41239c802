"""What is gathered about a run while it goes on."""

from __future__ import annotations

import pytest

from bench_mtl.core.types import Certificate, Place, Record, Sample, Status
from bench_mtl.runner.gathered import WARM_UP, Gathered, TooMuchError
from bench_mtl.runner.messages import AboutProblem, Ended, Message, Mistake, Phase, Sampled

BASELINE = Certificate(9.0, 1.0, 0.0)
SAMPLE = Sample(0.1, 1, 1.0, BASELINE)
BEGUN: list[Message] = [AboutProblem({"n": 3}, (), BASELINE), Phase(WARM_UP, 0.1)]


def test_the_peak_is_the_largest_memory_that_was_seen_since_the_run_began() -> None:
    gathered = Gathered()
    assert gathered.peak_mib is None
    gathered.note_memory(900.0)
    gathered.take(Phase(WARM_UP, 0.1))
    assert gathered.peak_mib is None, "building and compiling do not count"
    for mib in (None, 0.0, 100.0, 300.0, 200.0, None, 0.0):
        gathered.note_memory(mib)
    assert gathered.peak_mib == 300.0
    gathered.take(Ended(Record(Status.VERIFIED, ""), 250.0))
    assert gathered.peak_mib == 300.0, "what a run says of itself does not make less of what was seen"
    gathered.note_memory(350.0)
    assert gathered.peak_mib == 350.0


@pytest.mark.parametrize(
    "messages",
    [
        [Sampled(SAMPLE)], [*BEGUN, Phase(WARM_UP, 0.1)], [Phase("solve", 0.1)], [Phase("compile", -1.0)], [Phase("\ud800", 1.0)],
        [Mistake(None)], [*BEGUN, Sampled(SAMPLE), Sampled(Sample(0.2, 2, 2.0, BASELINE, 1e-3))],
    ],
    ids=["no_start", "second_start", "solve", "negative", "surrogate", "mistake", "both_kinds"],
)  # fmt: skip
def test_what_is_told_out_of_turn_is_refused(messages: list[Message]) -> None:
    gathered = Gathered()
    for message in messages[:-1]:
        gathered.take(message)
    with pytest.raises(TooMuchError):
        gathered.take(messages[-1])
    assert gathered.ended(Status.CRASHED, "").record.status is Status.CRASHED, "and harms no row"


@pytest.mark.parametrize("status", Status)
def test_only_an_error_says_where_it_was_raised(status: Status) -> None:
    gathered, places = Gathered(), (Place("solvers/mine.py", 31, "Mine.steps", ""),)
    gathered.take(Ended(Record(status, "", places=places), None))
    assert gathered.outcome().record.places == (places if status is Status.ERROR else ())
