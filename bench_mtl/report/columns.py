"""How the columns of tables are shown, and tables as Markdown, LaTeX, CSV and terminal text.

Numbers are formatted here alone, but for gaps, which runs name too (`bench_mtl.engine.proofs.format_gap`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import LONGEST_WORD, csv_cell, one_line, outward
from bench_mtl.results.export import without_formulas

if TYPE_CHECKING:
    import pandas as pd

#: What stands for a number that does not exist.
BLANK = "-"

#: Characters of a text in a cell or a sentence; the rows themselves have all of them.
LONGEST_CELL = 2_000

#: Significant digits of objectives and bounds.
_DIGITS = 10

#: What begins a heading, a list, a quotation or a line below a heading.
_BEGINNINGS = re.compile(r"^(\d*)([#>+=.)-])")

#: What Markdown would take for markup. An underscore is emphasis at the edge of a word alone.
_MARKS = re.compile(r"[\\|<*`\[\]~&$]|(?<![^\W_])_|_(?![^\W_])")

#: A number at the beginning of a text.
NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?=$|[x%]| [±(\[x])")


def to_markdown(frame: pd.DataFrame) -> str:
    """Return a GitHub-flavoured Markdown table."""
    return _tabulate(frame, "github", escaped)


def escaped(text: str) -> str:
    """Text for Markdown as it is, on one line: nothing is taken for a cell's end, a tag, an entity, a formula or emphasis, nor for a link
    but a bare address."""
    return _MARKS.sub(r"\\\g<0>", one_line(text, LONGEST_CELL))


def paragraphs(text: str) -> str:
    """Text for Markdown as `escaped` gives it, that keeps its paragraphs; none of them is a heading, a list or a quotation."""
    parts = (escaped(part) for part in re.split(r"\n\s*\n", text[:LONGEST_WORD]))
    return "\n\n".join(_BEGINNINGS.sub(r"\1\\\2", part) for part in parts if part)


def to_latex(frame: pd.DataFrame, *, wide: str | None = None) -> str:
    """Return a LaTeX tabular for the booktabs package; the column `wide` breaks its lines."""
    start, letters, rest = re.split(r"(?<=\{tabular\}\{)([lr]*)", _tabulate(frame, "latex_booktabs", format_words), maxsplit=1)
    # tabulate has no column type with line breaks
    letters = "".join(r"p{0.5\linewidth}" if name == wide else letter for name, letter in zip(frame.columns, letters, strict=True))
    # After the end of a row a bracket or a star would be its argument.
    return re.sub(r"(?m)^(\s*)(?=[\[*])", r"\1{}", f"{start}{letters}{rest}")


def to_text(frame: pd.DataFrame) -> str:
    """Return a plain table for a terminal."""
    return _tabulate(frame, "simple", format_words)


def to_csv(frame: pd.DataFrame) -> bytes:
    """Return all columns with all digits; a missing number is an empty field, and no text is a formula (`core.text.csv_cell`)."""
    import pyarrow as pa
    from pyarrow import csv

    table = without_formulas(pa.Table.from_pandas(frame, preserve_index=False))
    sink = pa.BufferOutputStream()
    sink.write((",".join(map(csv_cell, frame.columns)) + "\n").encode())
    csv.write_csv(table, sink, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return bytes(sink.getvalue())


def to_parquet(frame: pd.DataFrame) -> bytes:
    """Return all columns as they are, for other programs."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(), sink)
    return bytes(sink.getvalue())


