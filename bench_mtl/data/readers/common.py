"""What the readers share: errors that name the file, and compressed files."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench_mtl.core.errors import InputError, is_full

_LONGEST_REASON = 300

#: What opens a compressed file, by the end of its name.
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def opened(path: Path) -> IO[bytes]:
    """Open a file to read the bytes that it holds, or that are compressed there."""
    file: IO[bytes] = _OPENERS.get(path.suffix.lower(), open)(path, "rb")
    return file


def unpacked_name(path: str | Path) -> Path:
    """Return the path of a file without the end that says how it is compressed: "a.csv" of "a.csv.gz"."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in _OPENERS else path


def readable_file(path: str | Path) -> Path:
    """`path`, if a regular file is there."""
    if not isinstance(path, (str, Path)):
        raise InputError("path", path, "the path of a file")
    file = Path(path)
    try:
        if file.is_file():
            return file
        reason = "is not a file" if file.exists() else "no such file"
    except (OSError, ValueError) as error:
        reason = _reason(error)
    raise InputError(f"{file}: {reason}")


@contextmanager
def naming(what: object) -> Iterator[None]:
    """Put the name of a file, or of a step, before every InputError raised inside."""
    try:
        yield
    except InputError as error:
        raise error.within(what) from None


@contextmanager
def parsing(kind: str) -> Iterator[None]:
    """Turn any failure of a library's parser into an InputError of one line.

    A damaged file can make a parser fail in any way (zip, zlib, pickle, Unicode, memory, its own classes), so this
    catches every Exception; it belongs around library calls only, where it cannot hide a mistake of this package.
    """
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"not readable as {kind}: it asks for more memory than there is") from None
    except Exception as error:
        if isinstance(error, OSError) and is_full(error):  # of what is unpacked beside it
            raise
        raise InputError(f"not readable as {kind}: {_reason(error)}") from None


def is_number(text: str) -> bool:
    """Return whether a cell of text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _reason(error: Exception) -> str:
    """Return the error's text as one line of moderate length."""
    try:
        text = " ".join(((isinstance(error, OSError) and error.strerror) or str(error)).split())
    except Exception:  # some parsers put the file's own text into a format string, and fail to print their error
        text = ""
    text = text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "..."
    return f"{text} ({type(error).__name__})" if text else type(error).__name__
