"""Digests of what is stored, so that nothing that was damaged since is read as another result.

Rows that belong together, such as the samples of a run, have one digest: 16 bytes of BLAKE2b over what is read of them. Table `digest`
holds them, and their sum, by which it is noticed where rows are gone with their digests. `docs/results.md` says how they are computed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE = """CREATE TABLE digest (
    part TEXT NOT NULL,
    id INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (part, id)
) WITHOUT ROWID"""

_BYTES = 16

#: The part that holds the sum of all others.
_TOTAL = ("total", 0)


@dataclass(frozen=True)
class Part:
    """Rows of one table, and which of them have a digest together."""

    table: str
    key: str
    """SQL of the number that they share."""
    order: str = ""
    """SQL of what puts them in order."""
    in_words: bool = False
    """Whether all columns are numbers and names, of so many rows that they are read as one array."""

    @property
    def ordered(self) -> str:
        return f"ORDER BY {', '.join(filter(None, (self.key, self.order)))}"


#: Parts that every store has.
META, ENVIRONMENT = Part("meta", "0 + 0", "key"), Part("environment", "id")


@dataclass(frozen=True)
class Damage:
    """Rows that are not what was written, that were never written, or that are gone."""

    table: str
    id: int
    """What they share, the key of `Part`; 0 of what concerns the whole file."""
    wrong: str = ""
    """What no run can have written, such as "status is 'odd'"; empty where only the digest tells."""


def digests(connection: sqlite3.Connection, part: Part, only: int | None = None) -> dict[int, bytes]:
    """Return the digests of the rows of a part, or of those of one key, computed from what can be read."""
    if part.in_words:
        return digests_of_words(part, words(connection, part, only))
    where = "" if only is None else f"WHERE {part.key} = {int(only)}"
    # An index may be damaged as well: it shall not choose the rows.
    rows = connection.execute(f"SELECT {part.key}, * FROM {part.table} NOT INDEXED {where} {part.ordered}")
    return {key: _digest(part, [row[1:] for row in group]) for key, group in groupby(rows, itemgetter(0))}


def _digest(part: Part, rows: Sequence[Sequence[Any]]) -> bytes:
    text = json.dumps([part.table, *rows], separators=(",", ":"), default=_blob)
    return hashlib.blake2b(text.encode("ascii"), digest_size=_BYTES).digest()


def _blob(value: Any) -> dict[str, str]:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} is no value of SQLite")
    return {"blake2b": hashlib.blake2b(value, digest_size=_BYTES).hexdigest()}


def words(connection: sqlite3.Connection, part: Part, only: int | None = None, names: dict[str, int] | None = None) -> NDArray[Any]:
    """Return rows as an array with a field of 64 bits a column: numbers as they are, null as NaN, a name as its `word`.

    Parameters
    ----------
    names : takes the names with their words
    """
    import numpy as np

    kinds = {name: kind for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({part.table})")}
    nulls = {name: not needed for _, name, _, needed, *_ in connection.execute(f"PRAGMA table_info({part.table})")}
    # NumPy reads "nan", but not None.
    columns = ", ".join(f"ifnull({name}, 'nan')" if nulls[name] else name for name in kinds)
    where = "" if only is None else f"WHERE {part.key} = {int(only)}"
    rows: Iterable[tuple[Any, ...]] = connection.execute(f"SELECT {columns} FROM {part.table} {where} {part.ordered}")
    if "TEXT" in kinds.values():
        rows = _with_words(rows, list(kinds).index(next(name for name, kind in kinds.items() if kind == "TEXT")), names)
    # Straight into an array: a million rows of Python objects would take ten times its memory.
    return np.fromiter(rows, np.dtype([(name, "<f8" if kind == "REAL" else "<i8") for name, kind in kinds.items()]))


def _with_words(rows: Iterable[tuple[Any, ...]], place: int, names: dict[str, int] | None) -> Iterator[tuple[Any, ...]]:
    known: dict[str, int] = {} if names is None else names
    for row in rows:
        name = row[place]
        if name not in known:
            known[name] = word(name)
        yield (*row[:place], known[name], *row[place + 1 :])


def word(name: str) -> int:
    """Return 64 bits of BLAKE2b over a name, as a signed whole number."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is no name")
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little", signed=True)


def digests_of_words(part: Part, table: NDArray[Any]) -> dict[int, bytes]:
    """Return the digests of the rows that `words` has read."""
    import numpy as np

    keys = table[part.key]
    starts = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(table)]
    prefix = part.table.encode()
    return {
        int(keys[start]): hashlib.blake2b(prefix + table[start:end].tobytes(), digest_size=_BYTES).digest()
        for start, end in pairwise(starts)
        if start < end
    }


