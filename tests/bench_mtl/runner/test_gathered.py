"""What is gathered about a run while it goes on."""

import math
import os

import pytest

from bench_mtl.core.types import Certificate, Ending, Limits, Place, Record, Rung, Sample, Status
from bench_mtl.runner import gathered as module
from bench_mtl.runner.gathered import WARM_UP, Gathered
from bench_mtl.runner.messages import Begins, Ended, Message, Mistake, Phase, RungOver, Sampled, Taken, UnreadableError
from bench_mtl.runner.watch import Watch


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


BEGUN, ASKED = Phase(WARM_UP, 0.1), Begins("solve", 1e-3)


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ((), Mistake(None)),
        ((), ASKED),
        *(((BEGUN,), Begins("solve", asked)) for asked in (None, math.nan, math.inf, 0.0, -1.0)),
        ((BEGUN,), Begins("build", 1e-3)),
        ((BEGUN,), Begins("rest", None)),
        ((BEGUN,), RungOver(Rung(1e-3, 0.1, Ending.ANSWERED))),
        ((BEGUN, ASKED), RungOver(Rung(math.nan, 0.1, Ending.ANSWERED))),
        ((BEGUN, ASKED), RungOver(Rung(1e-2, 0.1, Ending.ANSWERED))),
        ((BEGUN, ASKED), RungOver(Rung(1e-3, 0.1, Ending.KILLED))),
    ],
)
def test_what_no_run_sends_is_refused_and_harms_no_row(before: tuple[Message, ...], message: Message) -> None:
    gathered = Gathered()
    for earlier in before:
        gathered.take(earlier)
    with pytest.raises(UnreadableError):
        gathered.take(message)
    record = gathered.ended(Status.CRASHED, "").record
    assert record.status is Status.CRASHED
    assert [rung.asked for rung in record.rungs] == ([1e-3] if ASKED in before else [])


def test_a_run_has_not_endless_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SAMPLES", 2)
    gathered = Gathered()
    gathered.take(BEGUN)
    sampled = Sampled(Sample(0.5, 1, 1.0, Certificate(1.0, 0.0, 0.0)))
    for _ in range(2):
        gathered.take(sampled)
    with pytest.raises(UnreadableError, match="more than 2 samples"):
        gathered.take(sampled)


@pytest.mark.parametrize(
    "sample",
    [
        Sample(0.5, 1, math.nan, Certificate(1.0, 0.0, 0.0)), Sample(0.5, 2**63, 1.0, Certificate(1.0, 0.0, 0.0)),
        Sample(0.5, 1, 1.0, Certificate(math.nan, 0.0, 0.0)), Sample(0.5, 1, 1.0, Certificate(1.0, 0.0, 0.0), measures=(("a", math.nan),)),
    ],
)  # fmt: skip
def test_a_sample_that_no_row_can_hold_is_none(sample: Sample) -> None:
    gathered = Gathered()
    gathered.take(BEGUN)
    with pytest.raises(UnreadableError, match="in the place of a number"):
        gathered.take(Sampled(sample))


@pytest.mark.parametrize("status", Status)
def test_only_an_error_says_where_it_was_raised(status: Status) -> None:
    gathered, places = Gathered(), (Place("solvers/mine.py", 31, "Mine.steps", ""),)
    gathered.take(Ended(Record(status, "", places=places), None))
    assert gathered.outcome().record.places == (places if status is Status.ERROR else ())


def test_a_problem_may_be_built_for_longer_than_the_limits_of_its_run() -> None:
    class Clock:
        value = compiling = 0.0

    gathered = Gathered()
    gathered.take(Taken())
    watch = Watch(Limits(seconds=0.0, off_clock_seconds=0.0), os.getpid(), Clock(), gathered)  # type: ignore[arg-type]
    assert watch.broken() is None
    gathered.began = watch._started
    assert watch.broken()[0] is Status.TIMEOUT  # type: ignore[index]
