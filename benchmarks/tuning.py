"""Which setting of each solver wins: `bench-mtl run benchmarks/tuning.toml`, then `python -m benchmarks.tuning results/tuning`.

Every solver has eight settings there. By problem, the setting with the least geometric mean of seconds to the target wins; an instance
where it does not prove the target counts with the limit. The headline suites run the winner beside the defaults where it takes at most
0.9 times as long.
"""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pandas as pd
from tabulate import tabulate

from bench_mtl.results.frames import times_to_gap
from bench_mtl.results.loading import Results, read_results


def settings(results: Results) -> pd.DataFrame:
    """Return a row for every problem, solver and setting, the best first: instances proven, seconds, and those over the defaults'."""
    runs = results.runs
    names = [json.loads(options).get("backend", solver) for solver, options in zip(runs["solver"], runs["options"], strict=True)]
    times = times_to_gap(runs, results.samples, results.targets[-1:])[["run_id", "seconds"]]
    table = (
        runs[["id", "position", "problem", "solver_label", "limit_seconds"]]
        .assign(solver=names)
        .merge(times, left_on="id", right_on="run_id")
    )
    # The defaults are the first setting of every solver.
    table["place"] = table.groupby(["problem", "solver"])["position"].rank()
    table["log_seconds"] = np.log(table["seconds"].fillna(table["limit_seconds"]))
    groups = table.groupby(["problem", "solver", "solver_label"])
    summary = groups.agg(proven=("seconds", "count"), of=("id", "size"), place=("place", "min"), mean=("log_seconds", "mean")).reset_index()
    first = summary.sort_values("place").groupby(["problem", "solver"])["mean"].transform("first")
    summary["seconds"], summary["over defaults"] = np.exp(summary["mean"]), np.exp(summary["mean"] - first)
    return summary.sort_values(["problem", "solver", "mean"]).drop(columns=["place", "mean"])


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
def main(folder: Path) -> None:
    table = settings(read_results(folder))
    click.echo(tabulate(table.to_numpy().tolist(), headers=list(table.columns), tablefmt="github", floatfmt=".3g"))


if __name__ == "__main__":
    main()
