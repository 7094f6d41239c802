"""Tables as Markdown, LaTeX, CSV and terminal text. Numbers are formatted here and nowhere else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import LONGEST_WORD, csv_cell, one_line
from bench_mtl.core.types import EPSILON, Status
from bench_mtl.results.export import without_formulas

if TYPE_CHECKING:
    import pandas as pd

#: What stands for a number that does not exist.
BLANK = "-"

#: Characters of a text in a cell or a sentence; the rows themselves have all of them.
LONGEST_CELL = 2_000

#: What begins a heading, a list, a quotation or a line below a heading.
_BEGINNINGS = re.compile(r"^(\d*)([#>+=.)-])")

#: What Markdown would take for markup. An underscore is emphasis at the edge of a word alone.
_MARKS = re.compile(r"[\\|<*`\[\]~&]|(?<![^\W_])_|_(?![^\W_])")

_TIME_TO, _REACHED, _RUNS = "seconds_to_", "reached_", "runs_to_"


def display(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of `bench_mtl.report.tables` as text: headings for people, numbers with the digits that mean something.

    Where only k of a group's N runs have a value, the cell says ``(k/N)``; an interval or range stands in square brackets.
    """
    import pandas as pd

    columns = shown_columns(frame)
    cells = {place: _cells(column, frame) for place, column in enumerate(columns)}
    return pd.DataFrame(cells, dtype="str").set_axis([_title(column) for column in columns], axis=1)


def shown_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a table that `display` shows, in its order: all that are not part of another one's cells."""
    ends = {f"{column}_{end}" for column in frame.columns for end in ("low", "high")}
    return [column for column in frame.columns if column not in ends.union(_WITH_OTHERS) and not column.startswith((_REACHED, _RUNS))]


def to_markdown(frame: pd.DataFrame) -> str:
    """Return a GitHub-flavoured Markdown table."""
    return _tabulate(frame, "github", escaped)


def escaped(text: str) -> str:
    """Text for Markdown as it is, on one line: nothing is taken for a cell's end, a tag, an entity, a link or emphasis.

    All white space becomes single blanks, and what cannot be seen an escape. An underscore between letters or digits, as in
    ``interior_point``, means nothing to Markdown and stays as it can be read.
    """
    return _MARKS.sub(r"\\\g<0>", one_line(text, LONGEST_CELL))


def paragraphs(text: str) -> str:
    """Text for Markdown as `escaped` gives it, that keeps its paragraphs; none of them is a heading, a list or a quotation."""
    parts = (escaped(part) for part in re.split(r"\n\s*\n", text[:LONGEST_WORD]))
    return "\n\n".join(_BEGINNINGS.sub(r"\1\\\2", part) for part in parts if part)


def to_latex(frame: pd.DataFrame, *, wide: str | None = None) -> str:
    """Return a LaTeX tabular for the booktabs package; the column `wide` breaks its lines."""
    text = _tabulate(frame, "latex_booktabs", _cell)
    if wide is not None:
        # tabulate has no column type with line breaks
        place = list(frame.columns).index(wide)
        start = text.index("{tabular}{") + len("{tabular}{")
        end = text.index("}", start)
        letters = list(text[start:end])
        letters[place] = r"p{0.5\linewidth}"
        text = text[:start] + "".join(letters) + text[end:]
    return text


def to_text(frame: pd.DataFrame) -> str:
    """Return a plain table for a terminal."""
    return _tabulate(frame, "simple", _cell)


def _cell(text: str) -> str:
    return one_line(text, LONGEST_CELL)


def to_csv(frame: pd.DataFrame) -> bytes:
    """Return all columns with all digits, so that a number that is read again is the same; a missing one is an empty field.

    Texts are as `bench_mtl.core.text.csv_cell` gives them: no formulas.
    """
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


def format_gap(value: float) -> str:
    """``1.2e-07``; an exact zero is ``0``."""
    return "0" if value == 0 else f"{value:.1e}"


