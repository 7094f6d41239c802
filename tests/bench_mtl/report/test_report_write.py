"""Whole reports: their files, their words, and results that are hardly there."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hand_reports import audited, descent, ladder, run_of, runs, stored

from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.core.types import Place, Status
from bench_mtl.report import write_report
from bench_mtl.report.formats import ALL
from bench_mtl.report.registry import TABLES
from bench_mtl.report.words import RAISED, tracebacks
from bench_mtl.results import FILE_NAME, SCHEMA
from bench_mtl.results.loading import read_results

PG, SCS = descent("pg"), ladder("scs")
SKIPPED = {"solver": "ecos", "family": "conic", "status": "skipped", "reason": "no cone of <this> | kind"}
TIMEOUT = {"solver": "sub", "status": "timeout", "reason": "time limit", "samples": [(60.0, 0, 1.0, 1.0, 0.5, None)]}

pytestmark = pytest.mark.usefixtures("undrawn")

FIGURES = ("seconds-1e-2", "seconds-1e-4", "seconds-1e-6", "lasso", "other-one")

DOCS = Path(__file__).parents[3] / "docs" / "results.md"


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


CRASHED = {"solver": "pg", "problem": "nothing here", "status": "crashed", "reason": "signal 9"}
FULL = (PG, SCS, SKIPPED, TIMEOUT, {**SCS, "problem": "other one"}, CRASHED)


@pytest.fixture
def full(make_store):
    return make_store(*FULL)


@pytest.fixture(scope="module")
def reported(tmp_path_factory, leave_figures_out):
    """The full results with their report, to look at."""
    folder = stored(tmp_path_factory.mktemp("reported") / "results", FULL)
    with pytest.MonkeyPatch.context() as patch:
        leave_figures_out(patch)
        assert write_report(folder) == folder / "report.md"
    return folder


def test_the_files_of_a_report(reported):
    names = {path.as_posix() for path in contents(reported)} - {FILE_NAME}
    tables = [name for name, kind in TABLES.items() if not kind.is_occasional]
    expected = {"report.md", "report.html", "runs.csv", "samples.csv"}
    expected |= {f"tables/{name}.{form}" for name in tables for form in ("csv", "tex", "parquet")}
    expected |= {f"figures/{name}.{form}" for name in FIGURES for form in ("svg", "png", "pdf", "csv")}
    assert names == expected


def test_words_of_others_are_text_and_what_a_solver_says_is_told_once(make_store):
    says = [{**PG, "repetition": i, "info": {"note": "picked <this> for that"}} for i in range(2)]
    folder = make_store(*says, {**SCS, "info": {"backend_status": "optimal"}}, SKIPPED)
    report = write_report(folder, formats=["md"]).read_text()
    assert r"no cone of \<this> \| kind" in report
    assert "| processor | a \\| b |" in re.sub(" +", " ", report)
    assert report.rstrip().endswith("````"), "the suite's own text holds a fence of three"
    assert str(folder) not in report
    assert len(re.findall("pg says: picked .*this.* for that", report)) == 1
    assert "picked <this>" not in report, "no markup of its own"
    assert "scs says" not in report


def test_a_report_is_the_same_for_the_same_results(make_store, drawing):
    folder = make_store(PG, SCS, SKIPPED)
    write_report(folder)
    first = contents(folder)
    write_report(folder)
    assert contents(folder) == first
    begins, lacks = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}, {"png": b"Software", "svg": b"<dc:date>", "pdf": b"Date"}
    for form, start in begins.items():
        drawing = first[Path(f"figures/lasso.{form}")]
        assert (drawing.startswith(start), lacks[form] in drawing) == (True, False)
    assert b"/FontFile2" in drawing, "letters of a PDF are text"


def test_an_earlier_report_is_replaced_and_other_files_are_kept(full):
    own = [full / name for name in ("tables/mine.csv", "figures/mine.svg", "figures/mine.txt")]
    for path in own:
        path.parent.mkdir(exist_ok=True)
        path.write_text("kept")
    (full / "report.md").write_text("old")
    write_report(full, formats=["md", "csv", "svg"])
    assert [path.read_text() for path in own] == ["kept"] * 3
    assert "old" not in (full / "report.md").read_text()[:100]


def test_a_report_that_fails_and_a_disk_that_refuses_leave_the_earlier_report(full, monkeypatch):
    write_report(full, formats=["md", "csv"])
    before = contents(full)
    with monkeypatch.context() as patch:
        patch.setattr("bench_mtl.report.figures.style.files", lambda figure, formats: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_report(full, formats=["md", "svg"])
    assert contents(full) == before

    def refuse(path, mode="r", *, original=Path.open, **options):
        if path.name.startswith("samples") and "x" in mode:
            raise OSError(number, os.strerror(number))
        return original(path, mode, **options)

    monkeypatch.setattr(Path, "open", refuse)
    # Of a full disk the command says that it can be given again.
    for number, kind in ((errno.EROFS, InputError), (errno.ENOSPC, IncompleteError)):
        with pytest.raises(kind, match=f"report cannot be written to .*{os.strerror(number)}"):
            write_report(full, formats=["md", "csv"])
        assert contents(full) == before


def test_a_contradiction_is_shown_before_anything_else(make_store):
    liar = {"solver": "liar", "samples": [(0.1, 1, 1.0, 1.2, 1.1, None)]}
    report = write_report(make_store(PG, liar), formats=["md"]).read_text()
    assert report.startswith("# hand\n\n> **CONTRADICTION on lasso: the lower bound 1.100000000 of liar exceeds")
    assert "contradict another's" not in report


def test_the_import_is_light_and_pyplot_is_left_alone(make_store):
    folder = make_store(PG)
    code = [
        "import sys, pathlib, bench_mtl.report",
        "assert not {'pandas', 'matplotlib', 'tabulate'} & set(sys.modules)",
        f"bench_mtl.report.write_report(pathlib.Path({str(folder)!r}), formats=['md', 'svg'])",
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules",
    ]
    subprocess.run([sys.executable, "-c", "; ".join(code)], check=True)


def test_every_column_of_the_schema_is_explained():
    text = DOCS.read_text()
    for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n?\)(?: WITHOUT ROWID)?;", ";".join([*SCHEMA, ""]), flags=re.DOTALL):
        explained = text.split(f"## Table `{table}`")[1].split("\n## ")[0]
        columns = re.findall(r"(?:^|[,(])\s*([a-z_]+) (?:TEXT|INTEGER|REAL|BLOB)", f"({body}")
        assert columns
        for column in columns:
            if table != "meta":
                assert f"| `{column}` |" in explained, f"{table}.{column} is not explained"
            else:
                assert f"`{column}`" in explained
    for status in Status:
        assert f"| `{status}` | {status.sentence} |" in text


def test_a_table_too_long_to_read_is_cut_and_says_so(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_report(full, formats=["md", "csv"]).read_text()
    rows = len((full / "tables" / "objectives.csv").read_text().splitlines()) - 1
    assert "more rows" not in whole
    monkeypatch.setattr("bench_mtl.report.registry.MOST_ROWS", 2)
    assert f"*{rows - 2} more rows in the CSV file of this table, which" in write_report(full, formats=["md", "csv", "tex"]).read_text()
    assert f"The first 2 of {rows} rows." in (full / "tables" / "objectives.tex").read_text()
    assert len((full / "tables" / "objectives.csv").read_text().splitlines()) == rows + 1


def test_every_table_and_every_form_is_explained():
    text = DOCS.with_name("reports.md").read_text()
    explained = text.split("## What the tables are")[1].split("\n## ")[0]
    for name in TABLES:
        assert f"`{name}`" in explained, f"{name} is not explained"
    for form in ALL:
        assert f"`{form}`" in text


def test_the_example_of_a_figure_of_ones_own(reported, tmp_path, monkeypatch):
    from matplotlib import pyplot

    code = DOCS.with_name("reports.md").read_text().split("```py\n")[1].split("```")[0]
    (tmp_path / "results").mkdir(exist_ok=True)
    (tmp_path / "results" / "quick").symlink_to(reported)
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("agg")
    exec(compile(code, "reports.md", "exec"), {})
    pyplot.close("all")
    assert (tmp_path / "times.pdf").stat().st_size > 5000


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX (make system installs one)")
def test_every_table_compiles_with_booktabs_alone(make_store):
    odd = descent("pg_1 & {co} $x$ #2 ^~ 50% \\")
    three = [odd, {**TIMEOUT, "solver": "<sub>", "reason": "a very long reason, " * 20}, ladder("scs", (0.1,), status="timeout")]
    folder = make_store(*({**run, "problem": label, "seed": seed} for run in three for label in ("a_b", "c|d") for seed in (1, 2)))
    write_report(folder, formats=["tex"])
    names = sorted(path.stem for path in (folder / "tables").glob("*.tex"))
    assert {"winners", "summary", "not_verified"} <= set(names)
    head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    pages = "\n\\clearpage\n".join(f"\\input{{tables/{name}}}" for name in names)
    (folder / "all.tex").write_text(f"{head}{pages}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout[-2000:]
    assert "Undefined control sequence" not in ended.stdout


# Where runs raised: file and line in the list of failures, lines of code folded below it.

PLACES = (Place("solvers/mine.py", 31, "Mine.steps", "helped(point)"), Place("forms.py", 7, "helped", "raise ValueError('```')"))

#: Words that a terminal or Markdown would obey.
HOSTILE = Place("<script>alert(1)</script>.py", 1, "\x1b[2J", "</pre></details> `| x` \u202e " + "\n" * 3 + "```\n## Heading")


@pytest.fixture(scope="module")
def raised(tmp_path_factory):
    """The audited report with runs that raised: two alike, another one, and one that says nothing of where."""
    more = [
        run_of("measured", "mine", [], "error", reason="ValueError: no", places=PLACES),
        run_of("bounded", "mine", [], "error", reason="ValueError: no", places=PLACES),
        run_of("lost", "yours", [], "error", reason="KeyError: 'a|b'", places=(HOSTILE,)),
        run_of("level", "yours", [], "error", reason="the solver yielded no iterate"),
    ]
    return audited(tmp_path_factory.mktemp("raised") / "results", [*runs(), *more])


def test_failures_have_file_and_line_and_lines_of_code_follow(raised, monkeypatch):
    text = (raised / "report.md").read_text()
    section = text[text.index("## What failed and why") : text.index("## Speed-ups")]
    assert re.search(r"^\| measured .*\| error +\| ValueError: no +\| forms.py:7 +\|$", section, re.MULTILINE)
    assert re.search(r"^\| level .*\| the solver yielded no iterate +\| - +\|$", section, re.MULTILINE)
    block = text[text.index(f"### {RAISED}\n\n````text\nmine on ") : text.index("## How to read this")]
    assert block.rstrip().endswith("\n````")
    lines = ["ValueError: no", "solvers/mine.py:31, in Mine.steps", "  helped(point)", "forms.py:7, in helped", "  raise ValueError('```')"]
    assert "\n".join(["mine on measured and 1 more", *(f"  {line}" for line in lines)]) in block
    assert "\x1b" not in text
    assert "\u202e" not in text
    results = read_results(raised)
    assert tracebacks(results.runs, results.places).count("\n\n") == 1
    monkeypatch.setattr("bench_mtl.report.words.MOST_TRACEBACKS", 1)
    assert tracebacks(results.runs, results.places).endswith("\n\nand 1 other traceback")
