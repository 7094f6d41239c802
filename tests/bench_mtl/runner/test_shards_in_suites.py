"""Suites on data in shards: a case has Dask workers of its own, which are measured and ended with it, however it ends."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_text import iterative
from runs import PLUGINS, await_that, cases_of, started_here, suite_of

from bench_mtl.core.shards import Shards
from bench_mtl.core.types import Status
from bench_mtl.data.readers import write_shards
from bench_mtl.engine.suite import Suite
from bench_mtl.results import Store
from bench_mtl.runner import InlineExecutor, LocalExecutor, Setting, run_cases

pytest.importorskip("distributed", reason="Dask is not installed")

EXAMPLES, D, M, SHARDS = 40, 6, 2, 3

#: A solver of shards that stays in its second step for ever.
STUCK = iterative(
    "stuck",
    "point = problem.start_point()\nproblem.value_and_gradient(point)\nyield Iterate(point, None, 1, 1.0)\ntime.sleep(3600.0)",
    more="requires = frozenset({Capability.SMOOTH, Capability.PROX})\ntakes_shards = True",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled examples in shards, in a data directory."""
    made = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    W = rng.standard_normal((D, M))

    def parts() -> Iterator[tuple[Any, Any]]:
        for _ in range(SHARDS):
            X = rng.standard_normal((EXAMPLES, D))
            yield X, np.where(X @ W + rng.standard_normal((EXAMPLES, M)) > 0.0, 1.0, -1.0)

    write_shards(made / "toy", parts())
    return made


def problem(**options: Any) -> str:
    written = "".join(f", {name} = {json.dumps(value)}" for name, value in options.items())
    data = f'data = {{ file = "toy/shards.json"{written} }}'
    return f'[[problems]]\nname = "l1inf_glm"\nlabel = "toy {options}"\n{data}\nparameters = {{ loss = "logistic", radius = 1.0 }}\n'


def run_on(folder: Path, tmp_path: Path, suite: Suite) -> Any:
    """Return the runs of a suite, of which no process is left."""
    plugins, out, before = tmp_path / "plugins", tmp_path / "out", started_here()
    (plugins / "solvers").mkdir(parents=True)
    (plugins / "solvers" / "stuck.py").write_text(STUCK)
    with Store.create(out, suite) as store, LocalExecutor(Setting(1, plugins, data_dir=folder)) as executor:
        run_cases(store.plan(cases_of(suite, plugins, folder)), store, executor=executor)
        runs = store.runs()
    assert await_that(lambda: started_here() <= before)
    return runs


def test_a_run_has_workers_of_its_own_and_the_bits_of_a_run_without(folder: Path, tmp_path: Path) -> None:
    suite = suite_of('name = "accelerated_gradient"', limits="seconds = 60.0", problems=problem() + problem(workers=1))
    runs = run_on(folder, tmp_path, suite)
    assert set(runs["status"]) == {"verified"}, list(runs["reason"])
    assert runs["primal"].nunique() == runs["dual"].nunique() == 1
    alone, with_worker = (json.loads(text) for text in runs["info"])
    assert alone == {}  # nothing left behind, nothing sent
    assert with_worker["shards"] == SHARDS
    assert with_worker["messages"] == 2 * with_worker["rounds"] > 0
    assert runs["peak_memory_mib"][1] > runs["peak_memory_mib"][0]


def test_no_run_profits_from_what_the_one_before_has_computed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms take passes over the data, and every run makes its own."""
    passes: list[int] = []

    def counted(shards: Shards, *arguments: Any, **named: Any) -> Any:
        passes[-1] += 1
        return total(shards, *arguments, **named)

    total = Shards.total
    monkeypatch.setattr(Shards, "total", counted)
    suite = suite_of('name = "accelerated_gradient"', limits="seconds = 60.0", problems=problem(), top="repetitions = 3")
    with InlineExecutor(Setting(1, PLUGINS, data_dir=folder)) as executor:
        for case in cases_of(suite, data_dir=folder):
            passes.append(0)
            assert executor.submit(case).result().record.status is Status.VERIFIED
    assert passes[0] == passes[1] == passes[2] > 5


@pytest.mark.slow
def test_workers_die_with_a_run_that_is_killed_at_its_time_limit(folder: Path, tmp_path: Path) -> None:
    suite = suite_of('name = "stuck"', limits="seconds = 1.0", problems=problem(workers=1))
    runs = run_on(folder, tmp_path, suite)
    (run,) = runs.to_dict("records")
    assert run["status"] == "timeout", run["reason"]
    assert "killed" in run["reason"]
