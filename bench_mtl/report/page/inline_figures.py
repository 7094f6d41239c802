"""Figures of matplotlib as part of a page: a policy without inline styles lets them look as they do in their files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bench_mtl.report.page.markup import raw

if TYPE_CHECKING:
    from markupsafe import Markup

_BEFORE = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_SHEET = re.compile(r"<defs>\s*<style\b.*?</style>\s*</defs>\s*|<style\b.*?</style>\s*", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_STYLE = re.compile(r' style="([^"]*)"')
_ID, _REFERENCE = re.compile(r'(?<= )id="([^"]+)"'), re.compile(r'(?<=url\(#)|(?<=href="#)')

#: What the style sheet of every figure says, as attributes of its root, which all elements take over.
_INHERITED = 'stroke-linejoin="round" stroke-linecap="butt"'


def inline_figure(drawing: bytes, title: str, name: str) -> Markup:
    """Return an SVG drawing of `bench_mtl.report.figures.style.files` as an element of a page.

    Its style attributes become attributes of their own, and its ids begin with `name`, since other figures have the same.

    Parameters
    ----------
    drawing : the file
    title : what it is called by who cannot see it
    name : no two figures of a page share one
    """
    from markupsafe import escape

    text = drawing.decode()
    for left_out in (_BEFORE, _METADATA, _SHEET, _COMMENT):
        text = left_out.sub("", text)
    text = _STYLE.sub(lambda style: _attributes(style[1]), text)
    text = _REFERENCE.sub(f"{name}-", _ID.sub(rf'id="{name}-\1"', text))
    return raw(text.replace("<svg ", f'<svg {_INHERITED} role="img" aria-label="{escape(title)}" ', 1).strip())


def holds_pictures(drawing: bytes) -> bool:
    """Return whether a drawing holds a picture of pixels, which a page has to allow."""
    return b"<image " in drawing


def _attributes(style: str) -> str:
    pairs = dict(part.split(":", 1) for part in style.split(";") if ":" in part)
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs.items())
