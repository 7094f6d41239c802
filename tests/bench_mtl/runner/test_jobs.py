"""Jobs in workers: whatever a job does to its process, it has an outcome, and the next job runs."""

from pathlib import Path

from toy_jobs import ToyJob

from bench_mtl.core.types import Limits
from bench_mtl.runner import LocalExecutor, Setting

SHORT = Limits(seconds=None, wall_seconds=1.0, memory_gib=1.0)


def test_every_job_has_its_outcome(tmp_path: Path) -> None:
    jobs = [ToyJob("first"), ToyJob("raises"), ToyJob("second"), ToyJob("aborts"), ToyJob("sleeps", SHORT), ToyJob("last")]
    with LocalExecutor(Setting(1, None, tmp_path)) as executor:
        outcomes = {job.what: executor.submit(job).result() for job in jobs}  # type: ignore[arg-type]
    ended = {name: (str(outcome.record.status), outcome.record.reason) for name, outcome in outcomes.items()}
    assert ended["first"] == ended["second"] == ended["last"] == ("verified", "as it should")
    assert ended["raises"] == ("error", "ValueError: no such luck")
    assert ended["aborts"][0] == "crashed"
    assert ended["sleeps"][0] == "timeout"
    assert ended["sleeps"][1].startswith("limit of 1 s for the whole run, killed")
    found = outcomes["first"].found
    assert (found["numbers"][0], found["folder"]) == (1.0, str(tmp_path))
    assert outcomes["second"].found["process"] != found["process"], "each has a process of its own"
    assert not outcomes["raises"].found
