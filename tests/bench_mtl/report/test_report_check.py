"""`report --check`: a clean report passes, and whatever is changed in it, or in its rows, is named with its line."""

from __future__ import annotations

import ast
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from audited import audited, iterative, run_of, runs

from bench_mtl.core.errors import InputError
from bench_mtl.report import check
from bench_mtl.report.check import check_report
from bench_mtl.report.check.numbers import is_as_printed
from bench_mtl.report.render import format_seconds
from bench_mtl.report.write import write_report
from bench_mtl.results.view import View


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("audited") / "results")


@pytest.fixture
def copy(clean, tmp_path):
    return shutil.copytree(clean, tmp_path / "copy")


def edited(folder, pattern, new):
    """Change the first place that fits the pattern, and return the number of its line."""
    path = folder / "report.md"
    text = path.read_text()
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, pattern
    path.write_text(text[: found.start()] + found.expand(new) + text[found.end() :])
    return text[: found.start()].count("\n") + 1


def test_a_report_that_follows_passes(clean):
    found = check_report(clean)
    assert [str(fault) for fault in found.faults] == []
    assert found.blocks > 40
    assert found.unchecked == ()


def test_the_report_says_all_kinds_of_findings(clean):
    """So that the faults below are faults of every kind."""
    text = (clean / "report.md").read_text()
    for words in (
        "95 % interval", "at least 67x faster", "no generic solver gets there (", "so this is no win",
        "is about as fast as",
        "wins: it is 3.0x faster", "no solver gets there within the 60 s limit", "solvers of one kind alone were run", "crashed",
        "Skipped, for they do not fit",
        "says: a remark", "for seed 1", ">= 67x |",
    ):  # fmt: skip
        assert words in text, words


