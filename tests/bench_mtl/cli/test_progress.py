"""The progress display: labels as they are, and an estimate of the time left that learns."""

from __future__ import annotations

import io
import re
import sys
import tomllib
from dataclasses import replace

import pytest

from bench_mtl.cli.progress import TimeLeft, clock, reporter
from bench_mtl.core.types import Record, Status
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case, expand
from bench_mtl.engine.suite_file import parse_suite
from bench_mtl.results import Outcome

SUITE = """
seeds = [0, 1]
targets = [1e-6]

[[problems]]
name = "l1inf_hinge"
label = "[/b] [red] :smile:"
data = { name = "synthetic_l1inf" }

[[problems]]
name = "l1inf_hinge"
label = "other"
data = { name = "synthetic_l1inf", tasks = 3 }

[[solvers]]
name = "conic"
label = "[/nothing]"

[[solvers]]
name = "projected_subgradient"
"""

MARKUP = "[/b] [red] :smile:"


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return expand(parse_suite(tomllib.loads(SUITE)), load_registry())


def of(cases: list[Case], problem: str, solver: str) -> list[Case]:
    return [case for case in cases if case.instance.label == problem and case.solver_label == solver]


def outcome(status: Status = Status.ERROR, reason: str = "[/oops]") -> Outcome:
    return Outcome(Record(status, reason), {}, (), "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_seconds_are_shown_as_a_clock() -> None:
    assert [clock(seconds) for seconds in (None, 0.0, 59.6, 3600.0, 90061.0)] == ["-:--:--", "0:00:00", "0:01:00", "1:00:00", "25:01:01"]


def test_nothing_is_left_to_say_before_anything_ended(cases: list[Case]) -> None:
    left = TimeLeft(cases)
    assert left.seconds() is None
    assert TimeLeft([]).seconds() is None


def test_the_time_left_is_that_of_the_same_pair_then_of_the_same_solver_then_of_all(cases: list[Case]) -> None:
    left = TimeLeft(cases)
    mine, others = of(cases, MARKUP, "[/nothing]"), of(cases, "other", "[/nothing]")
    left.add(mine[0], 100.0)
    assert left.seconds() == 700.0  # all are as long as the only one known
    left.add(of(cases, MARKUP, "projected_subgradient")[0], 10.0)
    assert left.seconds() == 100.0 + 10.0 + 2 * 100.0 + 2 * 10.0  # solver by solver
    left.add(others[0], 300.0)
    assert left.seconds() == 100.0 + 10.0 + 300.0 + 2 * 10.0  # pair by pair
    assert left.seconds(slots=2) == 215.0
    for case in cases:
        left.add(case, 1.0)
    assert left.seconds() == 0.0


def test_what_takes_no_time_says_nothing_of_other_pairs(cases: list[Case]) -> None:
    left = TimeLeft(cases)
    left.add(of(cases, "other", "[/nothing]")[0], 0.0)
    left.add(of(cases, "other", "projected_subgradient")[0], 50.0)
    assert left.seconds() == 0.0 + 50.0 + 2 * 50.0 + 2 * 50.0


def test_no_time_is_left_while_all_that_ended_was_skipped_and_compiling_is_not_expected_of_each_case(
    cases: list[Case], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0.0, 0.0, 0.0, 100.0])  # the second case ends after 100 s, of which it ran for 3
    monkeypatch.setattr("bench_mtl.cli.progress.time.monotonic", lambda: next(seconds))
    with reporter(cases) as show:
        for case, ended in zip(cases, (outcome(Status.SKIPPED, "no"), replace(outcome(), wall_seconds=3.0)), strict=False):
            show.start(case)
            show.end(case, ended)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("; left ")[1] for line in lines] == [
        "-:--:--",
        clock(3.0 * sum(case.labels != cases[0].labels for case in cases[2:])),
    ]


def test_the_time_left_learns_from_what_ran_before(cases: list[Case]) -> None:
    left = TimeLeft(cases, [(MARKUP, "[/nothing]", 4.0), (MARKUP, "[/nothing]", 8.0), ("gone", "projected_subgradient", 1.0)])
    assert left.seconds() == 4 * 6.0 + 4 * 1.0


def test_labels_with_markup_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch, cases: list[Case]) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    with reporter(cases[:1]) as show:
        show.start(cases[0])
        show.end(cases[0], outcome())
    assert f"{MARKUP} seed 0 | [/nothing]: error ([/oops])" in terminal.getvalue()
    assert "left 0:00:00" in terminal.getvalue()
    assert "1 failed" in terminal.getvalue()


def test_lines_count_what_ended_and_what_failed(cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(cases[:3], slots=2) as show:
        show.start(cases[0])
        show.start(cases[1])
        show.end(cases[1], outcome())
        show.start(cases[2])
        show.end(cases[0], outcome(Status.SKIPPED, "no"))
        show.end(cases[2], outcome(Status.TIMEOUT, "late"))
        assert not show.running
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("]")[0] for line in lines] == ["[1/3", "[2/3", "[3/3"]
    assert lines[0].startswith(f"[1/3] {MARKUP} seed 0 | projected_subgradient: error ([/oops]); 1 failed; 1 running; left 0:00:00")
    assert lines[2].endswith("timeout (late); 1 failed")


def test_at_80_columns_count_and_time_left_stay_and_titles_lose_their_middle(monkeypatch: pytest.MonkeyPatch, cases: list[Case]) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    label = f"hinge {'of many tasks ' * 8}radius=2.0"
    long = [replace(case, instance=replace(case.instance, label=label)) for case in of(cases, "other", "[/nothing]")]
    with reporter(long, slots=2) as show:
        show.start(long[0])
        show.start(long[1])
        show.end(long[0], outcome(Status.TIMEOUT, "late"))
        show.end(long[1], outcome(Status.ERROR, "a reason that goes on and on, so that no line can be as short as the terminal"))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    assert max(map(len, lines)) <= 80
    assert any(re.match(r"\[0/2\] left -:--:-- .* hinge .*\.\.\..* and 1 more", line) for line in lines), lines
    ended = next(line for line in lines if "timeout" in line)
    assert re.fullmatch(r"\[1/2\] hinge .*\.\.\..*\| \[/nothing\]: timeout \(late\)", ended.rstrip())
    assert any(line.startswith("[2/2] hinge...") and ": error (a reason" in line for line in lines)
    assert any(line.startswith("[2/2] left 0:00:00, 1 failed") for line in lines)


def test_quiet_commands_show_no_bar(monkeypatch: pytest.MonkeyPatch, cases: list[Case]) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr("bench_mtl.cli.console.is_quiet", lambda: True)
    monkeypatch.setattr("bench_mtl.cli.progress.is_quiet", lambda: True)
    with reporter(cases[:1]) as show:
        show.start(cases[0])
        show.end(cases[0], outcome())
    assert (show.done, terminal.getvalue()) == (1, "")
