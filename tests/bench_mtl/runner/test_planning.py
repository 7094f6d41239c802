"""Plug-ins are planned with in a process of their own: what they do there is one line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench_mtl import cli
from bench_mtl.core.errors import InputError
from bench_mtl.engine.description import RegistryPlanner, entries
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.source_digest import PLUGIN_PACKAGE
from bench_mtl.runner.confinement import landlock_version
from bench_mtl.runner.planning import PluginPlanner

SOLVER = '''
import os, sys, time
from dataclasses import dataclass
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import IterativeSolver

{at_import}

@dataclass(frozen=True)
class Mine(IterativeSolver):
    """Stands still."""
    size: float = 1.0
    name = "mine"
    requires = frozenset()

    @property
    def label(self):
        {label}

    def steps(self, problem, start=None):
        yield Iterate(problem.zero())
'''

SUITE = """
[[problems]]
name = "l1inf_hinge"
data = { name = "synthetic_l1inf", tasks = 2, features = 4, examples = 5 }
parameters = { radius = 1.0 }

[[solvers]]
name = "mine"

[[solvers]]
name = "conic"
"""

HONEST = "return f'mine {self.size:g}'"
SEND = """
        for fd in os.listdir("/proc/self/fd"):
            if os.path.exists(f"/proc/self/fd/{fd}") and "socket" in os.readlink(f"/proc/self/fd/{fd}"):
                os.write(int(fd), bytes([255]) * 99)
        """


def write(folder: Path, at_import: str = "", label: str = HONEST) -> Path:
    (folder / "solvers").mkdir(parents=True, exist_ok=True)
    (folder / "solvers" / "mine.py").write_text(SOLVER.format(at_import=at_import, label=label))
    return folder


def test_it_tells_what_the_registry_tells_and_imports_nothing_here(tmp_path: Path) -> None:
    folder = write(tmp_path)
    before = dict(sys.modules)
    with PluginPlanner(folder) as planner:
        found = [planner.plan_solver("mine", {"size": 2.0}), planner.plan_solver("conic", {})], planner.entries("solvers")
        for name, options, words in (("mein", {}, "did you mean 'mine'"), ("mine", {"sise": 1}, "did you mean 'size'")):
            with pytest.raises(InputError, match=words):
                planner.plan_solver(name, options)
    assert not [name for name, module in sys.modules.items() if name.startswith(PLUGIN_PACKAGE) and before.get(name) is not module]
    registry = load_registry(folder)
    own = RegistryPlanner(registry)
    assert found == ([own.plan_solver("mine", {"size": 2.0}), own.plan_solver("conic", {})], entries(registry, "solvers"))
    assert found[0][0].label == "mine 2"


#: What a plug-in does as it is imported, what it does when it is asked for its label, and what is said of it.
DEEDS = {
    "exits": ("os._exit(0)", HONEST, r"mine.py ends the process that asks it \(exit code 0\)"),
    "leaves": ("sys.exit('bye')", HONEST, "mine.py cannot be imported: SystemExit: bye"),
    "crashes": ("import signal; os.kill(os.getpid(), signal.SIGSEGV)", HONEST, r"mine.py ends the process .*\(signal 11\)"),
    "raises": ("raise KeyboardInterrupt('x\\x1b[2Jy')", HONEST, r"KeyboardInterrupt: x\\x1b\[2Jy"),
    "hangs": ("while True: pass", HONEST, "mine.py takes more than 1 s"),
    "fills memory": ("held = [bytearray(2**24) for _ in range(60)]; time.sleep(60)", HONEST, "mine.py takes more than 900 MiB"),
    "label exits": ("", "os._exit(3)", r"solver 'mine' ends the process that asks it \(exit code 3\)"),
    "label hangs": ("", "time.sleep(600)", "solver 'mine' takes more than 1 s"),
    "label is long": ("", "return 'x' * 4_000_000", "must have at most 200 characters, not 4000000"),
    "label commands": ("", "return '\\x1b]0;title\\x07'", r"must be visible characters on one line, not '\\x1b\]0;title\\x07'"),
    "label raises": ("", "raise ValueError('\\x1b[2J' * 9999)", "solver 'mine' cannot tell its label or version: ValueError"),
    "writes anywhere": ("", f"{SEND}return 'mine'", "solver 'mine' sends what cannot be read"),
}


#: Of two that are told in the same way, the other is looked at every time.
SLOW = ("leaves", "fills memory", "crashes", "raises", "label hangs", "label commands", "label raises")


@pytest.mark.parametrize("deed", [pytest.param(deed, marks=pytest.mark.slow) if deed in SLOW else deed for deed in DEEDS])
def test_what_a_plug_in_does_is_one_line(deed: str, tmp_path: Path) -> None:
    at_import, label, words = DEEDS[deed]
    if deed == "writes anywhere" and not sys.platform.startswith("linux"):
        pytest.skip("descriptors are looked up in /proc")
    folder = write(tmp_path, at_import, label)
    seconds = 1.0 if "hangs" in deed else 60.0
    with pytest.raises(InputError, match=words) as refused, PluginPlanner(folder, seconds=seconds, mib=900.0) as planner:
        planner.plan_solver("mine", {})
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 3_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "suite.toml"), ("list", "solvers"),
        pytest.param(("validate", "--cases", "1"), marks=pytest.mark.slow), pytest.param(("doctor",), marks=pytest.mark.slow),
        ("solve", "l1inf_hinge", "mine", "--data", "synthetic_l1inf", "--param", "radius=1"),
        pytest.param(
            ("path", "l1inf_hinge", "mine", "--data", "synthetic_l1inf", "--over", "radius=1,2"), marks=pytest.mark.slow
        ),
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_no_command_ends_with_a_plug_in_that_exits(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "plugins", "print('\\x1b[2J', flush=True); os._exit(0)")
    (tmp_path / "suite.toml").write_text(SUITE)
    monkeypatch.setattr(sys, "argv", ["bench-mtl", *arguments, "--plugins", "plugins"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capfd.readouterr()
    assert ended.value.code == 2
    assert said.err.startswith("bench-mtl: plug-in folder plugins: ")
    assert "mine.py ends the process" in said.err
    assert len(said.err.splitlines()) == 1
    assert "\x1b" not in said.out + said.err


def test_a_run_imports_no_plug_in_in_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["bench_mtl.cli.run"], "_reported", lambda *_, **__: (0, ()))
    (tmp_path / "pids").touch()
    write(tmp_path / "plugins", f"open({str(tmp_path)!r} + '/pids', 'a').write(f'{{os.getpid()}}\\n')")
    (tmp_path / "suite.toml").write_text(SUITE.replace('\n[[solvers]]\nname = "conic"\n', "") + "\n[limits]\niterations = 1\n")
    monkeypatch.setattr(sys, "argv", ["bench-mtl", "run", "suite.toml", "--plugins", "plugins"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (0, None), capfd.readouterr().err
    assert "mine 1" in capfd.readouterr().out
    assert str(os.getpid()) not in (tmp_path / "pids").read_text().split()


@pytest.mark.skipif(landlock_version() == 0, reason="no Landlock here")
def test_a_plug_in_that_is_planned_with_cannot_write_the_results(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    folder = write(tmp_path / "plugins", f"open({str(tmp_path / 'results' / 'mine')!r}, 'w')")
    with pytest.raises(InputError, match=r"mine\.py cannot be imported: PermissionError"):
        PluginPlanner(folder, guarded=tmp_path / "results")
    assert not list((tmp_path / "results").iterdir())