def enumerated(parts: Sequence[str]) -> str:
    """Return the parts as ``a, b and c``; empty where there are none."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def format_seconds(value: float) -> str:
    """Three significant digits, with trailing zeros: ``0.0120``, ``3.10``, ``48.0``, ``1250``."""
    if abs(value) < 1e-4:
        return "0" if value == 0 else f"{value:.2e}"
    text = f"{value:#.3g}"
    return f"{value:.0f}" if "e" in text else text.rstrip(".")


def format_objective(value: float) -> str:
    """Ten significant digits."""
    return "0" if value == 0 else f"{value:#.{_DIGITS}g}".rstrip(".")


def format_upper(value: float) -> str:
    """An upper bound as `format_objective` has numbers, rounded up."""
    return format_objective(outward(value, _DIGITS, is_upper=True))


def format_lower(value: float) -> str:
    """A lower bound, rounded down."""
    return format_objective(outward(value, _DIGITS, is_upper=False))


def format_count(value: float) -> str:
    """Whole numbers without a point; small fractions keep theirs (a line search costs half a pass)."""
    return f"{value:.0f}" if value >= 1000 or value == int(value) else f"{value:.1f}"


def format_measure(value: float) -> str:
    """Return a whole number as it is, anything else with four significant digits."""
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def format_ratio(value: float) -> str:
    """Two digits and a times sign: ``0.051x``, ``1.3x``, ``12x``, ``480x``."""
    if value < 0.1:
        return f"{value:.2g}x"
    return f"{value:.1f}x" if value < 9.95 else f"{float(f'{value:.2g}'):.0f}x"


def share(number: int | None, total: int | None) -> str:
    """`` (3 of 4)`` where some are, and not all; else nothing."""
    return f" ({number} of {total})" if number not in (0, total) else ""


def format_p_value(value: float) -> str:
    """``0.042``; below a thousandth one digit, as ``3e-05``."""
    return f"{value:.3f}" if value >= 0.001 else "0" if value == 0 else f"{value:.0e}"


def format_target(value: float) -> str:
    """Return a relative gap as short as it can be written: ``1e-6``, ``2.5e-3``."""
    mantissa, exponent = f"{value:.6e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def format_decimals(value: float) -> str:
    return f"{value:.2f}"


def format_words(value: Any) -> str:
    return one_line(str(value), LONGEST_CELL)


@dataclass(frozen=True)
class Column:
    """A column of a table as it is shown."""

    name: str  # that of the frame
    title: str = ""  # where it is not the name
    form: Callable[[Any], str] = format_words  # of one value
    instead: str = ""  # the column of the words that stand where there is no value
    interval: tuple[str, str] | None = None  # the columns of the ends of its interval or range
    counted: tuple[str, str] | None = None  # the columns that say how many runs have a value, of how many; shown where these differ
    each_target: bool = False  # whether it is one for each target, which follows its name, its title and those that it is counted by
    is_shown: bool = True  # whether it is shown to people, and not in CSV and Parquet files alone
    is_dull_alike: bool = False  # whether it is not shown where all rows have the same value

    @property
    def heading(self) -> str:
        return self.title or self.name.replace("_", " ").capitalize()

    @property
    def parts(self) -> tuple[str, ...]:
        """The columns of the frame that are shown in it."""
        return self.name, *filter(None, [self.instead]), *(self.interval or ()), *(self.counted or ())

    def of_targets(self, frame: pd.DataFrame) -> Iterator[Column]:
        """Yield it, or the columns for the targets of a frame that it represents."""
        start = f"{self.name}_"
        if not self.each_target:
            yield self
            return
        for target in (str(name).removeprefix(start) for name in frame.columns if str(name).startswith(start)):
            counted = self.counted and (f"{self.counted[0]}_{target}", f"{self.counted[1]}_{target}")
            yield replace(self, name=f"{start}{target}", title=f"{self.title} {target}", counted=counted)

    def cells(self, frame: pd.DataFrame) -> list[str]:
        """Return its texts."""
        values = {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in self.parts}
        return [self._cell(dict(zip(values, row, strict=True))) for row in zip(*values.values(), strict=True)]

    def _cell(self, row: dict[str, Any]) -> str:
        value = row[self.name]
        is_blank = value is None or value == ""
        text = format_words(row[self.instead or self.name] or BLANK) if is_blank else self.form(value)
        low, high = (row[name] for name in self.interval or (self.name, self.name))
        if self.interval and low is not None and high is not None:
            text += f" ({self.form(low)} to {self.form(high)})"
        number, total = (row[name] for name in self.counted or (self.name, self.name))
        return text + (share(number, total) if self.counted else "")


def column_names(columns: Iterable[Column]) -> list[str]:
    """Return the columns of a frame that has these."""
    return list(dict.fromkeys(name for column in columns for name in column.parts))


def for_files(*names: str) -> list[Column]:
    """Return columns that only files for programs have."""
    return [Column(name, is_shown=False) for name in names]


def count_of(name: str, title: str = "", **more: Any) -> Column:
    return Column(name, title, format_count, **more)


def seconds_of(name: str, title: str = "", **more: Any) -> Column:
    return Column(name, title, format_seconds, **more)


def ratio_of(name: str, title: str = "", **more: Any) -> Column:
    return Column(name, title, format_ratio, **more)


def yes_of(name: str) -> Column:
    return Column(name, form=lambda value: "yes" if value else "NO")


def display(frame: pd.DataFrame, columns: Iterable[Column]) -> pd.DataFrame:
    """Return a table as text: headings for people, numbers with the digits that mean something."""
    import pandas as pd

    there = [one for column in columns if column.is_shown for one in column.of_targets(frame) if one.name in frame]
    cells = [(column, column.cells(frame)) for column in there]
    shown = [(column.heading, texts) for column, texts in cells if not (column.is_dull_alike and len({*texts} - {BLANK}) <= 1)]
    table = pd.DataFrame({place: texts for place, (_, texts) in enumerate(shown)}, index=range(len(frame)), dtype="str")
    return table.set_axis([heading for heading, _ in shown], axis=1)


#: Columns of many tables.
PROBLEM, TARGET = Column("problem"), Column("target", form=format_target)
SOLVER, KIND, STATUS = Column("solver"), Column("kind"), Column("status")


def is_numeric(texts: Iterable[str]) -> bool:
    """Return whether all texts begin with a number, but for those that there are none of."""
    some = [text for text in texts if text not in ("", BLANK) and not text.startswith(f"{BLANK} ")]
    return bool(some) and all(map(NUMBER.match, some))


def _tabulate(frame: pd.DataFrame, form: str, clean: Callable[[str], str]) -> str:
    from tabulate import tabulate

    titles = [one_line(str(title), LONGEST_CELL) for title in frame.columns]
    rows = [[clean(str(cell)) for cell in row] for row in frame.itertuples(index=False, name=None)]
    sides = ["right" if is_numeric(str(cell) for cell in frame.iloc[:, place]) else "left" for place in range(len(titles))]
    # tabulate knows no columns where there are no rows
    return tabulate(rows or [[BLANK] * len(titles)], headers=titles, tablefmt=form, disable_numparse=True, colalign=sides)
