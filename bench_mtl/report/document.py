"""Puts a report together in memory: results in, the bytes of every file out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.report import contents as catalogue
from bench_mtl.report import formats as forms
from bench_mtl.report.contents import TABLES, printed
from bench_mtl.report.figures.drawing import Drawing, Undrawn
from bench_mtl.report.figures.gallery import drawings
from bench_mtl.report.figures.printing import printing
from bench_mtl.report.markdown import markdown
from bench_mtl.report.render import to_csv, to_latex, to_parquet
from bench_mtl.report.tables.comparisons import comparisons
from bench_mtl.report.tables.instances import by_instance, run_times, time_to_gap
from bench_mtl.report.tables.means import means
from bench_mtl.report.tables.measures import measures_table
from bench_mtl.report.tables.scaling import scaling_fits, scaling_points
from bench_mtl.report.tables.speed_ups import speed_ups
from bench_mtl.report.tables.statuses import statuses
from bench_mtl.report.tables.summary import not_verified, summary, times, tolerances
from bench_mtl.report.tables.winners import winners
from bench_mtl.results.enclosures import enclosures, objectives
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd


def report_tables(results: Results) -> dict[str, pd.DataFrame]:
    """The tables of a report, by the names of their files; ``measures`` where a problem measures anything."""
    runs, samples, targets = results.runs, results.samples, results.targets
    objective_table = objectives(runs, samples)
    of_runs = run_times(runs, samples, targets)
    winner_table = winners(runs, of_runs, results.view.baseline)
    measured = measures_table(runs, samples, results.measures)
    return {
        "summary": summary(runs, samples, targets),
        "winners": winner_table,
        "speed_ups": speed_ups(runs, of_runs, results.view.baseline),
        "comparisons": comparisons(runs, of_runs, results.view.baseline),
        "means": means(runs, of_runs),
        "scaling": scaling_fits(scaling_points(runs, samples, targets[-1])),
        "times": times(runs),
        "tolerances": tolerances(runs, samples),
        "objectives": objective_table,
        "enclosures": enclosures(objective_table),
        "not_verified": not_verified(runs),
        "statuses": statuses(runs, samples),
        "time_to_gap": time_to_gap(of_runs),
        "instances": by_instance(of_runs),
        **({} if measured.empty else {"measures": measured}),
    }


def report_files(
    results: Results, tables: Mapping[str, pd.DataFrame], formats: Collection[str] = forms.ALL, processes: int = 1
) -> dict[str, bytes]:
    """Return all files of a report by their path inside its folder; the same results give the same bytes.

    Parameters
    ----------
    formats : of `bench_mtl.report.formats.ALL`. With CSV come the data of the figures, the runs and the samples.
    processes : that draw figures where there are many, as of `printing`
    """
    drawn, undrawn = drawings(results, tables) if {*forms.FIGURES, *forms.TEXTS} & set(formats) else ([], [])
    pictures = [form for form in (*forms.FIGURES, "csv") if form in formats]
    with printing(drawn if pictures else [], pictures, processes) as figures:
        files = _texts_and_tables(results, tables, drawn, undrawn, formats)
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
        files["runs.csv"] = to_csv(results.runs.drop(columns=["kind"] if len(results.machines) > 1 else ["kind", "machine"]))
        files["samples.csv"] = to_csv(results.samples)
    if "md" in formats:
        files["report.md"] = markdown(results, tables, drawn, undrawn, formats).encode()
    if "html" in formats:
        files["report.html"] = page(results, tables, drawn, undrawn)
    return files


def _latex(name: str, table: pd.DataFrame) -> str:
    body = to_latex(printed(table.head(catalogue.MOST_ROWS)), wide="Reason" if name == "not_verified" else None)
    part = f" The first {catalogue.MOST_ROWS} of {len(table)} rows." if len(table) > catalogue.MOST_ROWS else ""
    return f"% {TABLES[name].sentence}{part} Needs \\usepackage{{booktabs}}.\n{body}\n"
