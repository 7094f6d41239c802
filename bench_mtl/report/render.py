"""Tables as Markdown, LaTeX, CSV and terminal text. Numbers are formatted here and nowhere else."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

#: What stands for a number that does not exist.
BLANK = "-"

_TIME_TO, _REACHED = "seconds_to_", "reached_"

_MARKDOWN = str.maketrans({mark: "\\" + mark for mark in "\\|<*`[]"})

_LATEX = str.maketrans(
    {mark: "\\" + mark for mark in "&%$#_{}"}
    | {"^": r"\^{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}", "<": r"\ensuremath{<}", ">": r"\ensuremath{>}"}
)

#: Of a large table, so that its texts do not take several times the memory of the file.
_ROWS_AT_ONCE = 100_000


def display(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of `bench_mtl.report.tables` as text: headings for people, numbers with the digits that mean something.

    Where only k of a group's N runs have a value, the cell says ``(k/N)``.
    """
    import pandas as pd

    columns = [column for column in frame.columns if column != "proven" and not column.startswith(_REACHED)]
    cells = {place: _cells(column, frame) for place, column in enumerate(columns)}
    return pd.DataFrame(cells, dtype="str").set_axis([_title(column) for column in columns], axis=1)


def to_markdown(frame: pd.DataFrame) -> str:
    """A GitHub-flavoured Markdown table."""
    head, *rows = _aligned(frame, escaped)
    line = "|".join("-" * (len(cell) + 2) for cell in head)
    return "\n".join([f"| {' | '.join(head)} |", f"|{line}|", *(f"| {' | '.join(row)} |" for row in rows)])


def escaped(text: str) -> str:
    """Text for Markdown in which nothing is taken for a cell's end, a tag, a link or emphasis."""
    return text.translate(_MARKDOWN)