#: What is changed in report.md: what it is, a pattern, what takes its place, and a word of the fault.
CHANGES = [
    ("a ratio of a finding", r"(\*\*measured\*\*.* is )[\d.]+x( faster)", r"\g<1>9.9x\2", "the rows give"),
    ("a ratio of the table", r"^(\| measured .*1e-6.*\| +)[\d.]+x", r"\g<1>9.9x", "Ratio"),
    ("a bound rounded up", r"(\*\*bounded\*\*.*at least )67x", r"\g<1>68x", "67.14"),
    ("a bound of the table rounded up", r"^(\| bounded .*1e-6.*>= )67x", r"\g<1>68x", "Ratio"),
    ("a bound counted at the limit", r"(\*\*bounded\*\*.*at least )67x", r"\g<1>85x", "67.14"),
    ("a bound where a rival crashed", r"(\*\*unbounded\*\*.* with \S+ s)(; no)", r"\1, at least 6.6x faster\2", "none"),
    ("a winner's name", r"(\*\*measured\*\*.*specialised solver )pg", r"\1cg", "the winner is pg"),
    ("a winner's name in the table", r"^(\| level .*\| )pg   ", r"\1cg   ", "Winner"),
    ("a winner's kind", r"(\*\*lost\*\*.*the )generic( solver scs)", r"\1peer\2", "scs is a generic solver"),
    ("a rival's name", r"(\*\*measured\*\*.*faster than )scs", r"\1ecos", "the rival is scs"),
    ("seconds of a winner", r"(\*\*measured\*\*.*\()1.15( s against)", r"\g<1>1.05\2", "1.15"),
    ("seconds of a rival", r"(\*\*measured\*\*.*against )8.75", r"\g<1>9.75", "8.75"),
    ("an interval that is too narrow", r"(95 % interval )\S+ to [\d.]+x", r"\g<1>7.5x to 7.7x", "interval"),
    ("an interval of runs made once", r"(\*\*lost\*\*.*6.00 s)\)", r"\1; 95 % interval 2.0x to 4.0x)", "measured once"),
    ("an interval left out", r"; 95 % interval \S+ to [\d.]+x", "", "no interval is given"),
    ("a level solver that wins", r"(\*\*level\*\*.*solver pg is )about as fast as", r"\g<1>1.1x faster than", "level"),
    (
        "a walkover that is a win", r"(\*\*alone\*\*.*solver pg is )there in (\S+) s; no.*no win\.",
        r"\1fastest with \2 s; no generic solver gets there ().", "walkover",
    ),
    ("how many runs there are", r"\d+ runs: ", "99 runs: ", "runs"),
    ("a count of statuses", r"\d+ verified,", "20 verified,", "verified"),
    ("a count of wins", r"fastest on \d+ of 8", "fastest on 8 of 8", "specialised"),
    ("a count of problems", r"of 8 problems", "of 7 problems", "total"),
    ("a count of walkovers", r", which is no win, on 1", ", which is no win, on 2", "walkovers"),
    ("a count of intervals", r"\d+ with a 95 % interval", "23 with a 95 % interval", "interval"),
    ("a count of bounds", r"\d+ (is a bound|are bounds) ", "9 are bounds ", "bounds"),
    ("how a loser ended", r"(\*\*bounded\*\*.*)timeout after", r"\1memory after", "timeout"),
    ("the time that a loser had", r"after 47.0 to 59.9 s", "after 59.9 s", "47"),
    ("a loser left out", r"(\*\*bounded\*\*.*\()scs, ecos:", r"\1ecos:", "losers"),
    ("the limit of a finding", r"within the 60 s limit", "within the 90 s limit", "60"),
    ("a target that is none", r"(\*\*lost\*\*: To )1e-6", r"\g<1>1e-9", "target"),
    ("a finding left out", r"^- \*\*lost\*\*.*\n", "", "0 findings of the problem lost"),
    ("a sentence among the findings", r"^(\*\*Speed\.\*\* .*)$", r"\1 ADMM is behind the accelerated method on stumps.", "no rule derives"),
    ("a sentence of a finding", r"^(- \*\*lost\*\*.*)$", r"\1 It is 2 to 13 times faster on most.", "no rule derives"),
    ("a paragraph among the findings", r"^(- \*\*lost\*\*.*)$", r"\1\n\nProfiles are ahead on all instances.", "no rule derives"),
    ("a sentence of a problem", r"^(Together the runs prove.*)$", r"\1 It is the best of all.", "no rule derives"),
    ("a row left out", r"^\| lost .*1e-6.*\n", "", "not there"),
    ("a row more", r"^(\| lost .*1e-6.*\n)", r"\1\1", "no such row"),
    ("a bound of the optimum", r"(optimum lies between )0\.99999", r"\g<1>0.99998", "for 0.99998"),
    ("who proved it", r"(Together.*\(by )scs(\) and)", r"\1ecos\2", "proven by"),
    ("a gap of the summary", r"^(\| pg .*verified.*)5\.0e-07", r"\g<1>5.0e-09", "Relative gap"),
    ("seconds of the summary", r"^(\| scs .*verified 3/3.*)8\.40", r"\g<1>8.00", "s to"),
    ("a status of the summary", r"^(\| scs .*)timeout", r"\1verified", "Status"),
    ("a count of the statuses", r"^(\| ecos +\| \w+ +\| +)2( )", r"\g<1>3\2", "Tried"),
    ("a reason", r"ended above \\\| the target", "out of memory", "Reason"),
    ("a mean ratio", r"^(\| whole on.*\| +0 \| +)[\d.]+x", r"\g<1>99x", "Ratio"),
    ("what the map says", r"^(\*How many times faster.*)\*$", r"\1 It is faster everywhere.*", "not what the figure says"),
    ("a tolerance", r"^(\| measured +\| scs +\| +1e-3 \| +)3", r"\g<1>4", "Answers"),
    ("an objective", r"^(\| level .*\| +)2\.000000000", r"\g<1>1.999999999", "bjective"),
    ("the date", r"Run: \d{4}", "Run: 2019", "began on"),
    ("how often it was run", r"1 to 3 runs of a case", "every case once", "3 times"),
    ("a version", r"numpy 2\.0", "numpy 2.5", "numpy is 2.0"),
    ("the commit", r"commit 0123456789ab", "commit ba9876543210", "commit is"),
    ("the machine", r"quick one, 4 cores", "quick one, 64 cores", "4 cores"),
    ("the threads", r"Threads: 1", "Threads: 8", "1 threads"),
    ("the limits", r"60 s a solve", "90 s a solve", "limits are"),
    ("the environment", r"^(\| processor +\| )quick one", r"\1slow one ", "quick one"),
    ("when it was started", r"Started: \d{4}", "Started: 2019", "started"),
    ("a limitation", r"Nothing is claimed for other options", "This holds for other options", "not the words"),
    ("the suite", r"^description = .*$", 'description = "better"', "suite file"),
    ("a fact", r"radius = 1\.0", "radius = 2.0", "radius = 1.0"),
    ("what a solver said", r"says: a remark", "says: it is the best", "no solver of the rows said so"),
    ("who was skipped", r"do not fit: ecos", "do not fit: scs", "skipped are ecos"),
    ("a limit that did not end all", r"(\*\*bounded\*\*.*gets there)( \()", r"\1 within the 60 s limit\2", "no limit in common"),
    ("a limit left out", r" within the 60 s limit", "", "the limit was 60"),
    ("a cell more", r"^(\| lost .*1e-6.*)$", r"\1 9.9x |", "cells of this line"),
    ("words behind a row", r"^(\| lost .*1e-6.*)$", r"\1 by far", "cells of this line"),
    ("a column twice", r"^(\| Problem .*\| +)Against(?= )", r"\1Ratio  ", "cells of this line"),
    ("a cell less", r"^(\| level .*1e-6.*\|)[^|]*\|$", r"\1", "cells of this line"),
    ("a claim that nothing is proven", r"^(Together the runs prove.*)$", r"\1\n\nNo run has a proven point on this problem, so there is no "
     r"figure: the reasons are listed below.", "have proven points"),
    ("a claim that nobody gets there", r"^(## Across problems)$", r"\1\n\nNo solver proves a gap of 1e-6 on whole on synthetic, so there "
     r"are no profiles.", "pg proves it"),
    ("a claim that nobody was run", r"^(## Across problems)$", r"\1\n\nNo solver was run on every instance of whole on synthetic, so there "
     r"are no profiles.", "pg was run"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "new", "word"), [pytest.param(*change[1:], id=change[0]) for change in CHANGES])
