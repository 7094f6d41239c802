"""Words that somebody else wrote: whatever is in a results file, no output obeys it."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest

from bench_mtl import cli
from bench_mtl.cli.asked import say_places
from bench_mtl.cli.console import say, warn
from bench_mtl.cli.progress import outcome_line
from bench_mtl.core.text import csv_cell, one_line, visible
from bench_mtl.core.types import Certificate, Limits, Place, Record, Sample, Status, Times
from bench_mtl.engine.suite import Case, Instance, Suite
from bench_mtl.results import Outcome, Store

WORDS = (
    "\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "\x9d0;title\x9c", "bell\x07", "nul\x00inside", "\x08\x08\x7f", "a\rb\nc\x0bd\x0ce",
    "right\u202eleft\u2066", "zero\u200bwidth\ufeff\u00ad", "lines\u2028and\u2029paragraphs\x85", "tag\U000e0041", "\ud7ff\ue000",
    "<script>alert(1)</script>", "</script><!--", "<img src=x onerror=alert(1)>", "&lt;script&gt;", "[a](javascript:alert(1))",
    "```\n# head",
    "=cmd|' /C calc'!A0", "@SUM(1+1)", "+1+1", "-2+3", "\t=1+1", "\r=1+1", "  =1+1", "\uff1d1+1", "'=1+1",
    "$\\frac{", "\\input{/etc/passwd}%", "{{ 7*7 }}${7*7}", "%s%n{0}", "[red]markup[/red]:bomb:",
)  # fmt: skip

#: No output has these, but for the new line and the tab.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ue000-\uf8ff\ud800-\udfff\U000e0000-\U000e007f]"
)
LONG = "x" * 1_200_000


def word(place: int) -> str:
    return WORDS[place % len(WORDS)]


def fill(folder: Path) -> Path:
    """Results with these words wherever there is room for one; two labels, a reason and a note are of more than a million characters."""
    name, description = "<script>alert(1)</script>\x1b[2J", "\n\n".join(WORDS)
    suite = Suite(name, description, (1e-2, 1e-4), (), (), Limits(), 1, (0,), 1, "\n".join(WORDS))
    with Store.create(folder, suite) as store:
        environment = store.add_environment({text: text for text in WORDS} | {"packages": {text: text for text in WORDS}, "threads": 1})
        for i, text in enumerate((*WORDS, LONG)):
            problem = LONG if text is LONG else word(i // 20)
            options = {"number": i, word(i + 3): text if text is not LONG else ""}
            instance = Instance(word(i // 20), problem, {"name": word(i)}, {word(i): word(i + 1)}, None)
            case = Case(instance, text[:100], text, options, 1e-4, Limits(), 1, 0, version=word(i))
            gaps = [10.0**-k for k in range(1, 6)]
            samples = tuple(Sample(0.1 / gap, 1, 1.0, Certificate(1.0, 1.0 - gap, 0.0), measures=(("size", 1.0),)) for gap in gaps)
            status = (Status.VERIFIED, Status.CRASHED, Status.SKIPPED, Status.ERROR)[i % 4] if text is not LONG else Status.VERIFIED
            kept = () if status is Status.SKIPPED else samples
            places = tuple(Place(word(i + j), i, word(i + j + 1), word(i + j + 2)) for j in range(3))
            record = Record(status, f"{text} {word(i + 5)}", kept, Times(solve=0.5), info=(("note", text),), places=places)
            store.add(case, Outcome(record, {"n": 7, "d": 3, word(i): 2}, (text,), word(i), disturbances=(text,)), environment)
    return folder


def run(patch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    patch.setattr(sys, "argv", ["bench-mtl", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def require_harmless(text: str, where: str) -> None:
    found = HIDDEN.search(text)
    assert found is None, (where, found[0], text[max(0, found.start() - 60) : found.end() + 20])


def require_no_formulas(path: Path) -> None:
    csv.field_size_limit(2**27)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            for cell in row:
                assert not re.match(r"\s*[=@\uff1d]|\t|\s*[+-](?![\d.]+(e[+-]?\d+)?$|inf$|$)", cell), (path.name, cell[:80])


@pytest.mark.usefixtures("drawing")
def test_no_output_obeys_the_words_of_a_results_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = fill(tmp_path / "results")
    out = tmp_path / "report"
    monkeypatch.setattr("bench_mtl.cli.results.available_processors", lambda: 1)  # to start others takes longer than so few figures
    formats = [part for form in ("md", "html", "csv", "tex", "svg") for part in ("--format", form)]
    assert run(monkeypatch, "report", folder, "--out", out, *formats) in (0, 1)
    assert run(monkeypatch, "compare", folder, folder) in (0, 1)
    assert run(monkeypatch, "export", folder, "--format", "csv", "--out", tmp_path / "export") == 0
    assert run(monkeypatch, "report", tmp_path / "\x1b[2J\u202enowhere") == 2
    assert run(monkeypatch, "run", tmp_path / "\x1b[2J.toml") == 2
    assert run(monkeypatch, "solve", "\x1b[2J", "\x9b2J", "--data", "\x1b]0;") == 2
    assert run(monkeypatch, "\x1b[2J") == 2
    said = capfd.readouterr()
    require_harmless(said.out, "standard output")
    require_harmless(said.err, "standard error")
    assert len(said.out) + len(said.err) < 2**20
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".md", ".html", ".csv", ".tex", ".svg"}
    for path in files:
        text = path.read_text(encoding="utf-8")
        require_harmless(text, path.name)
        if path.suffix == ".csv":
            require_no_formulas(path)
        if path.suffix not in (".html", ".csv"):
            # In Markdown the sign before it makes a tag plain text; the suite's own file and lines of code are in code blocks.
            shown = text[: text.rfind("## Suite")] if path.suffix == ".md" else text
            shown = re.sub(r"(```+)text\n.*?\n\1\n", "", shown, flags=re.DOTALL)
            assert not re.search(r"(?<!\\)<(script|img)", shown), path.name
            assert path.suffix != ".md" or not re.search(r"(?<!\\)\]\(javascript", shown)
    page = (out / "report.html").read_text(encoding="utf-8")
    markup = re.sub(r"<script>.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    assert "<script>alert" not in markup
    assert "<img" not in markup
    for path in (tmp_path / "export").iterdir():
        require_harmless(path.read_text(encoding="utf-8"), path.name)
        require_no_formulas(path)


@pytest.mark.parametrize("text", [*WORDS, "lone\ud800surrogate\udcff"])
def test_a_line_says_what_it_cannot_show(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    say(text)
    warn(text)
    instance = Instance("family", text, {}, {}, None)
    record = Record(Status.ERROR, text, places=(Place(text, 1, text, text),))
    say(outcome_line(Case(instance, "solver", text, {}, 1e-4, Limits(), 1, 0), Outcome(record, {}, (), "")))
    said = capfd.readouterr()
    require_harmless(said.out + said.err, "terminal")
    assert len(said.err.splitlines()) == 1
    say_places(record.places)
    said = capfd.readouterr()
    require_harmless(said.err, "terminal")
    assert len(said.err.splitlines()) == 2
    assert "\n" not in one_line(text)
    assert json.dumps(text)  # it is a text after all


def test_what_can_be_seen_stays_as_it_is() -> None:
    seen = "plain, Größe, λ ≥ 0, 日本語, naïve café, 🙂, no\u00a0break,\ttab\nline \\x1b"
    assert visible(seen) == seen
    assert visible("\x1b\x9b\u202e\U000e0041\ud800") == "\\x1b\\x9b\\u202e\\U000e0041\\ud800"


@pytest.mark.parametrize(
    ("text", "cell"),
    [("=1", "'=1"), ("-1", "-1"), ("+2.5e-3", "+2.5e-3"), ("-x", "'-x"), ("'", "''"), ("a=1", "a=1"), ("-", "-")],
)
def test_cells_of_csv_are_no_formulas_and_numbers_stay_numbers(text: str, cell: str) -> None:
    assert csv_cell(text) == cell
