"""`bench-mtl report --check` and `--index` as a user meets them, and the findings that are written from rows."""

from __future__ import annotations

import re
import shutil

import pytest
from audited import audited, run_of, runs, stored

from bench_mtl.core.errors import InputError
from bench_mtl.report.index import END, START, counts, finding, index_faults, write_index
from bench_mtl.results.loading import read_results

README = f"""# Reports

{START}

| report | command | finding |
| --- | --- | --- |
| [one](one/report.md) | `bench-mtl run one` | ADMM is ahead everywhere. |
| [two](two/report.md) | `bench-mtl run two`, [more](two/more.md) | Really fast. |

{END}

## Learning experiments

| report | finding |
| --- | --- |
| [paper](paper/report.md) | By hand. |
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    audited(folder / "one")
    audited(folder / "two", [run for run in runs() if run["problem"] == "alone"])
    (folder / "README.md").write_text(README)
    return folder


@pytest.fixture
def reports(made, tmp_path):
    return shutil.copytree(made, tmp_path / "reports")


def test_a_report_that_follows(command, reports):
    code, out, err = command("report", reports / "one", "--check")
    assert (code, err) == (0, [])
    assert re.fullmatch(r".*one: 0 faults in \d+ lines", out[0])


def test_a_report_that_does_not(command, reports):
    path = reports / "one" / "report.md"
    before = path.read_text()
    path.write_text(before.replace(">= 67x", ">= 85x"))
    code, out, err = command("report", reports / "one", "--check")
    assert code == 1
    assert re.fullmatch(r".*one: 1 fault in \d+ lines", out[0])
    assert len(err) == len(out) == 1
    assert re.match(rf"{re.escape(str(path))}:\d+: the rows give '.*>= 67x.*: '.*>= 85x", err[0])
    assert path.read_text() == before.replace(">= 67x", ">= 85x"), "a check changes nothing"


def test_all_reports_and_the_list_of_them(command, reports):
    assert command("report", "--index", reports)[0] == 0
    code, out, err = command("report", reports, "--check")
    assert (code, err) == (0, [])
    assert [line.split(":")[0].rpartition("/")[2] for line in out] == ["one", "two", "README.md"]
    listed = (reports / "README.md").read_text()
    (reports / "README.md").write_text(listed.replace("7.6 to 18", "7.6 to 81"))
    code, _, err = command("report", reports, "--check")
    assert code == 1
    assert re.search(r"README\.md:\d+: the rows give '.*7.6 to 18.*: '.*7.6 to 81", err[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["one", "--check", "--out", "x"], "--check goes with no other option"),
        (["one", "--check", "--index"], "--check goes with no other option"),
        ([".", "--index", "--target", "1e-3"], "--index goes with no other option"),
        (["one", "--index"], "is no folder of reports"),
        (["empty", "--check"], "has no report.md to check"),
    ],
)
def test_what_cannot_be_is_refused(command, reports, monkeypatch, arguments, words):
    monkeypatch.chdir(reports)
    (reports / "empty").mkdir()
    code, out, err = command("report", *arguments)
    assert (code, out) == (2, [])
    assert words in err[0]


def test_the_numbers_of_a_list_are_those_of_the_winners(made):
    numbers = counts(read_results(made / "one"))
    assert list(numbers.values()) == ["1e-6", "8", "4", "7.6 to 18", "2", "1", "1", "3.0", "1", "1"]
    assert counts(read_results(made / "two"))["no rival run"] == "1"
    assert finding(read_results(made / "one")) == (
        "To 1e-6 a specialised solver is fastest on 4 of 8 problems, by 7.6 to 18 times where a rival reaches it; "
        "a generic solver or a peer on 1; times are about equal on 1; no solver reaches it on 1; no rival was run on 1."
    )


def test_a_loss_on_which_no_specialised_solver_gets_there_is_the_largest(tmp_path):
    given = [run for run in runs() if run["problem"] in ("lost", "bounded")]
    for run in given:
        if run["problem"] == "bounded" and run["solver"] == "pg":
            run |= {"samples": [], "status": "crashed"}
        elif run["problem"] == "bounded" and run["solver"] == "scs":
            run["samples"] = next(each["samples"] for each in given if each["problem"] == "lost" and each["solver"] == "scs")
    assert counts(read_results(stored(tmp_path / "results", given)))["times at most"] == "no ratio"


def test_the_list_is_written_between_marks_and_the_rest_is_kept(reports):
    write_index(reports)
    once = (reports / "README.md").read_text()
    assert "ADMM is ahead" not in once
    assert "| `bench-mtl run two`, [more](two/more.md) | 1e-6 | 1 | 0 | - |" in once
    assert "| [paper](paper/report.md) | By hand. |" in once
    write_index(reports)
    assert (reports / "README.md").read_text() == once
    assert list(index_faults(reports)) == []


def test_faults_of_the_list(reports):
    assert [fault.line for fault in index_faults(reports)] == [5, 6, 7, 8]
    write_index(reports)
    audited(reports / "three", [run_of("p", "pg", [])])
    (fault,) = index_faults(reports)
    assert fault.why == "three is listed 0 times"
    (reports / "README.md").write_text("nothing")
    with pytest.raises(InputError, match="has no table of reports"):
        list(index_faults(reports))
