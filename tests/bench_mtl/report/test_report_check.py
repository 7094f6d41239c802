"""`report --check`: a report that its rows give passes, and every line that they do not give is named, whatever it says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from audited import audited, iterative, run_of, runs, stored

from bench_mtl.core.errors import InputError
from bench_mtl.report.check import check_report, linked_forms, suite_report
from bench_mtl.report.write import write_report
from bench_mtl.results.view import View


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audited(tmp_path_factory.mktemp("audited") / "results")


@pytest.fixture
def copy(clean: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(clean, tmp_path / "copy"))


def test_a_report_that_its_rows_give_passes(clean: Path) -> None:
    faults, lines = check_report(clean, suite_report)
    assert faults == []
    assert lines == len((clean / "report.md").read_text().split("\n"))


def test_the_report_says_who_failed_where_and_why(clean: Path) -> None:
    text = (clean / "report.md").read_text()
    for words in (
        "no generic solver reaches it (scs, ecos: timeout after 47.0 to 59.9 s)", "no solver reaches it", "crashed",
        "only solvers of one kind were run", "Skipped, for they do not fit", "says: a remark", "for seed 1", "| >= 67x |",
    ):  # fmt: skip
        assert words in re.sub(" +", " ", text), words


def test_every_line_that_is_another_or_left_out_or_added_is_named(clean: Path, tmp_path: Path) -> None:
    """In the place of the rows stands the text that they give, which is made once."""
    text = (clean / "report.md").read_text()
    lines = text.split("\n")
    path = tmp_path / "report.md"

    def faults_of(changed: list[str]) -> list[Any]:
        path.write_text("\n".join(changed))
        return check_report(tmp_path, lambda *_: text)[0]

    for place, line in enumerate(lines):
        if line:
            (other,) = faults_of([*lines[:place], f"{line}!", *lines[place + 1 :]])
            assert (other.line, other.why.startswith("the rows give ")) == (place + 1, True)
            (missing,) = faults_of(lines[:place] + lines[place + 1 :])
            assert "1 line not there before this" in missing.why
            (more,) = faults_of([*lines[:place], "More is said.", *lines[place:]])
            assert (more.line, more.text, more.why) == (place + 1, "More is said.", "the rows do not give this line")


def test_a_fault_quotes_where_lines_differ(copy: Path) -> None:
    path = copy / "report.md"
    path.write_text(path.read_text().replace(">= 67x", ">= 85x"))
    (fault,) = check_report(copy, suite_report)[0]
    assert str(fault).startswith(f"{path}:{fault.line}: the rows give '")
    assert ">= 67x" in fault.why
    assert ">= 85x" in fault.text


def test_rows_that_are_others_are_named(copy: Path, tmp_path: Path) -> None:
    others = stored(tmp_path / "others", [run | {"samples": iterative(9.0)} if run["problem"] == "lost" else run for run in runs()])
    shutil.copy(others / "results.sqlite", copy / "results.sqlite")
    faults, _ = check_report(copy, suite_report)
    assert any("| lost " in fault.text for fault in faults)


def test_a_report_in_several_forms_links_to_them(copy: Path, leave_figures_out: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_figures_out(monkeypatch)
    write_report(copy, formats=("md", "svg", "csv"))
    assert linked_forms((copy / "report.md").read_text()) == ["svg", "csv"]
    assert check_report(copy, suite_report)[0] == []


def test_what_cannot_be_checked_is_refused(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no report\.md to check"):
        check_report(tmp_path, suite_report)
    write_report(copy, view=View(select=("problem=lost",)), formats=("md",))
    with pytest.raises(InputError, match="view of the results"):
        check_report(copy, suite_report)
    audited(tmp_path / "broken", [run_of("p", "pg", iterative(1.0))])
    (tmp_path / "broken" / "results.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(InputError, match=r"results\.sqlite"):
        check_report(tmp_path / "broken", suite_report)