def stored(connection: sqlite3.Connection) -> dict[tuple[str, int], bytes]:
    """Return all digests that the file holds, their sum included."""
    rows = connection.execute("SELECT part, id, digest FROM digest")
    return {(table, _whole(key)): digest if isinstance(digest, bytes) else b"" for table, key, digest in rows}


def put(connection: sqlite3.Connection, part: Part, keys: Iterable[int]) -> None:
    """Store the digests of the rows of these keys as they are now, in the transaction that is open."""
    for key in keys:
        _replace(connection, part.table, key, digests(connection, part, key).get(key))


def _replace(connection: sqlite3.Connection, table: str, key: int, digest: bytes | None) -> None:
    held = connection.execute("SELECT digest FROM digest WHERE part = ? AND id = ?", (table, key)).fetchone()
    if digest is None and held is None:  # most runs have no rows of some parts
        return
    change = (_number(digest) if digest is not None else 0) - (_number(held[0]) if held else 0)
    if digest is not None:
        connection.execute("INSERT OR REPLACE INTO digest VALUES (?, ?, ?)", (table, key, digest))
    elif held:
        connection.execute("DELETE FROM digest WHERE part = ? AND id = ?", (table, key))
    row = connection.execute("SELECT digest FROM digest WHERE part = ? AND id = ?", _TOTAL).fetchone()
    total = (_number(row[0]) if row else 0) + change
    connection.execute("INSERT OR REPLACE INTO digest VALUES (?, ?, ?)", (*_TOTAL, _bytes(total)))


def put_all(connection: sqlite3.Connection, parts: Iterable[Part]) -> None:
    """Store the digests of everything as it is now, in the transaction that is open."""
    found = {(part.table, key): digest for part in parts for key, digest in digests(connection, part).items()}
    connection.execute("DELETE FROM digest")
    entries = [(*place, digest) for place, digest in found.items()]
    connection.executemany("INSERT INTO digest VALUES (?, ?, ?)", [*entries, (*_TOTAL, _sum(found.values()))])


def _sum(found: Iterable[bytes]) -> bytes:
    return _bytes(sum(map(_number, found)))


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "little")


def _bytes(number: int) -> bytes:
    return (number % 2 ** (8 * _BYTES)).to_bytes(_BYTES, "little")


def damage(connection: sqlite3.Connection, parts: Sequence[Part], held: Mapping[tuple[str, int], bytes]) -> list[Damage]:
    """Return what of these parts is not as the digests `held` have it."""
    return [found for part in parts for found in differing(part, _computed(connection, part, held), held)]


def differing(part: Part, computed: Mapping[int, bytes], held: Mapping[tuple[str, int], bytes]) -> list[Damage]:
    """Return what of a part is not as the digests `held` have it."""
    wanted = {key: digest for (table, key), digest in held.items() if table == part.table}
    keys = {_whole(key) for key in {**wanted, **computed} if wanted.get(key) != computed.get(key)}
    return [Damage(part.table, key) for key in sorted(keys)]


def _whole(key: object) -> int:
    """Return a key, or 0 for what damage has made of one."""
    return key if isinstance(key, int) else 0


def total_is_false(held: Mapping[tuple[str, int], bytes]) -> bool:
    """Whether digests are gone, or others are there, which their sum tells."""
    return held.get(_TOTAL) != _sum(digest for place, digest in held.items() if place != _TOTAL)


def _computed(connection: sqlite3.Connection, part: Part, held: Mapping[tuple[str, int], bytes]) -> dict[int, bytes]:
    """Return the digests of a part; where rows cannot be read, of the others, which takes longer."""
    with suppress(*UNREADABLE):
        return digests(connection, part)
    found: dict[int, bytes] = {}
    for key in sorted({key for table, key in held if table == part.table} | keys_of(connection, part)):
        with suppress(*UNREADABLE):
            found |= digests(connection, part, key)
    return found


#: What reading damaged rows may raise.
UNREADABLE = (sqlite3.Error, ValueError, TypeError, OverflowError)


def keys_of(connection: sqlite3.Connection, part: Part) -> set[int]:
    """Return the keys of a part, as far as they can be read."""
    keys: set[int] = set()
    with suppress(*UNREADABLE):
        for (key,) in connection.execute(f"SELECT DISTINCT {part.key} FROM {part.table} NOT INDEXED"):
            if isinstance(key, int):
                keys.add(key)
    return keys


@contextmanager
def any_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Text that is no UTF-8 is read all the same inside, to be shown."""
    before: Callable[[bytes], Any] = connection.text_factory
    connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
    try:
        yield
    finally:
        connection.text_factory = before
