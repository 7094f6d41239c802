"""How estimators print."""

from __future__ import annotations

import textwrap

#: Characters of a line.
_WIDTH = 100


def two_lines(text: str) -> str:
    """Return a text in two lines at most, broken between words; what does not fit is left out."""
    lines = textwrap.wrap(
        text, _WIDTH, subsequent_indent="    ", max_lines=2, placeholder=" ...)", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)
