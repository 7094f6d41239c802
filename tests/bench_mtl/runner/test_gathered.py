"""What is gathered about a run while it goes on."""

from __future__ import annotations

import pytest

from bench_mtl.core.types import Place, Record, Status
from bench_mtl.runner.gathered import WARM_UP, Gathered
from bench_mtl.runner.messages import Ended, Mistake, Phase, UnreadableError


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


def test_what_no_run_sends_is_refused_and_harms_no_row() -> None:
    gathered = Gathered()
    with pytest.raises(UnreadableError):
        gathered.take(Mistake(None))
    assert gathered.ended(Status.CRASHED, "").record.status is Status.CRASHED


@pytest.mark.parametrize("status", Status)
def test_only_an_error_says_where_it_was_raised(status: Status) -> None:
    gathered, places = Gathered(), (Place("solvers/mine.py", 31, "Mine.steps", ""),)
    gathered.take(Ended(Record(status, "", places=places), None))
    assert gathered.outcome().record.places == (places if status is Status.ERROR else ())
