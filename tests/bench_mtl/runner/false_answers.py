"""What a Dask worker may send in place of an answer, among it objects that do something where they are unpickled. Workers import this."""

import os
from pathlib import Path
from typing import Any


class Deed:
    """Done by whoever unpickles it, in one process."""

    def __init__(self, file: Path, here: int) -> None:
        self.file, self.here = file, here

    def __reduce__(self) -> Any:
        return _do, (self.file, self.here)


def _do(file: Path, here: int) -> None:
    if os.getpid() == here:
        file.touch()


def nonsense(kind: str, file: Path, here: int) -> Any:
    """Return an answer of a kind: bytes, a number, or something with a deed."""
    deed = Deed(file, here)
    return {"bytes": b"nonsense", "number": 7, "deed": deed, "dictionary": {"a": deed}, "list": [deed]}[kind]