def format_seconds(value: float, bound: str = "") -> str:
    """Three significant digits, trailing zeros kept: ``0.0120``, ``3.10``, ``48.0``, ``1250``. A bound is rounded so that it holds."""
    if bound and math.isfinite(value) and value > 0.0:
        value = _on_its_side(value, min(1.0, 10.0 ** (math.floor(math.log10(value)) - 2)), bound)
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


def format_measure(value: float) -> str:
    """Return a whole number as it is, anything else with four significant digits."""
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def format_ratio(value: float, bound: str = "") -> str:
    """Two digits and a times sign: ``0.051x``, ``1.3x``, ``12x``, ``480x``. A bound, ">=" or "<=", is rounded so that it holds."""
    if bound and math.isfinite(value) and value > 0.0:
        unit = 10.0 ** max(math.floor(math.log10(value)) - 1, -1 if value >= 0.1 else -math.inf)
        value = _on_its_side(value, unit, bound)
    if value < 0.1:
        return f"{value:.2g}x"
    return f"{value:.1f}x" if value < 9.95 else f"{float(f'{value:.2g}'):.0f}x"


def _on_its_side(value: float, unit: float, bound: str) -> float:
    """Return a bound, ">=" or "<=", as a multiple of `unit` that it holds for."""
    return unit * (math.floor(value / unit * (1.0 + EPSILON)) if bound == ">=" else math.ceil(value / unit * (1.0 - EPSILON)))


def format_p_value(value: float) -> str:
    """``0.042``; below a thousandth one digit, as ``3e-05``."""
    return f"{value:.3f}" if value >= 0.001 else "0" if value == 0 else f"{value:.0e}"


def format_target(value: float) -> str:
    """Return a relative gap as short as it can be written: ``1e-6``, ``2.5e-3``."""
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
    "other": ("Against", str),
    "other_seconds": ("Its seconds", format_seconds),
    "ratio": ("Ratio", format_ratio),
    "lowest_ratio": ("Lowest ratio", format_ratio),
    "instances": ("Instances", format_count),
    "without": ("Without a ratio", format_count),
    "size": ("Size", format_count),
    "exponent": ("Exponent", lambda value: f"{value:.2f}"),
    "points": ("Points", format_count),
    "workers": ("Workers", format_count),
    "shards": ("Shards", format_count),
    "rounds": ("Rounds", format_count),
    "messages_a_round": ("Messages a round", format_count),
    "sent_a_round_kib": ("Sent a round (KiB)", format_seconds),
    "received_a_round_kib": ("Received a round (KiB)", format_seconds),
    "again": ("Made again", format_count),
    "a_pass_kib": ("A pass (KiB)", format_seconds),
    "fewest": ("Fewest workers", format_count),
    "most": ("Most workers", format_count),
    "seconds_fewest": ("Seconds, fewest", format_seconds),
    "seconds_most": ("Seconds, most", format_seconds),
    "speed_up": ("Speed-up", format_ratio),
    "efficiency": ("Efficiency", lambda value: f"{value:.2f}"),
    "shared_seconds": ("Shared (s)", format_seconds),
    "fixed_seconds": ("Fixed (s)", format_seconds),
    "model_16": ("Model, 16 workers (s)", format_seconds),
    "model_1000": ("Model, 1,000 workers (s)", format_seconds),
    "same_numbers": ("Same numbers", _agrees),
    "value": ("At the best point", format_measure),
    "last": ("At the last point", format_measure),
    "seed": ("Seed", format_count),
    "repetition": ("Repetition", format_count),
    "runs": ("Runs", format_count),
    "reached": ("Reached", format_count),
    "limit_seconds": ("Limit (s)", format_seconds),
    "run_on": ("Run on", format_count),
    "solved": ("Solved", format_count),
    "shift": ("Shift (s)", format_seconds),
    "mean": ("Mean (s)", format_seconds),
    "mean_ten_times": ("Failures at 10 x limit (s)", format_seconds),
    "solved_by_all": ("Solved by all", format_count),
    "mean_solved_by_all": ("Over these (s)", format_seconds),
    "ratios": ("With a ratio", format_count),
    "wins": ("Wins", format_count),
    "losses": ("Losses", format_count),
    "ties": ("Ties", format_count),
    "p_value": ("p", format_p_value),
    "p_adjusted": ("p (Holm)", format_p_value),
    "tried": ("Tried", format_count),
    **{str(status): (status.capitalize(), format_count) for status in Status},
}

