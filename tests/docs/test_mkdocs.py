"""What the site adds to MkDocs: links that hold in both places, formulas, docstrings, and the check of what was built."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "docs" / "_mkdocs"


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"site_{name}", TOOLS / f"{name}.py")
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


def test_a_block_of_latex_is_mathml() -> None:
    pytest.importorskip("latex2mathml", reason="make setup installs it")
    assert re.fullmatch(r'<div class="math"><math .*<mi>F</mi>.*</math></div>', hooks.as_mathml(r"\min_W F(W)", "math", "math"))


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


def test_an_example_shows_what_it_says_does_prints_and_draws(tmp_path: Path) -> None:
    (tmp_path / "plot_line.py").write_text(PROGRAM)
    example = gallery.run_example(tmp_path / "plot_line.py")
    assert (example.name, example.title) == ("plot_line", "A line")
    assert example.page.startswith("# A line\n\nIt rises.\n\n[plot_line.py](plot_line.py) is the program as it stands.\n\nTwo numbers.\n\n")
    assert "```python\na, b = 1, 2\nprint(a < b)\n```\n\n```text\nTrue\n```\n\nA line between them, ||b||_2.\n\n" in example.page
    assert example.page.endswith("pyplot.plot([a, b])\n```\n\n![A line](plot_line-1.svg)\n")
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
    program, cache, code = tmp_path / "plot_a.py", tmp_path / "cache", tmp_path / "code.py"
    code.write_text("a = 1")
    program.write_text(PROGRAM.replace("print(a < b)", "with open(__file__ + '.txt', 'a') as file:\n    print('ran', file=file)"))

    def runs() -> int:
        (example,) = gallery.run_examples([program], cache, [code])
        assert (example.name, len(list(cache.iterdir()))) == ("plot_a", 1)
        return len(program.with_name("plot_a.py.txt").read_text().splitlines())

    assert runs() == runs() == 1
    program.write_text(program.read_text() + "\n# changed")
    assert runs() == 2
    code.write_text("a = 2")
    assert runs() == 3
    program.write_text(PROGRAM.replace("a, b =", "import warnings; warnings.warn('soon'); a, b ="))
    with pytest.raises(RuntimeError, match=r"plot_a.py does not run: UserWarning: soon"):
        runs()


HOUSE = """argmin_B ||B - A||_*, of ::

    ||B||_* <= radius

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