def test_a_change_of_the_report_is_named(copy, pattern, new, word):
    line = edited(copy, pattern, new)
    faults = check_report(copy).faults
    assert faults
    assert any(word in fault.why for fault in faults), [str(fault) for fault in faults]
    assert all(str(fault).startswith(f"{copy / 'report.md'}:{fault.line}: ") for fault in faults)
    if "findings of" not in word and "not there" not in word:
        assert any(abs(fault.line - line) <= 2 for fault in faults), (line, [str(fault) for fault in faults])


#: What is left out of report.md, and a word of the fault.
OMISSIONS = [
    ("a limitation", r"^- Peak memory.*\n", "lines of 'Known limitations'"),
    ("a line of the definitions", r"^- \*\*Infeasibility.*\n", "lines of 'How to read this'"),
    ("the limitations", r"^- Times are of one machine(.|\n)*?(?=^## Environment)", "lines of 'Known limitations'"),
    ("how runs ended", r"^\*\*Success\.\*\*.*\n", "'Success'"),
    ("where failures are", r" Every one that is not verified.*$", "where failures are"),
    ("who is fastest", r"^\*\*Speed\.\*\*.*\n", "'Speed'"),
    ("how sure it is", r"^\*\*How sure\.\*\*.*\n", "'How sure'"),
    ("that no bounds contradict", r"No run's bounds contradict another's\. ", "no contradiction"),
    ("the winners", r"^\| Problem +\| +Target(.*\n)+", "column 'Winner'"),
    ("the statuses", r"^\| Solver +\| Kind +\| +Tried(.*\n)+?\n", "column 'Tried'"),
    ("the failures", r"^\|.*Reason +\|\n(\|.*\n)+", "column 'Reason'"),
    ("the objectives", r"^\|.*Best objective.*\n(\|.*\n)+", "column 'Best objective'"),
    ("the environment", r"(?<=## Environment\n)(.|\n)*?(?=^## Suite)", "table of environments"),
    ("the suite", r"^## Suite(.|\n)*", "the suite is not there"),
    ("the solvers on a problem", r"(?<=^## lost\n)(.|\n)*?(?=^Together)", "table of solvers on lost"),
    ("an enclosure", r"^Together the runs prove.*\n", "enclose 1 optima"),
    ("who was skipped", r"^Skipped, for they do not fit.*\n", "solvers were skipped on alone"),
    ("a fact", r"^- Parameters: .*\n", "the line 'Parameters'"),
    ("the limits", r"^- Limits: .*\n", "the line 'Limits' is not there"),
    ("the libraries", r"^- Libraries: .*\n", "the line 'Libraries' is not there"),
    ("a version", r", numpy 2\.0", "numpy is not named"),
    ("where runs come from", r"^- Machine: (.*\n)+", "where the runs come from"),
    ("a target that nobody gets to", r"(?<=\.) To 1e-6, no solver gets there.*(?=$)", "nothing is said of the target 1e-06"),
    ("a ratio of another target", r"(?<=; )[\d.]+x to 1e-2, (?=[\d.]+x to 1e-4)", "nothing is said of the target 0.01"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "word"), [pytest.param(*omission[1:], id=omission[0]) for omission in OMISSIONS])
