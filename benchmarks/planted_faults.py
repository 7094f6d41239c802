"""Plant faults, one at a time, into a copy of the tree and count how many of them the test-suite catches.

Run it as ``python -m benchmarks.planted_faults``. Each fault of ``faults.toml`` replaces one snippet of one file by another that still
compiles and makes some result wrong. The tests that should notice it are run on the copy, and where they pass the whole suite. What is
caught says how far green tests can be trusted; a fault that survives asks for a test.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.planting import Change, Imports, Selection, UnusableError, current, killers, options_of

#: The share of faults that is to be caught.
BAR = 0.9


@dataclass(frozen=True)
class Fault:
    """A mistake that somebody could make."""

    name: str
    area: str
    what: str  # what is wrong then
    file: str  # relative to the root. Where the snippet is not in it, it is looked for in all code
    old: str  # occurs once in the file
    new: str
    tests: tuple[str, ...]  # files, folders or nodes that should catch it, relative to the root. What has moved is found by its name
    only: str = ""  # a choice among these tests, as of ``pytest -k``

    def change(self, root: Path, code: Mapping[str, str], options: argparse.Namespace) -> Change:
        """Return what is planted where.

        Raises
        ------
        UnusableError : the snippet is nowhere, or in several places, or does not compile; a test is gone.
        """
        files = [self.file] if self.old in code.get(self.file, "") else [file for file in code if self.old in code[file]]
        if len(files) != 1 or code[files[0]].count(self.old) != 1:
            raise UnusableError(f"{self.name}: the snippet has no single place; files with it: {', '.join(files) or 'none'}")
        changed = code[files[0]].replace(self.old, self.new)
        try:
            compile(changed, files[0], "exec")
        except SyntaxError as error:
            raise UnusableError(f"{self.name}: {files[0]} does not compile with it: {error}") from None
        tests = tuple(current(root, test) for test in self.tests)
        if not all(tests):
            raise UnusableError(f"{self.name}: a test is gone: {', '.join(self.tests)}")
        suite = () if options.targeted_only else (Selection((), seconds=options.suite_timeout),)
        return Change(self.name, files[0], changed, (Selection(tests, self.only, options.timeout), *suite))


_ROWS = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))["fault"]
FAULTS = tuple(Fault(**{**row, "tests": tuple(row["tests"])}) for row in _ROWS)
AREAS = tuple(dict.fromkeys(fault.area for fault in FAULTS))


def table(faults: Sequence[Fault], caught: Mapping[str, str]) -> str:
    """Return which test catches each fault, in Markdown."""
    lines = ["| fault | area | what is wrong | caught by |", "| --- | --- | --- | --- |"]
    for fault in faults:
        killer = caught[fault.name]
        cells = (fault.name, fault.area, fault.what, f"`{killer}`" if killer else "**survived**")
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    lines += ["", "| area | planted | caught |", "| --- | --- | --- |"]
    for area in AREAS:
        of_area = [bool(caught[fault.name]) for fault in faults if fault.area == area]
        lines += [f"| {area} | {len(of_area)} | {sum(of_area)} |"] if of_area else []
    return "\n".join([*lines, "", f"Caught {sum(map(bool, caught.values()))} of {len(faults)}.", ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; return 0 where at least `BAR` of the faults are caught."""
    parser = options_of("planted_faults", __doc__, AREAS)
    parser.add_argument("--targeted-only", action="store_true", help="do not run the whole suite where the targeted tests pass")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="for a run of targeted tests")
    parser.add_argument("--suite-timeout", type=float, default=3600.0, metavar="SECONDS", help="for a run of the whole suite")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    chosen = [fault for fault in FAULTS if fault.name in (options.only or [fault.name]) and fault.area in (options.area or AREAS)]
    try:
        if unknown := set(options.only or []) - {fault.name for fault in FAULTS}:
            raise UnusableError(f"no fault is called {', '.join(sorted(unknown))}")
        imports = Imports(root)
        changes = [fault.change(root, imports.code(), options) for fault in chosen]
        if options.list:
            for fault, change in zip(chosen, changes, strict=True):
                print(f"{fault.name} ({fault.area}): {change.file}; {' '.join(change.selections[0].tests)}")
            return 0
        caught = killers(
            root, imports, changes, options.jobs, lambda name, by: print(f"{name}: {f'caught by {by}' if by else 'survived'}", flush=True)
        )
    except UnusableError as error:
        print(f"planted_faults: {error}", file=sys.stderr)
        return 2
    if options.out is not None:
        options.out.write_text(table(chosen, caught), encoding="utf-8")
    count = sum(map(bool, caught.values()))
    print(f"caught {count} of {len(caught)}")
    return 0 if count >= BAR * len(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
