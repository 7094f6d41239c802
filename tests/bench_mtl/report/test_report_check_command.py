"""`bench-mtl report --check` and `--index` as a user meets them, and the findings that are written from rows."""

from __future__ import annotations

import re
import shutil

import pytest
from audited import audited, run_of, runs

from bench_mtl.core.errors import InputError
from bench_mtl.report.index import END, START, finding, index_faults, write_index
from bench_mtl.results.loading import read_results

README = """# Reports

| report | command | finding |
| --- | --- | --- |
| [one](one/report.md) | `bench-mtl run one` | ADMM is ahead everywhere. |
| [two](two/report.md) | `bench-mtl run two`, [more](two/more.md) | Really fast. |

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
    path.write_text(before.replace("at least 67x", "at least 85x"))
    code, out, err = command("report", reports / "one", "--check")
    assert code == 1
    assert re.fullmatch(r".*one: 1 fault in \d+ lines", out[0])
    assert len(err) == len(out) == 1
    assert re.match(rf"{re.escape(str(path))}:\d+: the rows give '.*at least 67x faster.*: '.*at least 85x faster", err[0])
    assert path.read_text() == before.replace("at least 67x", "at least 85x"), "a check changes nothing"


def test_all_reports_and_the_list_of_them(command, reports):
    assert command("report", "--index", reports)[0] == 0
    code, out, err = command("report", reports, "--check")
    assert (code, err) == (0, [])
    assert [line.split(":")[0].rpartition("/")[2] for line in out] == ["one", "two", "README.md"]
    listed = (reports / "README.md").read_text()
    (reports / "README.md").write_text(listed.replace("fastest on 5", "fastest on 7"))
    code, _, err = command("report", reports, "--check")
    assert code == 1
    assert re.search(r"README\.md:\d+: the rows give '.*fastest on 5.*: '.*fastest on 7", err[0])


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


def test_findings_are_sentences_of_the_rows(made):
    text = finding(read_results(made / "one"))
    assert text.count(". ") + 1 <= 3
    assert text.startswith("To 1e-4, a specialised solver is fastest on ")
    assert " of 7 problems that solvers of both kinds were run on (pg), by " in text
    assert "on 1 problem more solvers of one kind alone were run, which is no win" in text
    assert "the narrowest measured win of a specialised solver is pg over celer on level to 1e-4 (1.3 times)" in text
    assert "about as fast as a rival on 1" in text, "a ratio of 1.05 is no win"
    assert "the largest loss is to scs over pg on lost to 1e-6 (3.0 times)" in text
    assert finding(read_results(made / "two")) == ("To 1e-4 and 1e-6, on 1 problem solvers of one kind alone were run, which is no win.")


def test_a_loss_on_which_no_specialised_solver_gets_there_is_the_largest(tmp_path):
    given = [run for run in runs() if run["problem"] in ("lost", "bounded")]
    for run in given:
        if run["problem"] == "bounded" and run["solver"] == "pg":
            run |= {"samples": [], "status": "crashed"}
        elif run["problem"] == "bounded" and run["solver"] == "scs":
            run["samples"] = next(each["samples"] for each in given if each["problem"] == "lost" and each["solver"] == "scs")
    text = finding(read_results(audited(tmp_path / "results", given)))
    assert "the largest loss is to scs on bounded to 1e-2 (no ratio)" in text, text


def test_the_list_is_written_between_marks_and_the_rest_is_kept(reports):
    write_index(reports)
    once = (reports / "README.md").read_text()
    assert once.index(START) < once.index("| report | command | finding |") < once.index(END) < once.index("## Learning experiments")
    assert "ADMM is ahead" not in once
    assert "| `bench-mtl run two`, [more](two/more.md) | To 1e-4 and 1e-6, " in once
    assert "| [paper](paper/report.md) | By hand. |" in once
    write_index(reports)
    assert (reports / "README.md").read_text() == once
    assert list(index_faults(reports)) == []


def test_faults_of_the_list(reports):
    (fault,) = index_faults(reports)
    assert "not written from the rows" in fault.why
    write_index(reports)
    audited(reports / "three", [run_of("p", "pg", [])])
    (fault,) = index_faults(reports)
    assert fault.why == "three is listed 0 times"
    (reports / "README.md").write_text("nothing")
    with pytest.raises(InputError, match="has no table of reports"):
        list(index_faults(reports))
