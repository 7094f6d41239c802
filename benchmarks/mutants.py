"""Plant mutants, one at a time, into a copy of the tree and tell which of them the tests still kill.

Run it as ``python -m benchmarks.mutants``. `mutants.json` holds mutants that were drawn once, each a line of code written otherwise, and
the tests that kill them. These are run first, which takes seconds; where none of them kills any more, those that may. A mutant that was
killed and survives now has lost its tests: exit code 1. A mutant whose line is nowhere is gone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchmarks.mutations import Mutation, file_of, mutated
from benchmarks.planting import Change, Imports, Selection, UnusableError, current, killers, options_of

UNTRIED, KILLED, SURVIVED, EQUIVALENT, GONE = "untried", "killed", "survived", "equivalent", "gone"

AREAS = ("core", "projections", "model", "problems", "solvers", "stats", "metrics", "data", "engine", "results", "runner", "report")

#: How many of the test files that may kill a mutant are run, where those that did so do not: the nearest.
_NEAREST = 12

_MOST_KILLERS = 8


@dataclass(frozen=True)
class Mutant:
    """A mutation of a file, and what is known of it."""

    name: str
    area: str
    file: str
    mutation: Mutation
    status: str = UNTRIED
    killers: tuple[str, ...] = ()  # tests that fail with it, or do not end
    reason: str = ""  # why it is equivalent

    def __str__(self) -> str:
        return f"{self.name}, {self.file}, {self.mutation.scope or 'module'}: `{self.mutation.line}` -> `{self.mutation.to}`"

    def change(self, root: Path, imports: Imports, seconds: float) -> Change | None:
        """Return what is planted where; None where the line is gone."""
        code = imports.code()
        file = file_of(self.mutation, self.file, code)
        if file is None or (content := mutated(code[file], self.mutation)) is None:
            return None
        known = [test.partition("::")[::2] for test in filter(None, (current(root, killer) for killer in self.killers))]
        words = " or ".join(sorted({node.partition("[")[0].split("::")[-1] for _, node in known if node}))
        near = imports.tests_of(file)[:_NEAREST]
        parts = PurePosixPath(file).with_suffix("").parts
        laws = [test for test in imports.sources if test.startswith("tests/laws/test_") and parts[0] in ("problems", "solvers")]
        chosen = [
            ([path for path, node in known if not node], ""),
            ([path for path, node in known if node], words),
            (near[:1], ""),
            (near[1:], ""),
            (laws, parts[1]),
        ]
        selections = (Selection(tuple(dict.fromkeys(tests)), only, seconds) for tests, only in chosen if tests)
        return Change(self.name, file, content, tuple(selections))


def read(file: Path) -> list[Mutant]:
    """Return the stored mutants."""
    mutants = []
    for row in json.loads(file.read_text(encoding="utf-8"))["mutants"] if file.exists() else []:
        mutation = Mutation(*(row.pop(field.name) for field in dataclasses.fields(Mutation)))
        tests = (f"{path}::{node}" if node else path for path, nodes in row.pop("killers", {}).items() for node in nodes)
        mutants.append(Mutant(**row, mutation=mutation, killers=tuple(tests)))
    return mutants


def write(file: Path, mutants: Sequence[Mutant]) -> None:
    """Write mutants, one a line, so that differences can be read."""
    rows = ",\n".join(map(_row, mutants))
    file.write_text(f'{{"mutants": [\n{rows}\n]}}\n', encoding="utf-8")


def _row(mutant: Mutant) -> str:
    by_file: dict[str, list[str]] = {}
    for path, _, node in (killer.partition("::") for killer in mutant.killers):
        by_file.setdefault(path, []).append(node)
    row = {"name": mutant.name, "area": mutant.area, "file": mutant.file, **dataclasses.asdict(mutant.mutation), "status": mutant.status}
    row |= ({"reason": mutant.reason} if mutant.reason else {}) | ({"killers": by_file} if by_file else {})
    return json.dumps(row, ensure_ascii=False)


def table(mutants: Sequence[Mutant]) -> str:
    """Return the counts by area, and the survivors, in Markdown."""
    states = (KILLED, SURVIVED, EQUIVALENT, GONE)
    lines = [f"| area | mutants | {' | '.join(states)} |", "| --- |" + " --- |" * (len(states) + 1)]
    for area in (*AREAS, "all"):
        found = [mutant.status for mutant in mutants if area in (mutant.area, "all")]
        lines += [f"| {area} | {len(found)} | {' | '.join(str(found.count(state)) for state in states)} |"] if found else []
    for state in (SURVIVED, GONE):
        chosen = [f"- {mutant}" for mutant in mutants if mutant.status == state]
        lines += ["", f"{state.capitalize()}: {len(chosen)}.", "", *chosen] if chosen else []
    return "\n".join([*lines, ""])


def tried(mutants: Sequence[Mutant], root: Path, imports: Imports, options: argparse.Namespace) -> list[Mutant]:
    """Return mutants with what the tests make of them now."""
    due = [mutant for mutant in mutants if mutant.status != EQUIVALENT and (options.update or mutant.status != SURVIVED)]
    changes = {mutant.name: mutant.change(root, imports, options.limit) for mutant in due}
    planted = [change for change in changes.values() if change is not None]
    found = killers(root, imports, planted, options.jobs, lambda name, by: print(f"{name}: {by or SURVIVED}", flush=True))

    def now(mutant: Mutant) -> Mutant:
        if mutant.name not in changes:
            return mutant
        if (change := changes[mutant.name]) is None:
            return dataclasses.replace(mutant, status=GONE)
        killer = found[mutant.name]
        tests = tuple(dict.fromkeys((killer, *mutant.killers)))[:_MOST_KILLERS] if killer else ()
        return dataclasses.replace(mutant, file=change.file, status=KILLED if killer else SURVIVED, killers=tests)

    return [now(mutant) for mutant in mutants]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; return 1 where a mutant that was killed survives."""
    parser = options_of("mutants", __doc__, AREAS)
    parser.add_argument("--limit", type=float, default=240.0, metavar="SECONDS", help="of tests that are run together")
    parser.add_argument("--update", action="store_true", help="try those that survived too, and write the matrix again")
    parser.add_argument("--matrix", type=Path, metavar="FILE.json", help="benchmarks/mutants.json of the tree by default")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    file = options.matrix or root / "benchmarks" / "mutants.json"
    mutants, imports = read(file), Imports(root)
    chosen = [m for m in mutants if m.area in (options.area or [m.area]) and m.name in (options.only or [m.name])]
    if unknown := {*(options.only or ())} - {mutant.name for mutant in mutants}:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}")
    if options.list:
        for mutant in chosen:
            place = file_of(mutant.mutation, mutant.file, imports.code())
            print(f"{mutant}: {mutant.status if place else GONE}{f' ({mutant.reason})' if mutant.reason else ''}")
        return 0
    try:
        after = tried(chosen, root, imports, options)
    except UnusableError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    if options.update:
        by_name = {mutant.name: mutant for mutant in after}
        new = [by_name.get(mutant.name, mutant) for mutant in mutants]
        write(file, [mutant for mutant in new if mutant.status != GONE])
    if options.out is not None:
        options.out.write_text(table(after), encoding="utf-8")
    print(f"\n{table(after)}")
    lost = [now for now, before in zip(after, chosen, strict=True) if (before.status, now.status) == (KILLED, SURVIVED)]
    for mutant in lost:
        print(f"lost: {mutant}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
