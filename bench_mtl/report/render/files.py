"""The files of a report in memory: results in, the bytes of every file out, in the forms that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from bench_mtl.report import formats as forms
from bench_mtl.report import registry
from bench_mtl.report.columns import to_csv, to_latex, to_parquet
from bench_mtl.report.figures import style
from bench_mtl.report.figures.gallery import gallery
from bench_mtl.report.figures.printing import printed_figures
from bench_mtl.report.registry import TABLES, printed
from bench_mtl.report.render.markdown import markdown
from bench_mtl.report.suite_report import suite_document
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
    processes : that draw figures where there are many, as of `printed_figures`
    """
    entries = gallery(results, tables) if {*forms.FIGURES, *forms.TEXTS, "csv", forms.COVER} & set(formats) else []
    pictures = [form for form in (*forms.FIGURES, "csv") if form in formats or (form == "svg" and "html" in formats)]
    drawn = printed_figures(entries if pictures else [], pictures, processes)
    files = _tables(tables, formats)
    if "csv" in formats:
        files["runs.csv"] = to_csv(results.runs.drop(columns=[*OF_READING, *([] if len(results.machines) > 1 else ["machine"])]))
        files["samples.csv"] = to_csv(results.samples)
    if "md" in formats:
        files["report.md"] = markdown(suite_document(results, tables, entries), formats).encode()
    if forms.COVER in formats and entries:
        files[forms.COVER_FILE] = style.files(entries[0].draw(), ["svg"])["svg"]
    if "html" in formats:
        from bench_mtl.report.render.html import page

        files["report.html"] = page(suite_document(results, tables, entries, every_table=True), drawn)
    return files | {path: content for path, content in drawn.items() if path.rpartition(".")[2] in formats}


def _tables(tables: Mapping[str, pd.DataFrame], formats: Collection[str]) -> dict[str, bytes]:
    writers: dict[str, Callable[[str, pd.DataFrame], bytes]] = {
        "csv": lambda _, table: to_csv(table),
        "tex": _latex,
        "parquet": lambda _, table: to_parquet(table),
    }
    wanted = [(form, write) for form, write in writers.items() if form in formats]
    return {f"tables/{name}.{form}": write(name, table) for name, table in tables.items() for form, write in wanted}


def _latex(name: str, table: pd.DataFrame) -> bytes:
    body = to_latex(printed(name, table.head(registry.MOST_ROWS)), wide="Reason" if name == "not_verified" else None)
    part = f" The first {registry.MOST_ROWS} of {len(table)} rows." if len(table) > registry.MOST_ROWS else ""
    return f"% {TABLES[name].title}.{part} Needs \\usepackage{{booktabs}}.\n{body}\n".encode()
