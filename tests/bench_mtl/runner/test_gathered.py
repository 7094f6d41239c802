"""What is gathered about a run while it goes on."""

from __future__ import annotations

from bench_mtl.core.types import Record, Status
from bench_mtl.runner.gathered import WARM_UP, Gathered


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
