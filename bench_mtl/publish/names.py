"""Names of the files of a site, made of words that anybody may have written."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container

#: Characters of a name.
_LONGEST = 60

_UNSAFE = re.compile(r"[^a-z0-9_]+")
_KEY = re.compile(r"[0-9a-f]{16}")

#: All names that `slug` and `key_name` make.
NAME = r"[a-z0-9_-]{1,80}"


def slug(words: str, taken: Container[str] = ()) -> str:
    """Return words as the name of a file: small letters, digits, ``_`` and ``-``; with a number behind it where that name is taken."""
    plain = unicodedata.normalize("NFKD", words[: 10 * _LONGEST]).encode("ascii", "ignore").decode().lower()
    name = _UNSAFE.sub("-", plain)[:_LONGEST].strip("-") or "unnamed"
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


def key_name(key: str) -> str:
    """Return the key of an instance as the name of a file: itself where it is one that bench-mtl made, else a hash of it."""
    return key if _KEY.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:16]
