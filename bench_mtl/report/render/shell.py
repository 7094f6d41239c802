"""What all pages are made with: templates, words in Markdown, and a policy that lets no request out and no script in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

#: The package whose files all pages are made with.
_HOME = "bench_mtl.report.render"

#: Of every page.
SHEET = "page.css"
SCRIPT = ("page.js",)


def raw(words: str) -> Markup:
    """Text that is not escaped: of this project, or escaped by what made it."""
    from markupsafe import Markup

    return Markup(words)


class Markdown:
    """Markdown to HTML in which nothing of the text is markup of its own and nothing is fetched."""

    def __init__(self) -> None:
        from markdown_it import MarkdownIt

        self._parser: MarkdownIt = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
        rules: dict[str, Any] = self._parser.renderer.rules  # type: ignore[attr-defined]
        rules["table_open"] = lambda *_: '<div class="scroll"><table>\n'
        rules["table_close"] = lambda *_: "</table></div>\n"

    def __call__(self, words: str) -> Markup:
        return raw(self._parser.render(words).replace("<pre>", '<pre tabindex="0">'))


def rendered(
    template: str,
    parts: Mapping[str, Any],
    scripts: Sequence[str] = SCRIPT,
    *,
    sheets: Sequence[str] = (SHEET,),
    pictures: bool = False,
    home: str = _HOME,
) -> bytes:
    """Return a page: the same parts give the same bytes.

    Everything is in the file, and its content security policy lets nothing run but the scripts that were put there, and no request out.

    Parameters
    ----------
    template : name of a file
    parts : what it shows
    scripts, sheets : names of files
    pictures : whether figures on the page hold pictures, which are in the file, too
    home : the package that has these files; what is not in it is looked for in this one
    """
    texts, sheet = [asset(name, home) for name in scripts], "".join(asset(name, home) for name in sheets)
    frame = {"policy": _policy(texts, sheet, pictures=pictures), "sheet": raw(sheet), "scripts": list(map(raw, texts))}
    text: str = _templates(home).get_template(template).render({**frame, **parts})
    return text.encode()


def _policy(scripts: Sequence[str], sheet: str, *, pictures: bool) -> str:
    """Return the content security policy: these scripts and this style sheet, by their hashes, and nothing else."""
    hashed = " ".join(map(_hash, scripts)) or "'none'"
    images = " img-src data:;" if pictures else ""
    return f"default-src 'none'; script-src {hashed}; style-src {_hash(sheet)};{images} base-uri 'none'; form-action 'none'"


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def asset(name: str, home: str = _HOME) -> str:
    """Return a file of the package `home`, or of this one where that has none of the name."""
    own = resources.files(home).joinpath(name)
    return (own if own.is_file() else resources.files(_HOME).joinpath(name)).read_text(encoding="utf-8")


def _templates(home: str) -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = FunctionLoader(partial(asset, home=home))
    return Environment(
        loader=made, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
