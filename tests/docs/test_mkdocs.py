"""What the site adds to MkDocs: links that hold in both places, formulas, docstrings, and the check of what was built."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "docs" / "_mkdocs"


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"site_{name}", TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hooks, docstrings, check = tool("hooks"), tool("docstrings"), tool("check")
gallery = sys.modules["gallery"]  # which processes of its own can import


def linked(markdown: str, source: str, place: str) -> str:
    on_site = {"index.md", "changelog.md", "published-reports.md", "concepts.md", "adr/README.md", "reports/quick/report.md"}
    files: Any = SimpleNamespace(get_file_from_path=lambda path: path if path in on_site else None)
    return str(hooks.with_links(markdown, source, place, files))


@pytest.mark.parametrize(
    ("markdown", "source", "place", "expected"),
    [
        ("[a](docs/concepts.md#cases)", "README.md", "index.md", "[a](concepts.md#cases)"),
        ("[a](../../README.md)", "docs/adr/README.md", "adr/README.md", "[a](../index.md)"),
        ("[a](../reports/quick/report.md)", "docs/concepts.md", "concepts.md", "[a](reports/quick/report.md)"),
        ("[a](quick/report.md)", "reports/README.md", "published-reports.md", "[a](reports/quick/report.md)"),
        ("[a](../README.md#x)", "reports/quick/report.md", "reports/quick/report.md", "[a](../../published-reports.md#x)"),
        ("see [the licence](LICENSE).", "README.md", "index.md", "see the licence."),
        ("[a](nowhere.md)", "README.md", "index.md", "[a](nowhere.md)"),
        ("[a](https://example.org/b) [c](#d)", "README.md", "index.md", "[a](https://example.org/b) [c](#d)"),
        ("```\n[a](docs/concepts.md)\n```", "README.md", "index.md", "```\n[a](docs/concepts.md)\n```"),
        ("[`a`](docs/concepts.md) and [b [c]](docs/concepts.md)", "README.md", "index.md", "[`a`](concepts.md) and [b [c]](concepts.md)"),
    ],
)
def test_links_hold_on_the_site(markdown: str, source: str, place: str, expected: str) -> None:
    assert linked(markdown, source, place) == expected


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("c <r, y> - <a, K W>", r"c \<r, y> - \<a, K W>"),
        ("<!-- a --> <br> <img src='a.svg'> <https://example.org>", "<!-- a --> <br> <img src='a.svg'> <https://example.org>"),
        ("||W||_F and ||W||_*, a_b", r"||W||\_F and ||W||\_\*, a_b"),
        ("`<r, y>` and ``||W||_* ` `` <r, y>", r"`<r, y>` and ``||W||_* ` `` \<r, y>"),
        ("a:\n\n    <r, y> + ||W||_*\n\nb", "a:\n\n    <r, y> + ||W||_*\n\nb"),
        ("```\n<r, y>\n```\n<r, y>", "```\n<r, y>\n```\n\\<r, y>"),
    ],
)
def test_formulas_are_no_markup(markdown: str, expected: str) -> None:
    assert hooks.without_false_markup(markdown) == expected


def test_every_page_from_outside_is_there() -> None:
    places = dict(hooks.outside())
    assert places["README.md"] == "index.md"
    assert "reports/quick/report.md" in places
    assert all((hooks.ROOT / source).is_file() for source in places)


def test_reports_of_papers_are_drawn_again_where_rows_or_code_are_younger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures, drawn, site = tool("paper_figures"), [], tmp_path / "results"
    code, rows, suite = (tmp_path / name for name in ("bench_mtl/code.py", "reports/toy/cells.sqlite", "reports/quick/results.sqlite"))
    for file in (code, rows, suite):
        file.parent.mkdir(parents=True)
        file.write_text("rows")
        os.utime(file, (1000, 1000))

    def draw(folders: list[Path]) -> None:
        for folder in folders:
            drawn_one(folder)

    def drawn_one(folder: Path) -> None:
        assert (folder / "cells.sqlite").read_text() == "rows"
        (folder / "figures").mkdir()
        for file in ("report.md", "figures/curve.svg"):
            (folder / file).write_text("")
        drawn.append(folder.name)

    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "DRAWN", site)
    monkeypatch.setattr(figures, "draw", draw)
    places = {f"reports/toy/{file}": site / "toy" / file for file in ("report.md", "figures/curve.svg")}
    for times, younger in enumerate((None, rows, code), start=1):
        if younger is not None:
            os.utime(site / "toy" / "report.md", (1500, 1500))
            os.utime(younger, (2000, 2000))
        assert [figures.drawn_reports(), figures.drawn_reports()] == [places, places]
        assert drawn == ["toy"] * times
        for file in (rows, code):
            os.utime(file, (1000, 1000))


def test_the_gallery_stands_below_its_entry() -> None:
    nav = [{"Start": ["index.md", {"Gallery": hooks.GALLERY}]}, {"About": "changelog.md"}]
    examples = [f"gallery/{program.stem}.md" for program in hooks.PROGRAMS]
    assert hooks.with_examples(nav) == [{"Start": ["index.md", {"Gallery": [hooks.GALLERY, *examples]}]}, {"About": "changelog.md"}]


PROGRAM = '''"""
# A line

It rises.
"""

# %%
# Two numbers.

a, b = 1, 2
print(a < b)

# %%
# A line between them, ||b||_2.

from matplotlib import pyplot

pyplot.plot([a, b])
'''

PAGE = """# A line

It rises.

[plot_line.py](plot_line.py) is the program as it stands.

Two numbers.

```python
a, b = 1, 2
print(a < b)
```

```text
True
```

A line between them, ||b||_2.

