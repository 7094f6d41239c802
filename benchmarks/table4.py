"""Table IV of Chen, Liu, Ye (2012): the published numbers beside those of a results folder of suite `table4`, and the gap proven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pandas as pd
from tabulate import tabulate

from bench_mtl.results import Store
from papers.chen.table4 import SETTINGS, SHORT
from papers.published import published

#: What identifies a cell of the table.
_KEY = ["gamma", "tau", "objective_change", "solver"]

_SENTENCE = """\
The rule stops where one step changes the objective by less than 10^-i. It proves nothing: the column of the proven gap says how far
from optimal it may have stopped. Seconds of the paper are MATLAB's on its own machine; iterations depend on the normalisation of Scene and
on the first L of the line search, which the paper does not state."""


def side_by_side(runs: pd.DataFrame) -> pd.DataFrame:
    """The published table with the listed runs that stopped by the same rule at the same change; missing ones stay empty."""
    ours = pd.DataFrame([_cell(run) for _, run in runs.iterrows()], columns=[*_KEY, "our_iterations", "our_seconds", "proven_gap"])
    ours = ours.dropna(subset=["objective_change"]).groupby(_KEY, as_index=False).median()
    return published_table().merge(ours, how="left", on=_KEY, validate="one_to_one")


def published_table() -> pd.DataFrame:
    """Table IV: iterations and seconds."""
    names, taus = {short: name for name, short in SHORT.items()}, dict(SETTINGS)
    numbers: dict[tuple[Any, ...], dict[str, float | None]] = {}
    for claim in published("chen2012_table4"):
        if claim.is_number and claim.subject:
            gamma, change = (float(claim.places[column][0]) for column in ("gamma", "change"))
            numbers.setdefault((gamma, taus[gamma], change, names[claim.subject]), {})[claim.measure] = claim.number
    table = pd.DataFrame([{**dict(zip(_KEY, key, strict=True)), **values} for key, values in numbers.items()])
    return table.astype({"iterations": int})


def _cell(run: Any) -> tuple[Any, ...]:
    parameters, options = json.loads(run["parameters"]), json.loads(run["options"])
    key = (parameters["penalty"], parameters["radius"], options.get("objective_change"), run["solver"])
    return (*key, run["iterations"], run["solve_seconds"], run["relative_gap"])


@click.command(help=__doc__)
@click.argument("results", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(results: Path) -> None:
    table = side_by_side(Store.open(results).runs())
    table["paper / ours, a step"] = (table["seconds"] / table["iterations"]) / (table["our_seconds"] / table["our_iterations"])
    text = tabulate(table, headers="keys", tablefmt="pipe", showindex=False, floatfmt=".3g", missingval="-")  # type: ignore[arg-type]
    (results / "table4.md").write_text(f"# Table IV beside ours\n\n{_SENTENCE}\n\n{text}\n")
    click.echo(text)


if __name__ == "__main__":
    main()
