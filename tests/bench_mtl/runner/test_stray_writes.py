"""Bytes that a solver writes by accident, to the pipe of its results or to its deadline, cost nobody but itself."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from runs import run_suite, suite_of

from bench_mtl.runner import Executor, process
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.process import _shared_page

_SECONDS, _WALL_SECONDS = 0.5, 1.5

#: How each ends, and a word of the evidence.
ENDS = {
    "start_of_a_head": ("crashed", "no message"), "start_of_a_frame": ("timeout", "time limit"),
    "huge_length": ("crashed", "cannot be read"),
    "garbage": ("crashed", "no message"), "frame": ("crashed", "no message"), "frame_of_before": ("crashed", "no message"),
    "shutdown": ("crashed", "died"), "fills": ("crashed", "no message"), "huge_deadline": ("error", "its clock is false"),
    "negative_deadline": ("error", "its clock is false"), "no_deadline": ("error", "its clock is false"),
    "pushes": ("error", "its clock is false"), "below": ("inaccurate", "the solver ended by itself"),
}  # fmt: skip


def test_stray_writes_end_as_rows_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: AbstractContextManager[Executor]
) -> None:
    if sys.platform != "linux":
        pytest.skip("reads how many descriptors there are from /proc")
    monkeypatch.setattr(process, "_EXIT_SECONDS", 0.2)
    tables = [f'name = "strays"\noptions = {{ deed = "{deed}" }}' for deed in ENDS]
    honest = 'name = "projected_gradient"\noptions = { step_rule = "line_search" }\nlabel = "after"'
    suite = suite_of(*tables, honest, limits=f"seconds = {_SECONDS}, off_clock_seconds = {_WALL_SECONDS - _SECONDS}")
    runs = run_suite(tmp_path, suite, executor=shared)
    for deed, (status, words) in ENDS.items():
        row = runs.loc[deed]
        assert (row["status"], words in row["reason"]) == (status, True), (deed, row["reason"])
        assert 0.0 <= row["solve_seconds"] < _WALL_SECONDS + 1.0, deed
        assert 0.0 <= row["wall_seconds"] < _WALL_SECONDS + 1.0, deed
    assert runs.loc["after", "status"] == "verified", runs.loc["after", "reason"]


def test_a_deadline_is_shared_without_a_descriptor() -> None:
    with _shared_page() as fd:
        one, other = SharedDeadline(fd), SharedDeadline(fd)
    one.value, one.compiling = 3.5, 0.25
    assert (other.value, other.compiling) == (3.5, 0.25)
    other.detach()
    other.value = 7.0
    assert one.value == 3.5
    with pytest.raises(OSError, match="descriptor"):
        SharedDeadline(fd)
