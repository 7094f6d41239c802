"""Run numerical tests as other processors would: under other kernels of OpenBLAS, and with NumPy's vector instructions switched off.

`make portable` runs `python tests/portable.py`: the tests with the marker `numerics`, laws and certificates, under two settings that change
between them all that can be changed. `make portable ALL=1` runs `python tests/portable.py --all`: all tests of what is numerical, under all
settings. Each has one line of output. A setting that this processor cannot run, or that leaves the same instructions in use as an earlier
one or as `make test`, is skipped by name. The exit code is 1 where a test fails or a setting has no effect.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent

#: Where results depend on the order in which a processor sums; tests marked `numerics` are among them.
NUMERICAL = (
    *(f"bench_mtl/{folder}" for folder in ("core", "projections", "model", "metrics", "stats", "weak_learners")),
    *("problems", "solvers", "laws"),
    *(f"bench_mtl/estimators/test_{name}.py" for name in ("linear", "matrix_normal_fits", "precisions", "row_space", "structure_fits")),
)

#: OpenBLAS's kernels, the features of a processor (as NumPy names them) that they need, and the names under which OpenBLAS may report
#: them: builds without kernels for Zen take Haswell's.
BLAS_KERNELS = {
    "Haswell": (("AVX2", "FMA3"), ("Haswell",)),
    "SkylakeX": (("AVX512_SKX",), ("SkylakeX",)),
    "Zen": (("AVX2", "FMA3"), ("Zen", "Haswell")),
    "Sandybridge": (("AVX",), ("Sandybridge",)),
}

#: Prints the features that NumPy was built to use where it finds them, those of the processor that are switched on, and the kernels in use.
PROBE = """
import json
import scipy.linalg
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from threadpoolctl import threadpool_info
kernels = {library["architecture"] for library in threadpool_info() if library["internal_api"] == "openblas"}
features = [name for name, on in __cpu_features__.items() if on]
print(json.dumps({"dispatched": __cpu_dispatch__, "features": features, "blas": sorted(kernels)}))
"""


@dataclass(frozen=True)
class Processor:
    """What a process finds: the features NumPy can switch off, all features that are on, and the kernels of the OpenBLAS libraries."""

    dispatched: tuple[str, ...]
    features: frozenset[str]
    blas: tuple[str, ...]

    @classmethod
    def seen_with(cls, environment: Mapping[str, str]) -> Processor:
        """Return what a new process with these environment variables finds."""
        found = subprocess.run([sys.executable, "-c", PROBE], env={**os.environ, **environment}, capture_output=True, text=True, check=True)
        seen = json.loads(found.stdout)
        return cls(tuple(seen["dispatched"]), frozenset(seen["features"]), tuple(seen["blas"]))

    @property
    def instructions(self) -> tuple[object, ...]:
        """What decides in which order NumPy and OpenBLAS sum."""
        return self.blas, self.features & set(self.dispatched)


@dataclass(frozen=True)
class Setting:
    """Environment variables that change the instructions in use, and how to see that they do."""

    name: str
    environment: Mapping[str, str]
    blas: tuple[str, ...] = ()
    """Any of these kernels must be reported, by every library; any at all where this is empty."""
    switched_off: tuple[str, ...] = ()
    """These features must be gone."""
    impossible: str = ""
    """Why this processor cannot run it."""

    def complaint(self, seen: Processor) -> str:
        """Return what the variables should have changed and did not, or an empty text."""
        if self.blas and not (len(seen.blas) == 1 and seen.blas[0] in self.blas):
            return f"OpenBLAS uses {', '.join(seen.blas) or 'no kernels it names'}, not {self.blas[0]}"
        left = sorted(set(self.switched_off) & seen.features)
        return f"NumPy still uses {', '.join(left)}" if left else ""

    def together_with(self, other: Setting) -> Setting:
        """Return both at once; one of them where the processor cannot run the other."""
        if self.impossible or other.impossible:
            return other if self.impossible else self
        environment = {**self.environment, **other.environment}
        return Setting(f"{self.name}, {other.name}", environment, self.blas + other.blas, self.switched_off + other.switched_off)


def settings(here: Processor) -> Iterator[Setting]:
    """Yield every setting, with the reason where this processor cannot run it."""
    for name, (needed, reported) in BLAS_KERNELS.items():
        missing = [feature for feature in needed if feature not in here.features]
        reason = f"this processor has no {missing[0]}" if missing else "" if here.blas else "NumPy and SciPy use no OpenBLAS"
        yield Setting(f"OpenBLAS {name}", {"OPENBLAS_CORETYPE": name}, blas=reported, impossible=reason)
    for name, first_level in (("AVX-512", 4), ("AVX2", 3)):
        chosen = tuple(feature for feature in here.dispatched if _level(feature) >= first_level and feature in here.features)
        reason = "" if chosen else f"NumPy uses no {name} here"
        yield Setting(f"NumPy without {name}", {"NPY_DISABLE_CPU_FEATURES": " ".join(chosen)}, switched_off=chosen, impossible=reason)


def few_settings(here: Processor) -> list[Setting]:
    """Return two settings that change all that `settings` do: other kernels, and older ones with NumPy's older instructions."""
    by_name = {setting.name: setting for setting in settings(here)}
    return [by_name["OpenBLAS Haswell"], by_name["OpenBLAS Sandybridge"].together_with(by_name["NumPy without AVX2"])]


def _level(feature: str) -> int:
    """Return the level of the x86-64 instruction set that a feature of NumPy's belongs to: 4 (AVX-512), 3 (AVX2), 0 for all others."""
    if feature.startswith("AVX512") or feature == "X86_V4":
        return 4
    return 3 if feature in ("AVX2", "FMA3", "X86_V3") else 0


def marked_files() -> list[str]:
    """Return the files with tests that have the marker `numerics`, below the folder of tests."""
    return sorted(str(file.relative_to(TESTS)) for file in TESTS.rglob("test_*.py") if "mark.numerics" in file.read_text())


def main(arguments: Sequence[str]) -> int:
    """Run the settings; all arguments but `--all` go to pytest."""
    here, is_all = Processor.seen_with({}), "--all" in arguments
    rest = [argument for argument in arguments if argument != "--all"]
    tests = ["-m", "not slow", *rest, *NUMERICAL] if is_all else ["-m", "numerics and not slow", *rest, *marked_files()]
    failures = 0
    known: dict[tuple[object, ...], str] = {here.instructions: "`make test`"}
    for setting in settings(here) if is_all else few_settings(here):
        if setting.impossible:
            print(f"{setting.name}: skipped, {setting.impossible}", flush=True)
            continue
        seen = Processor.seen_with(setting.environment)
        if complaint := setting.complaint(seen):
            failures += 1
            print(f"{setting.name}: FAILED, {complaint}", flush=True)
        elif seen.instructions in known:
            print(f"{setting.name}: skipped, the same instructions as {known[seen.instructions]}", flush=True)
        else:
            known[seen.instructions] = setting.name
            failures += not _tested(setting, tests)
    return 1 if failures else 0


def _tested(setting: Setting, tests: Sequence[str]) -> bool:
    """Run tests under a setting, print its line, and all output where a test fails; return whether they pass."""
    start = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", *tests]
    done = subprocess.run(command, cwd=TESTS, env={**os.environ, **setting.environment}, capture_output=True, text=True, check=False)
    output = done.stdout.rstrip().splitlines() or [f"no output, exit code {done.returncode}"]
    print(f"{setting.name}: {output[-1].strip('= ')} ({time.monotonic() - start:.0f} s in all)", flush=True)
    if done.returncode:
        print("\n".join([*output, done.stderr]), flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
