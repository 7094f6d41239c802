"""Figures of matplotlib as part of a page: a policy without inline styles lets them look as they do in their files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bench_mtl.report.figures.style import TAG
from bench_mtl.report.render.shell import raw

if TYPE_CHECKING:
    from markupsafe import Markup

_LEFT_OUT = re.compile(
    r"^.*?(?=<svg\b)|<metadata>.*?</metadata>\s*|<defs>\s*<style\b.*?</style>\s*</defs>\s*|<style\b.*?</style>\s*|<!--.*?-->\s*", re.DOTALL
)
_STYLE = re.compile(r' style="([^"]*)"')
_EMPTY = re.compile(r"\s*<defs>\s*</defs>|\s*<defs/>")
_ID, _REFERENCE = re.compile(r'(?<= )id="([^"]+)"'), re.compile(r'(?<=url\(#)|(?<=href="#)')

#: What the style sheet of every figure says, as attributes of its root, which all elements take over.
_INHERITED = 'stroke-linejoin="round" stroke-linecap="butt"'


def inline_figure(drawing: bytes, title: str, name: str) -> Markup:
    """Return an SVG drawing of `bench_mtl.report.figures.style.files` as an element of a page, called `title` by who cannot see it.

    Its style attributes become attributes of their own, and its ids begin with `name`, which no other figure of the page has.
    """
    from markupsafe import escape

    def own(tag: str) -> str:
        return _REFERENCE.sub(f"{name}-", _ID.sub(rf'id="{name}-\1"', _STYLE.sub(lambda style: _attributes(style[1]), tag)))

    text = TAG.sub(lambda tag: own(tag[0]), _EMPTY.sub("", _LEFT_OUT.sub("", drawing.decode())))
    return raw(text.replace("<svg ", f'<svg {_INHERITED} role="img" aria-label="{escape(title)}" ', 1).strip())


def _attributes(style: str) -> str:
    pairs = dict(part.split(":", 1) for part in style.split(";") if ":" in part)
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs.items())
