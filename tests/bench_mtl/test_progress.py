"""The progress display: labels as they are, and an estimate of the time left."""

from __future__ import annotations

import io
import sys
import tomllib

import pytest

from bench_mtl.progress import TimeLeft, reporter
from bench_mtl.registry import load_registry
from bench_mtl.store import Outcome
from bench_mtl.suite import expand
from bench_mtl.suite_file import parse_suite
from bench_mtl.types import Record, Status

SUITE = """
[[problems]]
name = "l1inf_hinge"
label = "[/b] [red] :smile:"
data = { name = "digits" }

[[solvers]]
name = "conic"
label = "[/nothing]"
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_time_left_is_the_mean_of_what_ran_times_what_remains() -> None:
    left = TimeLeft(5)
    assert str(left) == "-:--:--"
    left.add(0.0, Status.SKIPPED)
    assert str(left) == "-:--:--"
    left.add(4000.0, Status.VERIFIED)
    left.add(2000.0, Status.TIMEOUT)
    assert str(left) == "1:40:00"


def test_labels_with_markup_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = expand(parse_suite(tomllib.loads(SUITE)), load_registry())
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    with reporter(1) as show:
        show.start(case)
        show.end(case, Outcome(Record(Status.ERROR, "[/oops]"), {}, (), ""))
    assert "[/b] [red] :smile: | [/nothing]: error ([/oops])" in terminal.getvalue()
    assert "left 0:00:00" in terminal.getvalue()