```python
from matplotlib import pyplot

pyplot.plot([a, b])
```

![A line](plot_line-1.svg)
"""


def test_an_example_shows_what_it_says_does_prints_and_draws(tmp_path: Path) -> None:
    (tmp_path / "plot_line.py").write_text(PROGRAM)
    example = gallery.run_example(tmp_path / "plot_line.py")
    assert (example.name, example.title, example.page) == ("plot_line", "A line", PAGE)
    assert list(example.figures) == ["plot_line-1.svg"]
    assert "<svg" in example.figures["plot_line-1.svg"]
    assert "[![A line](plot_line-1.svg)<br>A line](plot_line.md)" in gallery.overview("# Gallery", [example])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("print(a", "print(c"), r"plot_line.py does not run: NameError: name 'c' is not defined"),
        (("pyplot.plot([a, b])", "pyplot.figure()"), r"plot_line.py does not run: ValueError: a figure shows nothing"),
        (("pyplot.plot([a, b])", "pass"), r"plot_line.py draws nothing"),
    ],
)
def test_an_example_that_does_not_run_is_named(tmp_path: Path, change: tuple[str, str], fault: str) -> None:
    (tmp_path / "plot_line.py").write_text(PROGRAM.replace(*change))
    with pytest.raises(RuntimeError, match=fault):
        gallery.run_example(tmp_path / "plot_line.py")


def test_an_example_runs_again_when_it_or_the_code_has_changed(tmp_path: Path) -> None:
    programs, cache, code = [tmp_path / f"plot_{name}.py" for name in ("a", "b")], tmp_path / "cache", tmp_path / "code.py"
    code.write_text("a = 1")
    counting = "with open(__file__ + '.txt', 'a') as file:\n    print('ran', file=file)"
    for program in programs:
        program.write_text(PROGRAM.replace("print(a < b)", counting))

    def runs() -> list[int]:
        examples = gallery.run_examples(programs, cache, [code])
        assert [example.name for example in examples] == ["plot_a", "plot_b"]
        assert len(list(cache.iterdir())) == 2
        return [len(program.with_name(f"{program.name}.txt").read_text().splitlines()) for program in programs]

    assert runs() == runs() == [1, 1]
    programs[0].write_text(programs[0].read_text() + "\n# changed")
    assert runs() == [2, 1]
    code.write_text("a = 2")
    assert runs() == [3, 2]
    programs[1].write_text(PROGRAM.replace("a, b =", "import warnings; warnings.warn('soon'); a, b ="))
    with pytest.raises(RuntimeError, match=r"plot_b.py does not run: UserWarning: soon"):
        runs()


HOUSE = """argmin_B ||B - A||_*, of ::

    ||B||_* <= radius

by `a_b`.

======= ====
``one`` first
        more
======= ====

Parameters
----------
first, second : at least 0,
    and finite
name : str, optional
    Of a task.
kind : {"a", "b"}

Returns
-------
w : of the shape of A

Raises
------
InputError : NaN, or [0, 1).

Source: Moreau_1962.
"""

NUMPY = r"""argmin\_B ||B - A||\_\*, of

    ||B||_* <= radius

by `a_b`.

- ``one``: first
  more

Parameters
----------
first
    at least 0,
    and finite
second
    at least 0,
    and finite
name : str, optional
    Of a task.
kind : {"a", "b"}

Returns
-------
w :
    of the shape of A

Raises
------
InputError
    NaN, or \[0, 1).

Notes
-----
Source: Moreau\_1962."""


def test_docstrings_become_those_that_griffe_reads() -> None:
    assert docstrings.numpydoc(HOUSE) == NUMPY


def site(folder: Path, body: str, css: str = "") -> list[str]:
    (folder / "index.html").write_text(f'<html><head><link rel="canonical" href="https://example.org/"></head><body>{body}</body></html>')
    (folder / "other.html").write_text('<h1 id="here">Here</h1>')
    (folder / "site.css").write_text(css)
    return list(check.faults(folder))


@pytest.mark.parametrize(
    "body",
    [
        '<a href="https://example.org/">a</a> <code>[a](b.md)</code>',
        '<a href="other.html#here">a</a> <a href="other.html">b</a> <a href="#c" id="c">c</a>',
        '<script src="site.css"></script> <img src="data:image/png;base64,AAAA">',
    ],
)
def test_a_site_that_needs_no_network_has_no_fault(body: str, tmp_path: Path) -> None:
    assert site(tmp_path, body, "a { background: url(site.css) }") == []


@pytest.mark.parametrize(
    ("body", "css", "fault"),
    [
        ('<script src="https://example.org/a.js"></script>', "", "index.html: fetches https://example.org/a.js, which is on the network"),
        ('<img src="//example.org/a.png">', "", "index.html: fetches //example.org/a.png, which is on the network"),
        ('<img srcset="a.png 2x">', "", "index.html: fetches a.png, which is no file of the site"),
        ('<a href="gone.html">a</a>', "", "index.html: links to gone.html, which is no file of the site"),
        ('<a href="other.html#gone">a</a>', "", "index.html: links to other.html#gone, and there is no such place on that page"),
        ("<p>[a](b.md)</p>", "", "index.html: shows ](b.md) as it is written"),
        ("", "@import 'https://example.org/a.css'", "site.css: fetches https://example.org/a.css, which is on the network"),
    ],
)
def test_what_is_wrong_with_a_site_is_named(body: str, css: str, fault: str, tmp_path: Path) -> None:
    assert site(tmp_path, body, css) == [fault]


def test_an_empty_site_is_a_fault(tmp_path: Path) -> None:
    assert list(check.faults(tmp_path)) == [f"{tmp_path} has no page"]
