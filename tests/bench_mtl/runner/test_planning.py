"""Plug-ins are planned with in a process of their own: what they do there is one line."""

import sys
from pathlib import Path

import pytest
from plugin_text import iterative
from runs import HINGE, solver, suite_text

from bench_mtl import cli
from bench_mtl.core.errors import InputError
from bench_mtl.engine.description import entries
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.source_digest import PLUGIN_PACKAGE
from bench_mtl.engine.suite import expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.runner.planning import listed_entries, planned_cases

SUITE = suite_text(solver("mine", "size", 1.0, 2.0), 'name = "conic"', problems=HINGE)

HONEST = "return f'mine {self.size:g}'"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.toml").write_text(SUITE)
    return "suite.toml"


def write(folder: Path, at_import: str = "", label: str = HONEST) -> Path:
    (folder / "solvers").mkdir(parents=True)
    more = f"size: float = 1.0\n\n@property\ndef label(self):\n    {label}"
    (folder / "solvers" / "mine.py").write_text(iterative("mine", "yield Iterate(problem.zero())", more=more, at_import=at_import))
    return folder


def test_it_tells_what_the_registry_tells_and_imports_nothing_here(tmp_path: Path, suite: str) -> None:
    folder, chosen = write(tmp_path / "plugins"), read_suite(suite)
    before = dict(sys.modules)
    cases, listed = planned_cases(chosen, folder), listed_entries(folder, "solvers")
    for old, new, words in (('"mine"', '"mein"', "did you mean 'mine'"), ("size =", "sise =", "did you mean 'size'")):
        Path("wrong.toml").write_text(SUITE.replace(old, new))
        with pytest.raises(InputError, match=words):
            planned_cases(read_suite("wrong.toml"), folder)
    assert not [name for name, module in sys.modules.items() if name.startswith(PLUGIN_PACKAGE) and before.get(name) is not module]
    registry = load_registry(folder)
    assert cases == expand(chosen, registry)
    assert [case.key for case in cases] == [case.key for case in expand(chosen, registry)]
    assert listed == entries(registry, "solvers")
    assert list(dict.fromkeys(case.solver_label for case in cases)) == ["mine 1", "mine 2", "clarabel"]


#: What a plug-in does as it is imported, what it does when it is asked for its label, and what is said of it.
DEEDS = {
    "exits": ("os._exit(0)", HONEST, r"mine.py ends the process that asks it: exit code 0"),
    "crashes": ("os.kill(os.getpid(), signal.SIGSEGV)", HONEST, r"mine.py ends the process that asks it: signal 11"),
    "raises": ("raise KeyboardInterrupt('x\\x1b[2Jy')", HONEST, r"KeyboardInterrupt: x\\x1b\[2Jy"),
    "hangs": ("while True: pass", HONEST, "mine.py takes more than 1 s"),
    "fills memory": ("held = [bytearray(2**24) for _ in range(60)]; time.sleep(60)", HONEST, "mine.py takes more than 900 MiB"),
    "label hangs": ("", "time.sleep(600)", "solver 'mine' takes more than 1 s"),
    "label is long": ("", "return 'x' * 4_000_000", "must have at most 200 characters, but has 4000000"),
    "label raises": ("", "raise ValueError('\\x1b[2J' * 9999)", "solver 'mine' cannot tell its label or version: ValueError"),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_what_a_plug_in_does_is_one_line(deed: str, tmp_path: Path, suite: str) -> None:
    at_import, label, words = DEEDS[deed]
    folder = write(tmp_path / "plugins", at_import, label)
    with pytest.raises(InputError, match=words) as refused:
        planned_cases(read_suite(suite), folder, seconds=1.0 if "hangs" in deed else 60.0, mib=900.0)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 3_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "suite.toml"), ("list", "solvers"),
        pytest.param(("validate", "--cases", "1"), marks=pytest.mark.slow), pytest.param(("doctor",), marks=pytest.mark.slow),
        ("solve", "l1inf_hinge", "mine", "--data", "synthetic_l1inf", "--param", "radius=1"),
        pytest.param(("path", "l1inf_hinge", "mine", "--data", "synthetic_l1inf", "--over", "radius=1,2"), marks=pytest.mark.slow),
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_no_command_ends_with_a_plug_in_that_exits(
    arguments: tuple[str, ...], tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "plugins", "print('\\x1b[2J', flush=True); os._exit(0)")
    monkeypatch.setattr(sys, "argv", ["bench-mtl", *arguments, "--plugins", "plugins"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capfd.readouterr()
    assert ended.value.code == 2
    assert said.err.startswith("bench-mtl: plug-in folder plugins: ")
    assert "mine.py ends the process" in said.err
    assert len(said.err.splitlines()) == 1
    assert "\x1b" not in said.out + said.err
