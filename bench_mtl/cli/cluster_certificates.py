"""`bench-mtl cluster-certificates`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import answer_json, say
from bench_mtl.cli.options import A_PATH, json_option


@click.command("cluster-certificates")
@click.argument("folder", type=A_PATH)
@json_option
def cluster_certificates(folder: Path) -> None:
    """Make a key for a Dask cluster of your own, with its certificate and a configuration of Dask, in a new FOLDER.

    Scheduler, workers and `run --cluster tls://...` use it where the environment variable DASK_CONFIG names FOLDER/dask.yaml. They talk to
    nobody else. Whoever holds FOLDER/cluster.pem can run code on the cluster: keep it as you keep a password. It is valid for a year.

    Exit code 0: written; 2: bad usage or input, and nothing is written; 3: the disk is full; 4: a bug of bench-mtl.

    \b
    Examples:
      bench-mtl cluster-certificates ~/my-cluster
      export DASK_CONFIG=~/my-cluster/dask.yaml
    """
    from bench_mtl.core.cluster_certificates import TOKEN, write_certificates

    configuration = write_certificates("cluster-certificates", folder)
    say(f"{configuration.with_name(TOKEN)}: the key of a cluster, valid for a year; whoever holds it can run code there")
    say(f"export DASK_CONFIG={configuration} makes Dask use it")
    answer_json(lambda: {"key": configuration.with_name(TOKEN), "configuration": configuration})
