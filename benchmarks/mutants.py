"""Plant mutants, one at a time, into a copy of the tree and tell which of them the tests still kill.

Run it as ``python -m benchmarks.mutants``. `mutants.json` holds mutants that were drawn once, each a line of code written otherwise, and
the tests that kill them. These are run first, which takes seconds; where none of them kills any more, all tests that may. A mutant that
was killed and survives now has lost its tests: exit code 1. A mutant whose line is nowhere is gone, and ``--resample`` draws another.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks.copies import Copy, UnusableError
from benchmarks.forked import Run, Verdict, import_libraries
from benchmarks.may_kill import UNMEASURED, Choice, Imports
from benchmarks.mutations import Mutation, drawn, file_of, mutated, sources, spans_of

UNTRIED, KILLED, TIMED_OUT, SURVIVED, EQUIVALENT, GONE = "untried", "killed", "timed out", "survived", "equivalent", "gone"

#: The folders of each area, and how many mutants it has at first.
AREAS: dict[str, tuple[int, tuple[str, ...]]] = {
    "core": (16, ("bench_mtl/core",)),
    "projections": (22, ("bench_mtl/projections",)),
    "model": (20, ("bench_mtl/model",)),
    "problems": (8, ("problems",)),
    "solvers": (32, ("solvers",)),
    "stats": (8, ("bench_mtl/stats",)),
    "metrics": (6, ("bench_mtl/metrics",)),
    "data": (16, ("bench_mtl/data",)),
    "engine": (16, ("bench_mtl/engine",)),
    "results": (14, ("bench_mtl/results",)),
    "runner": (16, ("bench_mtl/runner",)),
    "report": (16, ("bench_mtl/report",)),
}

#: Never drawn from functions that end processes or delete files: where a fault aims at others, these are not of the copy.
_DANGEROUS = re.compile(r"kill|rmtree|unlink|remove\(|SIG[A-Z]{3}")

#: A test that takes longer is left out, unless it is recorded as a killer; seconds.
SLOW = 8.0

#: Seconds that a single test is waited for, one that may have kernels to compile first, and all tests of a run.
PATIENCE, PATIENCE_TO_COMPILE, PATIENCE_TOGETHER = 75.0, 240.0, 480.0

#: A test that does not end has killed a mutant if it passes in this share of the time without it.
FRACTION = 0.4

_MOST_KILLERS = 8


@dataclass(frozen=True)
class Mutant:
    """A mutation of a file, and what is known of it."""

    name: str
    area: str
    file: str
    mutation: Mutation
    status: str = UNTRIED
    killers: tuple[str, ...] = ()
    """The quickest tests that fail with it, or do not end."""
    reason: str = ""
    """Why it is equivalent."""


@dataclass
class Matrix:
    """The stored mutants, and the seconds of tests without any."""

    mutants: list[Mutant] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """Of test files, without their slow tests."""
    left_out: list[str] = field(default_factory=list)
    """Tests that are slow, or fail without a mutant."""

    @classmethod
    def read(cls, file: Path) -> Matrix:
        stored = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return cls([_mutant(row) for row in stored.get("mutants", [])], stored.get("seconds", {}), stored.get("left out", []))

    def write(self, file: Path) -> None:
        """A line a mutant, so that differences can be read."""
        rows = ",\n".join(json.dumps(_row(mutant), ensure_ascii=False) for mutant in self.mutants)
        seconds = json.dumps({test: _digits(value) for test, value in sorted(self.seconds.items())}, indent=0)
        left_out = json.dumps(sorted(self.left_out), indent=0, ensure_ascii=False)
        file.write_text(f'{{"mutants": [\n{rows}\n],\n"left out": {left_out},\n"seconds": {seconds}}}\n', encoding="utf-8")


def _digits(value: float) -> float:
    return float(f"{value:.2g}")


def _row(mutant: Mutant) -> dict[str, Any]:
    killers: dict[str, list[str]] = {}
    for killer in mutant.killers:
        file, _, node = killer.partition("::")
        killers.setdefault(file, []).append(node)
    row = {"name": mutant.name, "area": mutant.area, "file": mutant.file, **dataclasses.asdict(mutant.mutation), "status": mutant.status}
    return row | ({"reason": mutant.reason} if mutant.reason else {}) | ({"killers": killers} if killers else {})


def _mutant(row: Mapping[str, Any]) -> Mutant:
    mutation = Mutation(row["kind"], row["scope"], row["line"], row["to"], row["nth"])
    killers = tuple(f"{file}::{node}" if node else file for file, nodes in row.get("killers", {}).items() for node in nodes)
    return Mutant(row["name"], row["area"], row["file"], mutation, row["status"], killers, row.get("reason", ""))


@dataclass(frozen=True)
class Tree:
    """What is read of a tree once."""

    root: Path
    code: Mapping[str, str]
    imports: Imports
    test_files: Mapping[str, str]
    """Paths of test files by their names, where there is one of that name."""

    @classmethod
    def at(cls, root: Path) -> Tree:
        names: dict[str, list[str]] = {}
        for file in sorted((root / "tests").rglob("test_*.py")):
            names.setdefault(file.name, []).append(file.relative_to(root).as_posix())
        unique = {name: paths[0] for name, paths in names.items() if len(paths) == 1}
        return cls(root, sources(root), Imports(root), unique)

    def now(self, killer: str) -> str:
        """Return the name of a test whose file may have moved; empty where it is gone."""
        file, separator, node = killer.partition("::")
        if not (self.root / file).exists():
            file = self.test_files.get(Path(file).name, "")
        return file + separator + node if file else ""


#: What tries a mutant: it hands over runs, gets what they have shown, and returns the mutant as it is now.
Trial = Generator[Run, Verdict, Mutant]


def tried(mutant: Mutant, copy: Copy, tree: Tree, matrix: Matrix, limit: float) -> Trial:
    """Plant a mutant, run its killers and then what else may kill it, and take it out again."""
    file = file_of(mutant.mutation, mutant.file, tree.code)
    content = None if file is None else mutated(tree.code[file], mutant.mutation)
    if file is None or content is None:
        return dataclasses.replace(mutant, status=GONE)
    mutant = dataclasses.replace(mutant, file=file)
    module, void = tree.imports.module(file), tree.imports.importers(file).keys() & copy.compiled_files()
    patience = PATIENCE_TO_COMPILE if void else PATIENCE
    verdict = Verdict()
    with copy.changed(file, content.encode()), copy.compiled_again(void, module):
        for choice in _by_file(filter(None, map(tree.now, mutant.killers))):
            verdict = yield Run(copy, [choice], 1, (), (patience, PATIENCE_TOGETHER))
            if verdict.failed or (mutant.status == TIMED_OUT and verdict.too_slow in choice.nodes):
                return mutant
        for choices in _stages(tree.imports.may_kill(file, matrix.seconds, limit), matrix.seconds):
            verdict = yield Run(copy, choices, _MOST_KILLERS, matrix.left_out, (patience, PATIENCE_TOGETHER))
            if verdict.failed or verdict.too_slow:
                break
    if not verdict.failed and verdict.waited > patience:
        with copy.compiled_again(void, module):
            control = yield Run(copy, _by_file([verdict.too_slow]), 1, (), (FRACTION * patience, PATIENCE_TOGETHER))
        ends = verdict.too_slow in control.seconds and not control.failed
        return dataclasses.replace(mutant, status=TIMED_OUT if ends else SURVIVED, killers=(verdict.too_slow,) if ends else ())
    failed = sorted(verdict.failed, key=lambda name: verdict.seconds.get(name, 0.0))
    if 0 < len(failed) <= 2:  # they may fail without the mutant as well
        control = yield Run(copy, _by_file(failed), len(failed) + 1, (), (patience, PATIENCE_TOGETHER))
        failed = [name for name in failed if name not in control.failed and name != control.too_slow]
    return dataclasses.replace(mutant, status=KILLED if failed else SURVIVED, killers=tuple(failed[:_MOST_KILLERS]))


def _by_file(names: Iterable[str]) -> list[Choice]:
    nodes: dict[str, list[str]] = {}
    for name in names:
        nodes.setdefault(name.partition("::")[0], []).append(name)
    return [Choice(file, nodes=() if file in group else tuple(group)) for file, group in nodes.items()]


def _stages(choices: Sequence[Choice], seconds: Mapping[str, float]) -> Iterator[list[Choice]]:
    """Split off the first file, which most often is enough, and some quick ones."""
    total, count = 0.0, 1
    for choice in choices[1:]:
        total += seconds.get(choice.file, UNMEASURED)
        if total > 12.0:
            break
        count += 1
    yield from filter(None, (list(choices[:1]), list(choices[1:count]), list(choices[count:])))


def measured(test: str, copy: Copy, matrix: Matrix) -> Generator[Run, Verdict, None]:
    """Write down the seconds of a test file, and which of its tests are slow or fail, in a tree without a mutant."""
    left_out = [name for name in matrix.left_out if not name.startswith(f"{test}::")]
    while True:
        verdict = yield Run(copy, [Choice(test)], 10**6, left_out, (4.0 * SLOW, PATIENCE_TOGETHER))
        slow = [name for name, seconds in verdict.seconds.items() if seconds > SLOW]
        left_out += [name for name in {*slow, *verdict.failed, verdict.too_slow} if name.startswith(f"{test}::")]
        if not verdict.too_slow or verdict.too_slow == "the collection":
            break
    matrix.left_out = [*(name for name in matrix.left_out if not name.startswith(f"{test}::")), *left_out]
    matrix.left_out = sorted(set(matrix.left_out))
    matrix.seconds[test] = sum(seconds for name, seconds in verdict.seconds.items() if name not in left_out)


def all_done(trials: Iterable[tuple[str, Any]], copies: Sequence[Copy], tell: Any) -> dict[str, Any]:
    """Work through trials, as many at once as there are copies; each is told with its result and its seconds."""
    waiting, results = list(reversed(list(trials))), dict[str, Any]()
    running: dict[int, tuple[str, Any, Run, float]] = {}
    free = list(range(len(copies)))

    def go_on(place: int, name: str, trial: Any, verdict: Verdict | None, start: float) -> None:
        try:
            running[place] = (name, trial, trial.send(verdict), start)
        except StopIteration as end:
            results[name] = end.value
            running.pop(place, None)
            free.append(place)
            tell(name, end.value, time.monotonic() - start)

    try:
        while waiting or running:
            while waiting and free:
                name, begin = waiting.pop()
                place = free.pop()
                go_on(place, name, begin(copies[place]), None, time.monotonic())
            time.sleep(0.02)
            for place, (name, trial, run, start) in list(running.items()):
                verdict = run.verdict()
                if verdict is not None:
                    go_on(place, name, trial, verdict, start)
    finally:
        for _, trial, run, _ in running.values():
            run.stop()
            trial.close()
    return results


def resampled(matrix: Matrix, tree: Tree, options: argparse.Namespace) -> list[Mutant]:
    """Leave out mutants that are gone, and draw others in their place; those of an area are drawn alike for the same seed and tree."""
    result = []
    for area in options.area or AREAS:
        count, folders = AREAS[area]
        stored = [mutant for mutant in matrix.mutants if mutant.area == area]
        present = [mutant for mutant in stored if file_of(mutant.mutation, mutant.file, tree.code) is not None]
        code = {file: source for file, source in tree.code.items() if file.startswith(tuple(f"{folder}/" for folder in folders))}
        code = {file: source for file, source in code.items() if not any(fnmatch(file, pattern) for pattern in options.without)}

        def is_taken(file: str, mutation: Mutation, present: Sequence[Mutant] = present, code: Mapping[str, str] = code) -> bool:
            near = any(mutant.file == file and mutant.mutation.scope == mutation.scope for mutant in present)
            return near or bool(_DANGEROUS.search(_scope_text(code[file], mutation.scope)))

        wanted = (options.count or len(stored) or count) - len(present)
        numbers = (number for number in range(1, 10**6) if f"{area}-{number:02}" not in {mutant.name for mutant in stored})
        per_file = 1 + max(wanted, 0) // max(1, len(code) // 2)
        draws = drawn(code, max(wanted, 0), f"{options.seed}:{area}", is_taken, per_file)
        result += present + [Mutant(f"{area}-{next(numbers):02}", area, file, mutation) for file, mutation in draws]
    return result + [mutant for mutant in matrix.mutants if options.area and mutant.area not in options.area]


def _scope_text(source: str, scope: str) -> str:
    lines = source.split("\n")
    return "\n".join("\n".join(lines[first : last + 1]) for first, last in spans_of(source)[scope]) if scope else ""


def table(mutants: Sequence[Mutant], seconds: Mapping[str, float]) -> str:
    """Return the counts by area, and the survivors, in Markdown."""
    states = (KILLED, TIMED_OUT, SURVIVED, EQUIVALENT, GONE)
    lines = [f"| area | mutants | {' | '.join(states)} | seconds |", "| --- |" + " --- |" * (len(states) + 2)]
    for area in (*AREAS, "all"):
        of_area = [mutant for mutant in mutants if area in (mutant.area, "all")]
        if of_area:
            counts = [sum(mutant.status == state for mutant in of_area) for state in states]
            spent = sum(seconds.get(mutant.name, 0.0) for mutant in of_area)
            lines.append(f"| {area} | {len(of_area)} | {' | '.join(map(str, counts))} | {spent:.0f} |")
    for state in (SURVIVED, GONE):
        chosen = [mutant for mutant in mutants if mutant.status == state]
        lines += ["", f"{state.capitalize()}: {len(chosen)}.", ""] if chosen else []
        lines += [f"- {described(mutant)}" for mutant in chosen]
    return "\n".join([*lines, ""])


def described(mutant: Mutant) -> str:
    """Return one line that tells what is written otherwise."""
    mutation = mutant.mutation
    return f"{mutant.name}, {mutant.file}, {mutation.scope or 'module'}: `{mutation.line}` -> `{mutation.to}`"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; return 1 where a mutant that was killed survives."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is planted is taken out again
    options = _options(arguments)
    root = options.root.resolve()
    file = options.matrix or root / "benchmarks" / "mutants.json"
    matrix = Matrix.read(file)
    try:
        if options.resample:
            matrix.mutants = resampled(matrix, Tree.at(root), options)
            matrix.write(file)
            print(f"untried: {sum(mutant.status == UNTRIED for mutant in matrix.mutants)} of {len(matrix.mutants)}")
            return 0
        if options.list:
            tree = Tree.at(root)
            for mutant in _chosen(matrix, options):
                place = file_of(mutant.mutation, mutant.file, tree.code)
                print(f"{described(mutant)}: {mutant.status if place else GONE}{f' ({mutant.reason})' if mutant.reason else ''}")
            return 0
        return _measure(matrix, root, options, file) if options.measure else _check(matrix, root, options, file)
    except (UnusableError, KeyboardInterrupt) as error:
        print(f"mutants: {str(error) or 'stopped'}", file=sys.stderr)
        return 2


def _chosen(matrix: Matrix, options: argparse.Namespace) -> list[Mutant]:
    of_area = [mutant for mutant in matrix.mutants if not options.area or mutant.area in options.area]
    return [mutant for mutant in of_area if not options.only or mutant.name in options.only]


def _copies(root: Path, count: int, used: Container[str], stack: ExitStack) -> list[Copy]:
    places = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True))) for _ in range(count)]
    copies = [Copy(root, place.resolve()) for place in places]
    copies[0].require_own_code(root)
    import_libraries(used)
    if any(name.partition(".")[0] == "bench_mtl" for name in sys.modules):
        raise UnusableError("the code that is tested is imported already")
    return copies


def _measure(matrix: Matrix, root: Path, options: argparse.Namespace, file: Path) -> int:
    imports = Imports(root)
    tests = [test for test in imports.test_files() if not any(fnmatch(test, pattern) for pattern in options.without)]
    tests = [test for test in tests if options.again or test not in matrix.seconds]
    matrix.seconds = {test: seconds for test, seconds in matrix.seconds.items() if (root / test).exists()}
    matrix.left_out = [name for name in matrix.left_out if (root / name.partition("::")[0]).exists()]

    def tell(test: str, result: None, seconds: float) -> None:
        matrix.write(file)
        print(f"{test}: {matrix.seconds[test]:.1f} of {seconds:.1f} seconds", flush=True)

    with ExitStack() as stack:
        copies = _copies(root, options.jobs, imports.libraries, stack)
        all_done([(test, lambda copy, test=test: measured(test, copy, matrix)) for test in tests], copies, tell)
    return 0


def _check(matrix: Matrix, root: Path, options: argparse.Namespace, file: Path) -> int:
    chosen = _chosen(matrix, options)
    if options.afresh:
        chosen = [dataclasses.replace(mutant, killers=()) for mutant in chosen]
    settled = {EQUIVALENT} if options.update or options.afresh else {EQUIVALENT, SURVIVED}
    due = [mutant for mutant in chosen if mutant.status not in settled]
    took: dict[str, float] = {}

    def tell(name: str, now: Mutant, seconds: float) -> None:
        took[name] = seconds
        by = f" by {now.killers[0]}" if now.killers else ""
        print(f"{len(took)}/{len(due)} {name}: {now.status}{by} ({seconds:.0f} s)", flush=True)
        if options.update:
            matrix.mutants = [now if mutant.name == name else mutant for mutant in matrix.mutants]
            matrix.write(file)

    start = time.monotonic()
    with ExitStack() as stack:
        tree = Tree.at(root)
        copies = _copies(root, max(1, min(options.jobs, len(due))), tree.imports.libraries, stack)
        trials = [(mutant.name, lambda copy, mutant=mutant: tried(mutant, copy, tree, matrix, options.limit)) for mutant in due]
        results = all_done(trials, copies, tell)
    after = [results.get(mutant.name, mutant) for mutant in chosen]
    text = table(after, took)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    lost = [now for now, before in zip(after, chosen, strict=True) if now.status == SURVIVED and before.status in (KILLED, TIMED_OUT)]
    print(f"\n{text}\n{time.monotonic() - start:.0f} seconds")
    for mutant in lost:
        print(f"lost: {described(mutant)}")
    return 1 if lost else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--area", nargs="+", choices=AREAS, help="the mutants of these areas alone")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants alone")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many are tried at once, each in a copy of its own")
    parser.add_argument("--limit", type=float, default=30.0, metavar="SECONDS", help="of all tests that may kill a mutant")
    parser.add_argument("--update", action="store_true", help="try those that survived too, and write the matrix again")
    parser.add_argument("--afresh", action="store_true", help="do not begin with the recorded killers")
    parser.add_argument("--list", action="store_true", help="show the mutants, and run nothing")
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="where to write a table")
    parser.add_argument("--measure", action="store_true", help="measure the test files that are not in the matrix, without any mutant")
    parser.add_argument("--again", action="store_true", help="measure the others too")
    parser.add_argument("--resample", action="store_true", help="draw mutants in place of those that are gone; try them with --update")
    parser.add_argument("--seed", type=int, default=39, help="of --resample")
    parser.add_argument("--count", type=int, metavar="N", help="how many an area is to have after --resample")
    parser.add_argument("--without", nargs="+", default=[], metavar="PATTERN", help="files to draw none from, or not to measure")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="the tree; that of this file by default")
    parser.add_argument("--matrix", type=Path, metavar="FILE.json", help="benchmarks/mutants.json of the tree by default")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
