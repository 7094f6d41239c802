"""The same command goes on, and runs again only what a change touches."""

from pathlib import Path

import numpy as np
import pytest
from runs import TINY, cases_of, comparable, go_on, runs_in, solver, some_plugins, suite_of

from bench_mtl.engine.suite import Suite
from bench_mtl.runner import InlineExecutor, Setting

PAIR = ('name = "projected_gradient"', 'name = "accelerated_gradient"')


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    return some_plugins(tmp_path / "plugins", "faulty.py", "patient.py")


def resume(folder: Path, suite: Suite, plugins: Path, data_dir: Path | None = None, **which: bool) -> list[str]:
    return go_on(folder, suite, InlineExecutor(Setting(1, plugins, data_dir)), plugins, data_dir, **which)


CHANGED = {
    "option": (suite_of(PAIR[0], PAIR[1] + '\noptions = { restart = "none" }'), 1),
    "limit": (suite_of(*PAIR, limits="seconds = 21.0"), 2),
    "problem": (suite_of(*PAIR, problems=TINY + TINY.replace('"tiny"', '"other"').replace("0.5", "0.25")), 2),
    "labels": (suite_of(PAIR[0] + '\nlabel = "new"', PAIR[1], problems=TINY.replace('"tiny"', '"small"')), 0),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_change_runs_again_what_it_touches_and_changing_it_back_runs_none(tmp_path: Path, plugins: Path, change: str) -> None:
    (suite, number), first, out = CHANGED[change], suite_of(*PAIR), tmp_path / "out"
    assert resume(out, first, plugins) == ["projected_gradient", "accelerated_gradient"]
    before = runs_in(out)
    assert len(resume(out, suite, plugins)) == number
    labels = runs_in(out)["problem_label"]
    assert sorted(labels.items()) == sorted((case.solver_label, case.instance.label) for case in cases_of(suite, plugins))
    assert resume(out, first, plugins) == resume(out, suite, plugins) == resume(out, first, plugins) == []
    assert runs_in(out).equals(before)


def test_a_changed_plugin_runs_its_cases_again(tmp_path: Path, plugins: Path) -> None:
    suite = suite_of(*PAIR, solver("faulty", "fault", "raises", "nan"), 'name = "reports"')
    out = tmp_path / "out"
    assert len(resume(out, suite, plugins)) == 5
    text = (plugins / "solvers" / "faulty.py").read_text()
    (plugins / "solvers" / "faulty.py").write_text(text + "\n# another\n")
    assert resume(out, suite, plugins) == ["faulty_raises", "faulty_nan"]
    (plugins / "solvers" / "faulty.py").write_text(text)
    assert resume(out, suite, plugins) == []
    with (plugins / "problems" / "boxes.py").open("a") as file:
        file.write("\n# another\n")
    assert len(resume(out, suite, plugins)) == 5


def test_changed_data_run_their_cases_again(tmp_path: Path, plugins: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()

    def save(name: str, seed: int) -> None:
        dice = np.random.default_rng(seed)
        np.savez(data / f"{name}.npz", X=dice.normal(size=(8, 4)), Y=np.sign(dice.normal(size=(8, 2))))

    for seed, name in enumerate(("one", "two")):
        save(name, seed)
    problems = "".join(f'[[problems]]\nname = "box"\nlabel = "{name}"\ndata = {{ file = "{name}.npz" }}\n' for name in ("one", "two"))
    suite = suite_of(*PAIR, problems=problems)
    out = tmp_path / "out"
    assert len(resume(out, suite, plugins, data)) == 4
    before = comparable(out)
    save("two", 2)
    assert len(resume(out, suite, plugins, data)) == 2
    runs, _ = comparable(out)
    assert [run for run in runs if run["problem_label"] == "one"] == [run for run in before[0] if run["problem_label"] == "one"]
    assert [run["primal"] for run in runs] != [run["primal"] for run in before[0]]
    save("two", 1)
    assert resume(out, suite, plugins, data) == []
    assert comparable(out) == before


def test_failures_are_tried_again_when_asked(tmp_path: Path, plugins: Path) -> None:
    suite = suite_of(*PAIR, solver("faulty", "fault", "raises", "far"), 'name = "liar"')
    out = tmp_path / "out"
    assert len(resume(out, suite, plugins)) == 5
    before, numbers = comparable(out), runs_in(out)["id"]
    assert resume(out, suite, plugins, retry_failed=True) == ["faulty_raises", "liar"]
    assert comparable(out) == before
    assert (runs_in(out)["id"] != numbers).to_dict() == {
        "projected_gradient": False, "accelerated_gradient": False, "faulty_raises": True, "faulty_far": False, "liar": True,
    }  # fmt: skip
    assert len(resume(out, suite, plugins, force=True)) == 5
    assert comparable(out) == before
    assert not set(runs_in(out)["id"]) & set(numbers)