def test_what_is_left_out_is_named(copy, pattern, word):
    edited(copy, pattern, "")
    whys = [fault.why for fault in check_report(copy).faults]
    assert any(word in why for why in whys), whys


def test_warnings_of_contradictions_may_not_be_left_out(tmp_path):
    given = [run for run in runs() if run["problem"] != "lost"]
    given += [run_of("lost", "pg", iterative(6.0)), run_of("lost", "scs", iterative(2.0, optimum=3.0))]
    copy = audited(tmp_path / "contradicted", given)
    before = [fault.why for fault in check_report(copy).faults]
    assert not any("no warning says here" in why for why in before)
    for count in (1, 2):
        edited(copy, r"^\*\*CONTRADICTION.*\n", "")
        whys = [fault.why for fault in check_report(copy).faults]
        assert sum("no warning says here that the bounds of lost" in why for why in whys) == count


def test_captions_stand_below_a_cover_and_after_the_names_of_the_other_figures(copy):
    write_report(copy, formats=("md", "cover"))
    assert (copy / "report.md").read_text().count("`: *") > 2
    assert [str(fault) for fault in check_report(copy).faults] == []
    line = edited(copy, r"^(`figures/.*\*\n)(?=\n)", r"\1\n*It is ahead everywhere.*\n")
    (fault,) = check_report(copy).faults
    assert 0 < fault.line - line <= 3


def test_captions_stand_below_figures_alone(copy):
    path = copy / "report.md"
    text = re.sub(r"^(?=\*[^*])(?!\*\d+ more rows)", "![a figure](figures/one.svg)\n\n", path.read_text(), flags=re.MULTILINE)
    assert text.count("![a figure]") > 2
    path.write_text(text)
    assert [str(fault) for fault in check_report(copy).faults] == []
    for place, words in (
        (r"^(Together the runs prove.*)$", r"\1\n\n*The accelerated method is ahead.*"),
        (r"^(\*.*\*\n)(?=\n)", r"\1\n*It is ahead everywhere.* ([SVG](figures/one.svg))\n"),
        (r"^(## Across problems)$", r"\1\n\n![a](figures/one.svg) It is ahead. ![b](figures/one.svg)"),
    ):
        path.write_text(text)
        line = edited(copy, place, words)
        (fault,) = check_report(copy).faults
        assert 0 < fault.line - line <= 3


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("UPDATE rung SET seconds = 30.0 WHERE seconds = 47.0", "42.86"),
        ("UPDATE rung SET seconds = 120.0 WHERE seconds = 47.0", "85.57"),
        (
            "UPDATE run SET status = 'memory' WHERE status = 'timeout' AND problem_label = 'bounded' AND solver_label = 'ecos'",
            "none for 67x",
        ),
        ("UPDATE sample SET seconds = 0.5 * seconds WHERE asked_tolerance = 1e-6", "the rows give"),
        ("UPDATE run SET status = 'inaccurate' WHERE problem_label = 'level'", "16 verified"),
        ("UPDATE run SET status = 'verified' WHERE status = 'crashed'", "verified"),
        ("UPDATE run SET limit_seconds = 30.0 WHERE problem_label = 'hard'", "limit was 30 s"),
        ("UPDATE run SET repetition = 0 WHERE repetition = 2", "up to 2 times"),
        ("UPDATE run SET listed = 0 WHERE solver_label = 'scs' AND problem_label = 'lost'", "walkover"),
        ("UPDATE run SET dual = 0.5 WHERE problem_label = 'measured'", "0.5"),
        ("UPDATE run SET dual = 1.5 WHERE problem_label = 'measured' AND solver_label = 'pg'", "contradict"),
        ("UPDATE environment SET started = '2020-01-01T00:00:00+00:00'", "2020-01-01"),
        ("UPDATE meta SET value = '99' WHERE key = 'cases'", "no row"),
    ],
)
def test_a_change_of_the_rows_is_named(copy, statement, word):
    with closing(sqlite3.connect(copy / "results.sqlite")) as connection, connection:
        if "cases" in statement:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('cases', '0')")
        assert connection.execute(statement).rowcount > 0
    whys = [fault.why for fault in check_report(copy).faults]
    assert any(word in why for why in whys), whys


