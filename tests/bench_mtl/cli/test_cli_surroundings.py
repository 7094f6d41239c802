"""What stands around a command, and changes nothing that it does: streams, variables, files of the folder, and solvers that write files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.cli.options import key_values
from bench_mtl.data.fingerprint import Watch
from bench_mtl.data.readers import write_shards
from bench_mtl.results import Store

SUITE = """
name = "tiny"
targets = [1e-1]
limits = {{ seconds = 10.0 }}

[[problems]]
name = "l1inf_glm"
data = {data}
parameters = {{ penalty = "0.5 max" }}

[[solvers]]
name = "{solver}"
"""

#: A solver that writes other numbers over the features of its problem.
SCRIBE = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Capability, IterativeSolver


@dataclass(frozen=True)
class Scribe(IterativeSolver):
    name: ClassVar[str] = "scribe"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.PROX})
    takes_shards: ClassVar[bool] = True

    def steps(self, problem, start=None):
        yield Iterate(problem.start_point())
        np.save("set/00000.npy", 2.0 * np.load("set/00000.npy"))
        yield Iterate(problem.start_point(), step=1)
"""


def test_a_run_needs_no_streams_no_backend_of_figures_and_no_module_of_the_current_folder(tmp_path: Path) -> None:
    data = '{ name = "synthetic_glm", features = 4, examples = 20 }'
    (tmp_path / "tiny.toml").write_text(SUITE.format(data=data, solver="accelerated_gradient"))
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    words = [sys.executable, "-m", "bench_mtl", "run", "tiny.toml", "--out", "out"]
    environment = {**os.environ, "MPLBACKEND": "nonsense"}
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *words],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "out" / "report.md").is_file()
    assert not (tmp_path / "imported").exists()


def test_rows_of_data_that_changed_while_they_were_made_are_void(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    manifest = write_shards(tmp_path / "set", [(rng.standard_normal((9, 3)), rng.standard_normal((9, 2)))])
    features = manifest.parent / "00000.npy"
    before = features.read_bytes()
    (tmp_path / "plugins" / "solvers").mkdir(parents=True)
    (tmp_path / "plugins" / "solvers" / "scribe.py").write_text(SCRIBE)
    data = '{ file = "set/shards.json" }'
    for solver in ("scribe", "accelerated_gradient"):
        (tmp_path / f"{solver}.toml").write_text(SUITE.format(data=data, solver=solver))
    result = command("run", "scribe.toml", "--out", "out", "--plugins", "plugins", "--isolation", "inline")
    assert result.code == 3, result.text
    assert f"{features} has changed while " in result.err[-1]
    with Store.open(tmp_path / "out") as store:
        assert not store.finished()
    result = command("run", "accelerated_gradient.toml", "--out", "other", "--isolation", "inline")
    assert (result.code, "00000.npy is not what was written" in result.err[-1]) == (2, True)
    features.write_bytes(before)
    watch = Watch([{"file": str(manifest)}, {"name": "digits"}, {"name": "no such set"}], None)
    assert watch.changed() == []
    os.utime(features, ns=(0, 0))  # the same bytes
    assert watch.changed() == []
    features.unlink()
    assert watch.changed() == [features]


def test_names_of_columns_need_no_brackets() -> None:
    texts = ("labels=red, green", "drop=name", "separator=,", 'targets="a,b"')
    assert key_values(texts, "--data-option") == {"labels": ["red", "green"], "drop": "name", "separator": ",", "targets": "a,b"}