#: Columns that are printed as part of another one.
_WITH_OTHERS = ("proven", "in_full", "walkover", "at_least", "at_most", "mean_at_least", "reference_wins")

_LEFT = {"primal_solver", "dual_solver", "disagreeing", "other", "agrees", "same_numbers"}
_RIGHT_TITLES = {title for column, (title, _) in _FORMATS.items() if column not in _LEFT}


def _title(column: str) -> str:
    if column.startswith(_TIME_TO):
        return f"s to {column.removeprefix(_TIME_TO)}"
    return _FORMATS[column][0] if column in _FORMATS else column.replace("_", " ").capitalize()


def _cells(column: str, frame: pd.DataFrame) -> list[str]:
    values: list[Any] = [None if missing else value for value, missing in zip(frame[column].tolist(), frame[column].isna(), strict=True)]
    if column.startswith(_TIME_TO):
        target = column.removeprefix(_TIME_TO)
        counts, totals = frame[_REACHED + target], frame[_RUNS + target]
        return [_counted(value, format_seconds, *counted) for value, *counted in zip(values, counts, totals, strict=True)]
    if column == "relative_gap" and "proven" in frame:
        return [_counted(value, format_gap, *counted) for value, *counted in zip(values, frame["proven"], frame["in_full"], strict=True)]
    form = _FORMATS[column][1] if column in _FORMATS else str
    form = _words if form is str else form
    texts = [
        BLANK if value is None or value == "" else f"{sign} {_bounded(form, value, sign)}".lstrip()
        for value, sign in zip(values, _signs(column, frame), strict=True)
    ]
    return [text + end for text, end in zip(texts, _ends(column, frame, form), strict=True)]


def _bounded(form: Callable[[Any], str], value: Any, sign: str) -> str:
    """Return a value in its form, a bound so that it holds."""
    if form is format_ratio:
        return format_ratio(value, sign)
    return format_seconds(value, sign) if form is format_seconds else form(value)


def _words(value: Any) -> str:
    return one_line(str(value), LONGEST_CELL)


def _signs(column: str, frame: pd.DataFrame) -> list[str]:
    """Return what goes before a number that may be a bound."""
    before = "" if column == "ratio" else f"{column}_"
    lower, upper = (
        [bool(is_bound is True) for is_bound in frame[name].tolist()] if name in frame else [False] * len(frame)
        for name in (f"{before}at_least", f"{before}at_most")
    )
    return [">=" if least else "<=" if most else "" for least, most in zip(lower, upper, strict=True)]


def _ends(column: str, frame: pd.DataFrame, form: Callable[[Any], str]) -> list[str]:
    """Return what follows a number that has an interval or a range."""
    if f"{column}_low" not in frame:
        return [""] * len(frame)
    low, high = frame[f"{column}_low"], frame[f"{column}_high"]
    known = (low.notna() & high.notna()).tolist()
    return [f" ({form(one)} to {form(other)})" if both else "" for one, other, both in zip(low.tolist(), high.tolist(), known, strict=True)]


def _counted(value: float | None, form: Callable[[float], str], count: int, total: int) -> str:
    text = BLANK if value is None else form(value)
    return text if count in (0, total) else f"{text} ({count}/{total})"


def _tabulate(frame: pd.DataFrame, form: str, clean: Callable[[str], str]) -> str:
    from tabulate import tabulate

    titles = [one_line(str(title), LONGEST_CELL) for title in frame.columns]
    rows = [[clean(str(cell)) for cell in row] for row in frame.itertuples(index=False, name=None)]
    sides = ["right" if title in _RIGHT_TITLES or title.startswith("s to ") else "left" for title in titles]
    # tabulate knows no columns where there are no rows
    return tabulate(rows or [[BLANK] * len(titles)], headers=titles, tablefmt=form, disable_numparse=True, colalign=sides)
