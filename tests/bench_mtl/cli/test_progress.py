"""The progress display: labels as they are, and an estimate of the time left that learns."""

import io
import re
import sys
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench_mtl.cli.progress import TimeLeft, reporter
from bench_mtl.core.types import Record, Status
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case, expand
from bench_mtl.engine.suite_file import parse_suite
from bench_mtl.results import Outcome

MARKUP = "[/b] [red] :smile:"
SUITE = f"""
seeds = [0, 1]
targets = [1e-6]
problems = [
  {{ name = "l1inf_hinge", label = "{MARKUP}", data = {{ name = "synthetic_l1inf" }} }},
  {{ name = "l1inf_hinge", label = "other", data = {{ name = "synthetic_l1inf", tasks = 3 }} }},
]
solvers = [{{ name = "conic", label = "[/nothing]" }}, {{ name = "projected_subgradient" }}]
"""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return expand(parse_suite(tomllib.loads(SUITE)), load_registry())


def of(cases: list[Case], problem: str, solver: str) -> list[Case]:
    return [case for case in cases if case.instance.label == problem and case.solver_label == solver]


def outcome(status: Status = Status.ERROR, reason: str = "[/oops]") -> Outcome:
    return Outcome(Record(status, reason), {}, (), "")


def test_the_time_left_is_that_of_the_same_pair_then_of_the_same_solver_then_of_all(cases: list[Case]) -> None:
    assert TimeLeft(cases).seconds() is None
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
    known = TimeLeft(cases, [(MARKUP, "[/nothing]", 4.0), (MARKUP, "[/nothing]", 8.0), ("gone", "projected_subgradient", 1.0)])
    assert known.seconds() == 4 * 6.0 + 4 * 1.0


def test_what_is_skipped_says_nothing_of_other_pairs_and_compiling_is_not_expected_of_each_case(
    cases: list[Case], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0.0, 0.0, 0.0, 100.0])  # the second case ends after 100 s, of which it ran for 3
    monkeypatch.setattr("bench_mtl.cli.progress.time", SimpleNamespace(monotonic=lambda: next(seconds)))  # not that of other threads
    with reporter(cases) as show:
        for case, ended in zip(cases, (outcome(Status.SKIPPED, "no"), replace(outcome(), wall_seconds=3.0)), strict=False):
            show.start(case)
            show.end(case, ended)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"[1/8] {cases[0].title}: skipped (no); left -:--:--"
    left = 3 * sum(case.labels != cases[0].labels for case in cases[2:])
    assert lines[1].endswith(f": error ([/oops]); 1 failed; left 0:00:{left:02}")


def test_on_a_terminal_labels_stay_as_they_are_and_the_bar_fits_into_its_width(monkeypatch: pytest.MonkeyPatch, cases: list[Case]) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    label = f"hinge {MARKUP} {'of many tasks ' * 8}radius=2.0"
    long = [replace(case, instance=replace(case.instance, label=label)) for case in of(cases, "other", "[/nothing]")]
    with reporter(long, slots=2) as show:
        show.start(long[0])
        show.start(long[1])
        show.end(long[0], outcome(Status.TIMEOUT, "late"))
        show.end(long[1], outcome())
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    assert max(map(len, lines)) <= 80
    assert any(re.match(r"\[0/2\] left -:--:-- .* hinge .*\.\.\..* and 1 more", line) for line in lines), lines
    assert f"[1/2] hinge {MARKUP} of many" in text
    assert "| [/nothing]: timeout (late)" in " ".join(lines)
    assert "error ([/oops])" in " ".join(lines)
    assert any(line.startswith("[2/2] left 0:00:00, 1 failed") for line in lines)
