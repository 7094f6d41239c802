"""`report --check` and `--index`: a report that its rows give passes, and every line that they do not give is named, whatever it says."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hand_reports import audited, run_of, runs

from bench_mtl.core.errors import InputError
from bench_mtl.report.check import check_report, linked_forms, suite_report
from bench_mtl.report.index import END, START, index_faults, write_index
from bench_mtl.report.write import write_report
from bench_mtl.results.view import View

README = f"""# Reports

{START}

| report | command | finding |
| --- | --- | --- |
| [one](one/report.md) | `bench-mtl run one` | ADMM is ahead everywhere. |
| [two](two/report.md) | `bench-mtl run two`, [more](two/more.md) | Really fast. |

{END}

| [paper](paper/report.md) | By hand. |
"""

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    audited(folder / "one")
    audited(folder / "two", [run for run in runs() if run["problem"] == "alone"])
    (folder / "README.md").write_text(README)
    return folder


@pytest.fixture
def reports(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "reports"))


def test_every_line_that_is_another_or_left_out_or_added_is_named(published: Path, tmp_path: Path) -> None:
    """In the place of the rows stands the text that they give, which is made once."""
    text = (published / "one" / "report.md").read_text()
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


def test_a_report_in_several_forms_links_to_them(reports: Path, leave_figures_out: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_figures_out(monkeypatch)
    write_report(str(reports / "one"), formats=("md", "svg", "csv"))
    assert linked_forms((reports / "one" / "report.md").read_text()) == ["svg", "csv"]
    assert check_report(reports / "one", suite_report)[0] == []
    write_report(reports / "one", view=View(select=("problem=lost",)), formats=("md",))
    with pytest.raises(InputError, match="view of the results"):
        check_report(reports / "one", suite_report)


def test_all_reports_and_the_list_of_them(command: Command, reports: Path) -> None:
    assert [fault.line for fault in index_faults(reports)] == [5, 6, 7, 8]
    assert command("report", "--index", reports)[0] == 0
    code, out, err = command("report", reports, "--check")
    assert (code, err) == (0, [])
    assert [re.sub(r".*/| in \d+ lines", "", line) for line in out] == ["one: 0 faults", "two: 0 faults", "README.md: 0 faults"]
    changes = ((reports / "one" / "report.md", "to 73x", "to 37x"), (reports / "README.md", "7.6 to 18", "7.6 to 81"))
    for path, right, wrong in changes:
        path.write_text(path.read_text().replace(right, wrong))
    before = [path.read_bytes() for path, *_ in changes]
    code, out, err = command("report", reports, "--check")
    assert (code, len(err)) == (1, 2)
    for (path, right, wrong), line in zip(changes, err, strict=True):
        assert re.match(rf"{re.escape(str(path))}:\d+: the rows give '.*{right}.*: '.*{wrong}", line)
    assert [path.read_bytes() for path, *_ in changes] == before, "a check changes nothing"


def test_the_list_is_written_between_marks_and_the_rest_is_kept(reports: Path) -> None:
    for _ in range(2):
        write_index(reports)
        text = (reports / "README.md").read_text()
        assert "ADMM is ahead" not in text
        assert text.count("| `bench-mtl run two`, [more](two/more.md) | 1e-6 | 1 |  |") == 1
        assert text.endswith("| [paper](paper/report.md) | By hand. |\n")
        assert list(index_faults(reports)) == []
    audited(reports / "three", [run_of("p", "pg", [])])
    (fault,) = index_faults(reports)
    assert fault.why == "three is listed 0 times"
    (reports / "README.md").write_text("nothing")
    with pytest.raises(InputError, match="has no table of reports"):
        list(index_faults(reports))
