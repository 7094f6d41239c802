"""Jobs in workers: whatever a job does to its process, there is a row, and the next job runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from toy_jobs import LIMITS, ToyJob

from bench_mtl.core.types import Limits
from bench_mtl.results import Outcome
from bench_mtl.runner import Executor, InlineExecutor, LocalExecutor, Setting, run_cases


class Kept:
    """Rows in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, Outcome] = {}

    def finished(self) -> set[str]:
        return set(self.outcomes)

    def deaths(self) -> dict[str, int]:
        return {}

    def begin(self, key: str, /) -> None:
        assert key not in self.outcomes

    def add_environment(self, description: Mapping[str, Any], /) -> int:
        assert description["threads"] == 1
        return 1

    def add(self, job: ToyJob, outcome: Outcome, environment_id: int, /) -> None:
        self.outcomes[job.key] = outcome


def run(jobs: list[ToyJob], executor: Executor, folder: Path) -> dict[str, Outcome]:
    rows = Kept(folder)
    with executor:
        run_cases(jobs, rows, executor=executor)
    return rows.outcomes


SHORT = Limits(seconds=None, wall_seconds=1.0, memory_gib=1.0)

#: Jobs that take their process with them: how they end.
DEADLY = {
    ToyJob("aborts"): ("crashed", ""),
    ToyJob("sleeps", SHORT): ("timeout", "limit of 1 s for the whole run, killed"),
}


def test_every_job_gets_its_row(tmp_path: Path) -> None:
    jobs = [ToyJob("first"), ToyJob("raises"), ToyJob("second"), *DEADLY, ToyJob("last")]
    outcomes = run(jobs, LocalExecutor(Setting(1, None, tmp_path)), tmp_path)
    ended = {name: (str(outcome.record.status), outcome.record.reason) for name, outcome in outcomes.items()}
    assert ended["first"] == ended["second"] == ended["last"] == ("verified", "as it should")
    assert ended["raises"] == ("error", "ValueError: no such luck")
    for job, (status, reason) in DEADLY.items():
        assert ended[job.key][0] == status
        assert ended[job.key][1].startswith(reason)
    found = outcomes["first"].found
    assert found["folder"] == str(tmp_path)
    assert outcomes["second"].found["process"] != found["process"], "each has a process of its own"
    assert not outcomes["raises"].found


def test_a_job_runs_in_this_process_too(tmp_path: Path) -> None:
    outcomes = run([ToyJob("here", LIMITS), ToyJob("raises")], InlineExecutor(Setting()), tmp_path)
    assert outcomes["here"].found["numbers"][0] == 1.0
    assert outcomes["here"].wall_seconds == pytest.approx(outcomes["here"].record.times.solve, abs=0.5)
    assert outcomes["raises"].record.reason == "ValueError: no such luck"
