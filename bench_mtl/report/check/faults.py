"""What is wrong with a published report: one sentence, cell or row that does not follow from the rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: Characters of a sentence that are quoted.
_LONGEST_QUOTE = 160


@dataclass(frozen=True)
class Fault:
    """A sentence that the rows do not support."""

    file: Path
    line: int
    text: str
    """What is printed."""
    why: str
    """What the rows say instead, or that no rule derives it."""

    def __str__(self) -> str:
        quote = self.text if len(self.text) <= _LONGEST_QUOTE else f"{self.text[:_LONGEST_QUOTE]}..."
        return f"{self.file}:{self.line}: {self.why}: {quote!r}"


@dataclass(frozen=True)
class Finding:
    """A fault before it is known in which file: what the checks of single sentences return."""

    line: int
    text: str
    why: str

    def of(self, file: Path) -> Fault:
        """Return it as a fault of this file."""
        return Fault(file, self.line, self.text, self.why)