def to_latex(frame: pd.DataFrame, *, wide: str | None = None) -> str:
    """A LaTeX tabular for the booktabs package; the column `wide` breaks its lines."""
    kinds = "".join(r"p{0.5\linewidth}" if title == wide else "r" if _is_right(title) else "l" for title in frame.columns)
    head, *rows = (f" {' & '.join(cell.translate(_LATEX) for cell in row)} \\\\" for row in _aligned(frame))
    return "\n".join([rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"])


def to_text(frame: pd.DataFrame) -> str:
    """A plain table for a terminal."""
    head, *rows = _aligned(frame)
    return "\n".join("  ".join(row).rstrip() for row in (head, ["-" * len(cell) for cell in head], *rows))


def to_csv(frame: pd.DataFrame) -> bytes:
    """All columns with all digits; a missing number is an empty field.

    The same bytes as pandas' own ``to_csv``, which takes several times as long for a million rows.
    """
    parts = [frame.iloc[start : start + _ROWS_AT_ONCE] for start in range(0, len(frame), _ROWS_AT_ONCE)]
    return b"".join([frame.iloc[:0].to_csv(index=False, lineterminator="\n").encode(), *map(_csv_lines, parts)])


def _csv_lines(frame: pd.DataFrame) -> bytes:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    fields = [_csv_fields(frame[column]) for column in frame.columns]
    lines = pc.binary_join_element_wise(*fields, ",", null_handling="replace")
    ended = pc.binary_join_element_wise(lines, "\n", "")
    return bytes(pc.binary_join(pa.ListArray.from_arrays([0, len(ended)], ended), "")[0].as_buffer())


def _csv_fields(column: pd.Series[Any]) -> Any:
    """A column as an Arrow array of the texts between the commas; null where there is no value."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    if pd.api.types.is_float_dtype(column.dtype):
        return _csv_floats(column.to_numpy(np.float64))
    if pd.api.types.is_integer_dtype(column.dtype):
        return pa.array(column).cast(pa.string())
    # Few different ones, as a rule.
    places, different = pd.factorize(column.astype(object))
    texts = pa.array([_csv_field(value) for value in different], pa.string())
    return texts.take(pa.array(places, mask=places < 0))


def _csv_field(value: object) -> str:
    """Quoted where it must be."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([value, ""])
    return line.getvalue().removesuffix(",\n")


def _csv_floats(values: NDArray[np.float64]) -> Any:
    """As Python writes them: Arrow writes 5.0 as 5, 1e-07 as 1e-7, 2e-05 as 0.00002, and turns to powers of ten earlier."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, size = pa.array(values, from_pandas=True).cast(pa.string()), np.abs(values)
    whole = (values == np.floor(values)) & (size < 1e9)
    texts = pc.replace_with_mask(texts, whole, pc.binary_join_element_wise(texts.filter(whole), ".0", ""))
    tiny = (size < 5e-7) & ~whole
    texts = pc.replace_with_mask(texts, tiny, pc.replace_substring_regex(texts.filter(tiny), r"e-(\d)$", r"e-0\1"))
    other = ((size >= 5e-7) & (size < 1e-4)) | ((size >= 1e9) & (size < np.inf))
    return pc.replace_with_mask(texts, other, pa.array([repr(value) for value in values[other].tolist()], pa.string()))


def format_gap(value: float) -> str:
    """``1.2e-07``; an exact zero is ``0``."""
    return "0" if value == 0 else f"{value:.1e}"


def format_seconds(value: float) -> str:
    """Three significant digits, trailing zeros kept: ``0.0120``, ``3.10``, ``48.0``, ``1250``."""
    if value == 0:
        return "0"
    if abs(value) < 1e-4:
        return f"{value:.2e}"
    text = f"{value:#.3g}"
    return f"{value:.0f}" if "e" in text else text.rstrip(".")


def format_objective(value: float) -> str:
    """Ten significant digits."""
    return "0" if value == 0 else f"{value:#.10g}".rstrip(".")


def format_count(value: float) -> str:
    """Whole numbers without a point; small fractions keep theirs (a line search costs half a pass)."""
    return f"{value:.0f}" if value >= 1000 or value == int(value) else f"{value:.1f}"


def format_ratio(value: float) -> str:
    """Two digits and a times sign: ``1.3x``, ``12x``, ``480x``."""
    return f"{value:.1f}x" if value < 9.95 else f"{float(f'{value:.2g}'):.0f}x"


def format_target(value: float) -> str:
    """A relative gap as short as it can be written: ``1e-6``, ``2.5e-3``."""
    mantissa, exponent = f"{value:.6e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def _agrees(value: bool) -> str:
    return "yes" if value else "NO"


_FORMATS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "relative_gap": ("Relative gap", format_gap),
    "infeasibility": ("Infeasibility", format_gap),
    "iterations": ("Iterations", format_count),
    "passes": ("Passes", format_count),
    "build_seconds": ("Build (s)", format_seconds),
    "compile_seconds": ("Compile (s)", format_seconds),
    "setup_seconds": ("Set-up (s)", format_seconds),
    "solve_seconds": ("Solve (s)", format_seconds),
    "certify_seconds": ("Certify (s)", format_seconds),
    "peak_memory_mib": ("Peak memory (MiB)", format_count),
    "primal": ("Objective", format_objective),
    "dual": ("Lower bound", format_objective),
    "best_primal": ("Best objective", format_objective),
    "best_dual": ("Best lower bound", format_objective),
    "primal_solver": ("Objective by", str),
    "dual_solver": ("Lower bound by", str),
    "agrees": ("Agrees", _agrees),
    "disagreeing": ("Disagreeing", str),
    "target": ("Target", format_target),
    "asked": ("Tolerance asked", format_target),
    "answers": ("Answers", format_count),
    "seconds": ("Seconds", format_seconds),
    "other": ("Best of the other kind", str),
    "other_seconds": ("Its seconds", format_seconds),
    "ratio": ("Ratio", format_ratio),
    "seed": ("Seed", format_count),
    "repetition": ("Repetition", format_count),
    "runs": ("Runs", format_count),
}

_LEFT = {"primal_solver", "dual_solver", "disagreeing", "other", "agrees"}
_RIGHT_TITLES = {title for column, (title, _) in _FORMATS.items() if column not in _LEFT}


def _title(column: str) -> str:
    if column.startswith(_TIME_TO):
        return f"s to {column.removeprefix(_TIME_TO)}"
    return _FORMATS[column][0] if column in _FORMATS else column.replace("_", " ").capitalize()


def _cells(column: str, frame: pd.DataFrame) -> list[str]:
    values: list[Any] = [None if missing else value for value, missing in zip(frame[column].tolist(), frame[column].isna(), strict=True)]
    if column.startswith(_TIME_TO):
        counts, totals = frame[_REACHED + column.removeprefix(_TIME_TO)], frame["runs"]
        return [_counted(value, format_seconds, *counted) for value, *counted in zip(values, counts, totals, strict=True)]
    if column == "relative_gap" and "proven" in frame:
        return [_counted(value, format_gap, *counted) for value, *counted in zip(values, frame["proven"], frame["runs"], strict=True)]
    form = _FORMATS[column][1] if column in _FORMATS else str
    return [BLANK if value is None or value == "" else form(value) for value in values]


def _counted(value: float | None, form: Callable[[float], str], count: int, total: int) -> str:
    text = BLANK if value is None else form(value)
    return text if count in (0, total) else f"{text} ({count}/{total})"


def _aligned(frame: pd.DataFrame, clean: Callable[[str], str] = str) -> list[tuple[str, ...]]:
    """The titles and the rows of a table of texts, each a line padded to the width of its column."""
    columns = []
    for title in frame.columns:
        # A table without rows shows that it has none.
        cells = [clean(" ".join(cell.split())) for cell in frame[title].astype(str).tolist()] or [BLANK]
        width = max(len(title) + 2, *map(len, cells))
        pad = str.rjust if _is_right(title) else str.ljust
        columns.append([pad(cell, width) for cell in (title, *cells)])
    return list(zip(*columns, strict=True))


def _is_right(title: str) -> bool:
    return title in _RIGHT_TITLES or title.startswith("s to ")
