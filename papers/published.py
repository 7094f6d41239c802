"""What the papers say: published/NAME.csv, a row for every number and statement, all files with the same columns."""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from pathlib import Path

from bench_mtl import InputError

FOLDER = Path(__file__).parent / "published"


@dataclass(frozen=True)
class Claim:
    """A published number or statement; README.md explains each column."""

    statement: str
    where: str  # its place in the paper
    measure: str
    relation: str
    subject: str = ""
    rival: str = ""
    at: str = ""
    along: str = ""
    margin: str = ""
    published: str = ""
    deviation: str = ""
    note: str = ""

    @property
    def number(self) -> float | None:
        """The published number, if it is one."""
        try:
            return float(self.published)
        except ValueError:
            return None

    @property
    def is_number(self) -> bool:
        """Whether it is a number to be had again, and not a statement."""
        return self.relation in ("within", "within factor", "shown")

    @property
    def places(self) -> dict[str, list[str]]:
        """Settings by column: ``data=scene; examples=15|30``."""
        pairs = (part.split("=", 1) for part in self.at.split(";") if part.strip())
        return {column.strip(): values.strip().split("|") for column, values in pairs}

    @property
    def several(self) -> dict[str, list[str]]:
        """The columns of `places` of which it names more than one value: it must hold at each."""
        return {column: values for column, values in self.places.items() if len(values) > 1 or values == ["*"]}

    @property
    def slack(self) -> float:
        """The margin; 0 where there is none."""
        return float(self.margin or 0.0)


def published(name: str) -> list[Claim]:
    """Return the claims of published/NAME.csv. Raises InputError: there is no such file, or its columns are others."""
    path = FOLDER / f"{name}.csv"
    if not path.is_file():
        raise InputError(f"there are no published numbers {path.name}: {', '.join(sorted(each.stem for each in FOLDER.glob('*.csv')))}")
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if list(reader.fieldnames or ()) != (columns := [field.name for field in fields(Claim)]):
            raise InputError(f"{path.name} must have the columns {', '.join(columns)}")
        return [Claim(**row) for row in reader]
