"""What may stand in the page as it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup


def raw(words: str) -> Markup:
    """Text that is not escaped: of this project, or escaped by what made it."""
    from markupsafe import Markup

    return Markup(words)


def json_script(content: object) -> Markup:
    """JSON for a script element: nothing in it ends the element or a line."""
    words = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return raw(words.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026"))


def rounded(value: float) -> float | int:
    """Return the value with four significant digits, and no decimal point where nothing stands behind it."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() and abs(short) < 1e6 else short
