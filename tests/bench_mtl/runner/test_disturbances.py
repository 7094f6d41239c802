"""What the machine does beside a run, from counters that are made up, and from those of this machine."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runs import Executing, run_suite, solver, suite_of

from bench_mtl.runner import Setting
from bench_mtl.runner.disturbances import Surroundings
from bench_mtl.runner.executors import processors

#: Ticks a second.
HERE = os.sysconf("SC_CLK_TCK")

CORES = "other programs had {} % of its cores, hyper-threads included"
QUIET = {"seconds": 10.0, "busy": (0.0, 0.0, 0.0, 10.0), "ours": 10.0}


class Machine:
    """Four processors of two cores, 0 and 2, 1 and 3, as Linux shows them; the run has the last."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = self.ours = 100.0
        self.show()

    def show(self, busy: tuple[float, ...] = (0.0,) * 4, stolen: float = 0.0, swapped: int = 0, throttled: int = 0) -> None:
        lines = [f"cpu{i} {100 * HERE + round(busy[i] * HERE)} 7 0 5 9 0 0 {round(stolen * HERE)} 0 0" for i in range(4)]
        self._write("proc/stat", "\n".join(["cpu 1 2 3 4 5 6 7 8 9 10", *lines, "intr 5 6 7", ""]))
        self._write("proc/vmstat", f"pgpgin 77\npswpin {3 + swapped}\npswpout 5\npgfault 99\n")
        for i in range(4):
            self._write(f"sys/devices/system/cpu/cpu{i}/topology/thread_siblings_list", f"{i % 2},{i % 2 + 2}\n")
            self._write(f"sys/devices/system/cpu/cpu{i}/thermal_throttle/core_throttle_count", f"{4 + throttled}\n")

    def _write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def disturbances(self, *, seconds: float, ours: float, slots: int = 1, **shown: object) -> tuple[str, ...]:
        """Of a run that takes so long and uses so much, while the counters grow by so much."""
        beside = Surroundings(Setting(processors=(3,), slots=slots), lambda: self.ours, self.root, lambda: self.now)
        beside.begin()
        self.now += seconds
        self.ours += ours
        self.show(**shown)  # type: ignore[arg-type]
        return beside.disturbances()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ()),
        ({"busy": (3.0, 0.0, 0.0, 10.0)}, ()),
        ({"busy": (9.0, 4.0, 0.0, 10.0)}, ("other programs used 1.3 of 4 processors", CORES.format(20))),
        ({"busy": (0.0, 3.0, 0.0, 10.0)}, (CORES.format(15),)),
        ({"busy": (0.0, 0.0, 0.0, 10.0), "ours": 7.0}, (CORES.format(15),)),
        ({"busy": (9.0, 9.0, 0.0, 10.0), "slots": 3}, ()),
        ({"busy": (9.0, 9.0, 9.0, 10.0), "slots": 2}, ("other programs used 1.7 of 4 processors",)),
        ({"busy": (9.0, 9.0, 9.0, 10.0), "ours": math.nan, "swapped": 12}, ("the system swapped 12 pages",)),
        ({"busy": (0.01, 0.01, 0.01, 0.01), "seconds": 0.002, "ours": 0.0, "stolen": 0.01}, ()),
        ({"stolen": 0.1}, ()),
        ({"stolen": 0.4}, ("the hypervisor took 4 % of the time",)),
        ({"throttled": 1, "swapped": 1}, ("the system swapped 1 page", "the processor was throttled 1 time")),
    ],
    ids=["quiet", "few", "load", "hyper-thread", "own_core", "slots", "slots_and_others", "lost", "short", "hair", "steal", "counters"],
)  # fmt: skip
def test_what_is_not_our_own_work_is_named_with_its_number(tmp_path: Path, changed: dict[str, object], expected: tuple[str, ...]) -> None:
    assert Machine(tmp_path).disturbances(**{**QUIET, **changed}) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("stat", [None, "", "cpu 1\ncpu0 1 2\n", "cpu\ncpu0 a b c d e f g h\n"])
def test_where_the_system_does_not_tell_nothing_is_said(tmp_path: Path, stat: str | None) -> None:
    if stat is not None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/stat").write_text(stat)
    beside = Surroundings(Setting(), lambda: 0.0, tmp_path)
    beside.begin()
    assert beside.disturbances() == ()


@pytest.mark.skipif(sys.platform != "linux", reason="no counters")
def test_a_program_beside_a_run_is_in_its_row(tmp_path: Path, shared: Executing) -> None:
    (place,) = processors(1, 1)
    code = f"import os\nos.sched_setaffinity(0, {place})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as busy:
        try:
            busy.stdout.readline()  # type: ignore[union-attr]
            runs = run_suite(tmp_path, suite_of(solver("waits", "number", 1, pause=0.01), limits="seconds = 0.6"), executor=shared)
        finally:
            busy.kill()
    assert any(sentence.startswith("other programs ") for sentence in json.loads(runs["disturbances"].iloc[0]))
