"""Puts a report together in memory: results in, the bytes of every file out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.report import formats as forms
from bench_mtl.report import registry
from bench_mtl.report.columns import to_csv, to_latex, to_parquet
from bench_mtl.report.figures import style
from bench_mtl.report.figures.drawing import Drawing, Undrawn, first
from bench_mtl.report.figures.gallery import drawings
from bench_mtl.report.figures.printing import printing
from bench_mtl.report.markdown import markdown
from bench_mtl.report.registry import TABLES, printed
from bench_mtl.results.loading import OF_READING, Results

if TYPE_CHECKING:
    import pandas as pd


def report_files(
    results: Results, tables: Mapping[str, pd.DataFrame], formats: Collection[str] = forms.ALL, processes: int = 1
) -> dict[str, bytes]:
    """Return all files of a report by their path inside its folder; the same results give the same bytes.

    Parameters
    ----------
    formats : of `bench_mtl.report.formats.ALL`, and `COVER`. With CSV come the data of the figures, the runs and the samples.
    processes : that draw figures where there are many, as of `printing`
    """
    drawn, undrawn = drawings(results, tables) if {*forms.FIGURES, *forms.TEXTS, forms.COVER} & set(formats) else ([], [])
    pictures = [form for form in (*forms.FIGURES, "csv") if form in formats]
    with printing(drawn if pictures else [], pictures, processes) as figures:
        files = _texts_and_tables(results, tables, drawn, undrawn, formats)
        if forms.COVER in formats and (cover := first(drawn)) is not None:
            files[forms.COVER_FILE] = style.files(cover.draw(), ["svg"])["svg"]
        return files | figures()


def _texts_and_tables(
    results: Results, tables: Mapping[str, pd.DataFrame], drawn: Sequence[Drawing], undrawn: Sequence[Undrawn], formats: Collection[str]
) -> dict[str, bytes]:
    from bench_mtl.report.page import page

    files = {}
    for name, table in tables.items():
        if "csv" in formats:
            files[f"tables/{name}.csv"] = to_csv(table)
        if "tex" in formats:
            files[f"tables/{name}.tex"] = _latex(name, table).encode()
        if "parquet" in formats:
            files[f"tables/{name}.parquet"] = to_parquet(table)
    if "csv" in formats:
        files["runs.csv"] = to_csv(results.runs.drop(columns=[*OF_READING, *([] if len(results.machines) > 1 else ["machine"])]))
        files["samples.csv"] = to_csv(results.samples)
    if "md" in formats:
        files["report.md"] = markdown(results, tables, drawn, undrawn, formats).encode()
    if "html" in formats:
        files["report.html"] = page(results, tables, drawn, undrawn)
    return files


def _latex(name: str, table: pd.DataFrame) -> str:
    body = to_latex(printed(name, table.head(registry.MOST_ROWS)), wide="Reason" if name == "not_verified" else None)
    part = f" The first {registry.MOST_ROWS} of {len(table)} rows." if len(table) > registry.MOST_ROWS else ""
    return f"% {TABLES[name].title}.{part} Needs \\usepackage{{booktabs}}.\n{body}\n"
