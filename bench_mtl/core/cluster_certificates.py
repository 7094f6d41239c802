"""What admits to a Dask cluster of one's own: a key with its certificate in one file, and a configuration of Dask that asks for it."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from bench_mtl.core.dask_cluster import distributed_module
from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists, is_dir

#: The files that are written: the key with its certificate, and the configuration.
TOKEN, CONFIGURATION = "cluster.pem", "dask.yaml"

_CONFIGURATION = """\
# Dask with this configuration (DASK_CONFIG names this file) talks to nobody but those who hold the same key.
distributed:
  comm:
    default-scheme: tls
    require-encryption: true
    tls:
      ca-file: {token}
      scheduler: {{cert: {token}}}
      worker: {{cert: {token}}}
      client: {{cert: {token}}}
  # Pages of HTTP know no keys: there are none until the preload closes their ports.
  scheduler:
    http: {{routes: []}}
    preload: [bench_mtl.core.dask_cluster]
  worker:
    http: {{routes: []}}
    preload: [bench_mtl.core.dask_cluster]
"""


def write_certificates(asker: str, folder: Path) -> Path:
    """Make a key and its certificate, valid for a year, and write them to a new folder, which nobody else may read.

    Whoever holds ``cluster.pem`` can connect to a scheduler and workers that use it, and run code there. ``dask.yaml`` makes Dask use it,
    where `folder` is at the same path.

    Returns
    -------
    the configuration of Dask, an absolute path

    Raises
    ------
    InputError : there is something at `folder`, there is no folder for it to be in, its path cannot be printed, or Dask or the package that
        makes keys is not installed.
    """
    folder = folder.absolute()
    if exists("folder", folder):
        raise InputError(f"{folder} exists: a key is written to a new folder")
    if not is_dir("folder", folder.parent):
        raise InputError(f"{folder.parent} is not a folder")
    if not str(folder).isprintable():
        raise InputError(f"{str(folder)!r} has characters that a configuration cannot hold")
    try:
        made = distributed_module(asker).Security.temporary()
    except ImportError:
        raise InputError(f"{asker} needs the package cryptography: pip install 'bench-mtl[cluster]'") from None
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as parent:
        inside = Path(parent) / folder.name
        inside.mkdir(0o700)
        with open(os.open(inside / TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(made.tls_client_cert + made.tls_client_key)
        text = _CONFIGURATION.format(token=json.dumps(str(folder / TOKEN), ensure_ascii=False))
        (inside / CONFIGURATION).write_text(text, encoding="utf-8")
        inside.rename(folder)
    return folder / CONFIGURATION
