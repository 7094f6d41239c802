"""`bench-mtl shard`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli import completion
from bench_mtl.cli.asked import data_spec
from bench_mtl.cli.console import answer, answer_json, say
from bench_mtl.cli.options import A_PATH, data_dir_option, repeatable, script_options
from bench_mtl.core.text import LONGEST_LINE, one_line


@click.command()
@click.argument("source", shell_complete=completion.data_sets)
@click.option("--out", required=True, type=A_PATH, help="Folder of the shards: a new one.")
@click.option("--rows", type=int, help="Rows of a shard.")
@click.option("--megabytes", type=float, help="MiB of the features of a shard, and of its targets at most; 128 by default.")
@click.option("--name", help="Of the data set; that of the file by default.")
@repeatable("--data-option", "KEY=VALUE", "Option of the file, e.g. labels=3.")
@data_dir_option
@script_options
def shard(
    source: str, out: Path, rows: int | None, megabytes: float | None, name: str | None, data_option: tuple[str, ...], data_dir: Path | None
) -> None:
    """Write the data of a file, SOURCE, in shards, for more examples than memory holds: about two shards at a time are in memory.

    SOURCE is LIBSVM, .csv, .tsv, .parquet, .npz or .npy. OUT/shards.json is a data file like any other, with the data that the file
    itself has, bit by bit. OUT appears when all of it is written.

    --quiet leaves the line that says what was written.

    \b
    Examples:
      bench-mtl shard clicks.svm --out clicks
      bench-mtl shard flowers.csv --out flowers --data-option labels=3 --data-option drop=name --rows 100000
      bench-mtl solve l1inf_hinge auto --data clicks/shards.json --param penalty="0.1 max" --target 1e-4
    """
    from bench_mtl.data.sharding import shard_file

    spec = data_spec(source, data_option, (), data_dir)
    written = shard_file(spec, out, rows=rows, megabytes=megabytes, name=name, data_dir=data_dir, notify=say)
    for note in written.notes:
        say(f"note: {one_line(note, LONGEST_LINE)}")
    answer(f"{written.manifest}: {written}")
    answer_json(lambda: written)
