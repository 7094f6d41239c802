"""Where the files of a site lie. Their names are made of words that anybody may have written."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container
from itertools import chain, count

from bench_mtl.report.columns import escaped

INDEX, BOARDS = "index.html", "leaders.html"


def slug(words: str, taken: Container[str] = ()) -> str:
    """Return words as the name of a file: small letters, digits, ``_`` and ``-``; with a number behind it where that name is taken."""
    plain = unicodedata.normalize("NFKD", words[:600]).encode("ascii", "ignore").decode().lower()
    return numbered(re.sub(r"[^a-z0-9_]+", "-", plain)[:60].strip("-") or "unnamed", taken)


def numbered(name: str, taken: Container[str]) -> str:
    """Return a name, with a number from 2 on behind it where it is taken."""
    return next(free for free in chain([name], (f"{name}-{number}" for number in count(2))) if free not in taken)


def instance_name(key: str) -> str:
    """Return the key of an instance as the name of a file: itself where bench-mtl made it, else a hash of it."""
    return key if re.fullmatch(r"[0-9a-f]{16}", key) else hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def suite_path(suite: str) -> str:
    """Return the path of the page of results, by their `slug`."""
    return f"suites/{suite}.html"


def instance_path(suite: str, key: str) -> str:
    return f"suites/{suite}/{instance_name(key)}.html"


def address(path: str, place: str) -> str:
    """Return a path of the site as it is written on the page at `place`."""
    return "../" * place.count("/") + path


def linked(words: str, path: str, place: str) -> str:
    """Return a link in Markdown from the page at `place` to a path of the site."""
    return f"[{escaped(words)}]({address(path, place)})"


def links(place: str, *others: tuple[str, str]) -> list[dict[str, str]]:
    """Return the links on top of the page at `place`: to the index, the leader boards, and others, each as words and path."""
    pairs = (("All suites", INDEX), ("Leader boards", BOARDS), *others)
    return [{"words": words, "address": address(path, place)} for words, path in pairs if path != place]
