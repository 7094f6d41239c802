"""What all pages are made with: a template, words in Markdown, and a policy that lets no request out and no script in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markupsafe import Markup


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


def rendered(content: Mapping[str, Any], *, pictures: bool) -> bytes:
    """Return a page, all of it in one file; `pictures` says whether its figures hold pictures. The same content gives the same bytes.

    Its content security policy lets nothing run but the script and the style sheet of pages, by their hashes, and no request out.
    """
    from jinja2 import Environment, StrictUndefined

    folder = resources.files("bench_mtl.report.render")
    template, sheet, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("article.html", "page.css", "page.js"))
    images = " img-src data:;" if pictures else ""
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(sheet)};{images} base-uri 'none'; form-action 'none'"
    jinja = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    text = jinja.from_string(template).render({**content, "policy": policy, "sheet": raw(sheet), "script": raw(script)})
    return text.encode()


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