def test_a_bound_is_of_the_least_time_that_a_rival_had(copy):
    """Less than that may be said: but then it is not what the report's own rule gives."""
    edited(copy, r"(\*\*bounded\*\*.*at least )67x", r"\g<1>60x")
    assert any("67.14" in fault.why for fault in check_report(copy).faults)


@pytest.mark.parametrize(
    ("seconds", "sign", "text"),
    [
        (6.329, ">=", "6.32"),
        (6.321, "<=", "6.33"),
        (4.47, ">=", "4.47"),
        (1249.9, ">=", "1249"),
        (0.069879, ">=", "0.0698"),
        (6.329, "", "6.33"),
    ],
)
def test_a_bound_in_seconds_is_rounded_so_that_it_holds(seconds, sign, text):
    assert format_seconds(seconds, sign) == text
    assert is_as_printed(text, seconds, "seconds", sign)
    assert not sign or not is_as_printed(format_seconds(seconds * (0.99 if sign == "<=" else 1.01)), seconds, "seconds", sign)


def test_runs_count_for_the_targets_that_they_were_run_to(tmp_path):
    """The fastest are run again, as far as the target that they are fastest to; `auto` is run for every target by itself."""
    given = [run for run in runs() if run["problem"] == "measured" and run["repetition"] == 0]
    theirs = given[1]
    for repetition, seconds in ((1, 2.0), (2, 2.2), (3, 2.4)):
        given.append(run_of("measured", "pg", iterative(seconds, steps=3), repetition=repetition, target=1e-4))
        given.append({**theirs, "repetition": repetition, "target": 1e-4})
    for target, seconds, steps in ((1e-2, 0.9, 2), (1e-4, 5.0, 3), (1e-6, 7.0, 4)):
        given.append(run_of("measured", "auto", iterative(seconds, steps=steps), target=target))
    folder = audited(tmp_path / "again", given)
    text = (folder / "report.md").read_text()
    assert [str(fault) for fault in check_report(folder).faults] == []
    assert "; 4.5x to 1e-4." in text, "measured by the later runs: 8 s against 0.8 x 2.2 s"
    edited(folder, r"(1e-6.*specialised solver pg is )8.0x", r"\g<1>3.6x")
    assert check_report(folder).faults


def test_nothing_of_how_reports_are_made_is_used_to_derive_them():
    """A fault there could hide itself. Fixed words of a report, which no row derives, are compared with those of the report."""
    for path in Path(check.__file__).parent.glob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            names |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
        inside = {
            name for name in names if name.startswith("bench_mtl") and not name.startswith(("bench_mtl.core", "bench_mtl.report.check"))
        }
        words = {"bench_mtl.report.text", "bench_mtl.report.contents", "bench_mtl.report.figures.speed_ups"}
        assert inside <= (words if path.name == "report.py" else set()), path.name
        assert path.name == "report.py" or not names & {"pandas", "numpy"}, path.name


def test_what_cannot_be_checked_is_refused(copy, tmp_path):
    with pytest.raises(InputError, match=r"has no report\.md"):
        check_report(tmp_path)
    (copy / "report.md").unlink()
    with pytest.raises(InputError, match=r"has no report\.md to check"):
        check_report(copy)
    write_report(copy, view=View(select=("problem=lost",)), formats=("md",))
    with pytest.raises(InputError, match="view of the results"):
        check_report(copy)
    (copy / "results.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(InputError, match="not a readable results file"):
        check_report(copy)
