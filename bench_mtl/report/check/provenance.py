"""What a report says of where its runs come from: suite, machine, dates, versions, threads, limits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bench_mtl.core.text import visible
from bench_mtl.report.check import patterns
from bench_mtl.report.check.document import Block, Table, readable
from bench_mtl.report.check.faults import Finding
from bench_mtl.report.check.findings import UNDERIVED
from bench_mtl.report.check.numbers import BLANK
from bench_mtl.report.check.rows import Rows

#: Lines that every report has.
_REQUIRED = ("Machine", "Run", "Versions", "Threads")

#: What the line of versions names, and the packages that the line of libraries does.
_VERSIONS = ("bench mtl", "commit", "python", "numpy", "blas", "numba")
_LIBRARIES = (
    "cvxpy", "ecos", "scs", "clarabel", "highspy", "highspy-extras", "ortools", "osqp", "piqp", "qoco", "proxsuite", "moreau", "cvxopt",
    "sdpa-python", "mosek", "gurobipy", "coptpy", "xpress", "scikit-learn", "celer", "skglm", "cyanure", "spams-bin",
)  # fmt: skip


def notice_faults(block: Block, rows: Rows) -> Iterator[Finding]:
    """Yield the faults of a paragraph before the findings; what the suite says of itself is as it is there."""
    text = block.text
    if text == "Made by:" or _words(text) in _description(rows):
        return
    rules: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Rows], str]], ...] = (
        (patterns.UNFINISHED, _unfinished),
        (patterns.INLINE, _inline),
        (patterns.SEVERAL_MACHINES, _several_machines),
        (patterns.DIFFERENT, _different),
        (patterns.COMMITS, _commits),
    )
    for pattern, rule in rules:
        match = pattern.fullmatch(text)
        if match is not None:
            if why := rule(match, rows):
                yield block.fault(why)
            return
    yield block.fault(UNDERIVED)


def missing_notices(found: Sequence[Block], rows: Rows) -> Iterator[str]:
    """Yield what the head of a report must say and does not."""
    texts = [block.text for block in found]

    def is_said(*wanted: re.Pattern[str]) -> bool:
        return any(pattern.fullmatch(text) for pattern in wanted for text in texts)

    if rows.cases > len(rows.runs) and not is_said(patterns.UNFINISHED):
        yield f"{rows.cases - len(rows.runs)} cases of the suite have no row, and the report does not say so"
    if _which_inline(rows) and not is_said(patterns.INLINE):
        yield "runs were certified in the process of their solver alone, and the report does not say so"
    if len(rows.machines) > 1 and not is_said(patterns.SEVERAL_MACHINES):
        yield f"the runs were made on {len(rows.machines)} machines, and the report does not say so"
    if len(rows.machines) == 1 and _unlike(rows) and not is_said(patterns.DIFFERENT, patterns.COMMITS):
        yield f"the runs were made in environments that differ in {', '.join(_unlike(rows))}, and the report does not say so"


def _description(rows: Rows) -> list[str]:
    return [_words(visible(part)) for part in re.split(r"\n\s*\n", rows.description)]


def _words(text: str) -> str:
    return " ".join(readable(text).split())


def _unfinished(match: re.Match[str], rows: Rows) -> str:
    missing = max(0, rows.cases - len(rows.runs))
    return "" if int(match["missing"]) == missing else f"{missing} cases of the suite have no row"


def _inline(match: re.Match[str], rows: Rows) -> str:
    which = _which_inline(rows)
    return "" if match["which"] == which else f"{which or 'No'} runs were certified so"


def _which_inline(rows: Rows) -> str:
    """Return whether all, some or none (empty) of the runs were made inline."""
    count = sum(environment.get("isolation") == "inline" for environment in rows.environments)
    return "All" if 0 < count == len(rows.environments) else "Some" if count else ""


def _several_machines(match: re.Match[str], rows: Rows) -> str:
    true = "; ".join(f"machine {place}: {machine_words(machine)}" for place, machine in enumerate(rows.machines, start=1))
    return "" if int(match["count"]) == len(rows.machines) > 1 and readable(match["names"]) == true else f"the machines are {true}"


def _different(match: re.Match[str], rows: Rows) -> str:
    true = f"{len(different(rows))}", ", ".join(_unlike(rows))
    return "" if (match["count"], readable(match["keys"])) == true else f"{true[0]} environments differ in {true[1]}"


def _commits(match: re.Match[str], rows: Rows) -> str:
    commits = len(different(rows))
    return "" if int(match["count"]) == commits and _unlike(rows) == ["commit"] else "the environments differ otherwise"


def provenance_faults(block: Block, rows: Rows) -> Iterator[Finding]:
    """Yield the faults of the lines on machine, dates, versions and limits."""
    seen = []
    for line, item in block.items():
        match = patterns.PROVENANCE.fullmatch(item)
        if match is None:
            yield block.fault(UNDERIVED, item, line)
            continue
        seen.append(match["title"])
        for why in _RULES[match["title"]](readable(match["words"]), rows):
            yield block.fault(why, item, line)
    for title in _required(rows):
        if seen.count(title) != 1:
            yield block.fault(f"the line '{title}' is {'not there' if title not in seen else 'there twice'}")


def _required(rows: Rows) -> list[str]:
    """Return the lines that a report of these rows must have."""
    known = {key for environment in rows.environments for key in flat(environment)}
    more = {
        "Libraries": not known.isdisjoint(_LIBRARIES),
        "Linear solvers": any(run.info.get("linear_solver") for run in rows.runs),
        "Limits": any(_told(json.loads(run.limits)) for run in rows.runs),
    }
    return [*_REQUIRED, *(title for title, is_wanted in more.items() if is_wanted)]


def machine_words(machine: Mapping[str, Any]) -> str:
    """Return a machine as reports name it."""
    cores, memory, details = (machine.get(name) for name in ("logical_cores", "memory_gib", "processor_details"))
    processor = " ".join(str(part) for part in (machine.get("processor"), f"({details})" if details else "") if part)
    parts = processor, cores and f"{cores} cores", memory and f"{memory} GiB", machine.get("system")
    return ", ".join(str(part) for part in parts if part)


def _machine(words: str, rows: Rows) -> Iterator[str]:
    true = "; ".join(dict.fromkeys(machine_words(environment) for environment in rows.environments))
    if words != true:
        yield f"the machine is {true}"


def _run(words: str, rows: Rows) -> Iterator[str]:
    match = patterns.RUN_DATES.fullmatch(words)
    if match is None:
        yield UNDERIVED
        return
    dates = sorted(str(environment["started"])[:10] for environment in rows.environments)
    if (match["first"], match["last"] or match["first"]) != (dates[0], dates[-1]):
        yield f"the runs began on {dates[0]}{f' to {dates[-1]}' if dates[-1] != dates[0] else ''}"
    most = max(run.repetition for run in rows.runs) + 1
    if (1 if match["once"] else int(match["most"])) != most:
        yield f"a case was run up to {most} times"


def _main_versions(words: str, rows: Rows) -> Iterator[str]:
    yield from _versions(words, rows, _VERSIONS)


def _libraries(words: str, rows: Rows) -> Iterator[str]:
    yield from _versions(words, rows, _LIBRARIES)


def _versions(words: str, rows: Rows, wanted: Sequence[str]) -> Iterator[str]:
    known = [flat(environment) for environment in rows.environments]
    keys = sorted({key for environment in known for key in environment}, key=len, reverse=True)
    pieces = re.split(rf"(?:^|, )({'|'.join(map(re.escape, keys))}) ", words)
    if pieces[0]:
        yield f"{UNDERIVED}: '{pieces[0]}'"
    for key, value in zip(pieces[1::2], pieces[2::2], strict=True):
        true = " or ".join(dict.fromkeys(each for environment in known if (each := environment.get(key, BLANK)) != BLANK)) or BLANK
        if value != true:
            yield f"{key} is {true}, not {value}"
    for key in wanted:
        if key in keys and key not in pieces[1::2]:
            yield f"{key} is not named"


def _linear_solvers(words: str, rows: Rows) -> Iterator[str]:
    named: dict[str, dict[str, None]] = {}
    for run in rows.runs:
        if name := run.info.get("linear_solver"):
            named.setdefault(str(name), {})[run.label] = None
    true = "; ".join(f"{name} ({', '.join(labels)})" for name, labels in named.items())
    if words != true:
        yield f"the rows name {true or 'none'}"


def _threads(words: str, rows: Rows) -> Iterator[str]:
    true = " or ".join(dict.fromkeys(str(run.threads) for run in rows.runs))
    if words != true:
        yield f"the runs had {true} threads"


def _limits(words: str, rows: Rows) -> Iterator[str]:
    true = {json.dumps(_told(json.loads(run.limits)), sort_keys=True) for run in rows.runs}
    said = set()
    for part in words.split("; "):
        found, rest = {}, part
        for name, pattern in patterns.LIMITS.items():
            if match := pattern.search(rest):
                found[name] = float(match["value"])
                rest = rest.replace(match[0], "", 1)
        if not patterns.GLUE.fullmatch(rest):
            yield f"{UNDERIVED}: '{part}'"
        said.add(json.dumps(found, sort_keys=True))
    if said != true - {"{}"}:
        yield f"the limits are {' or '.join(sorted(true))}"


def _told(limits: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits that there are, with the digits that are printed."""
    return {name: float(f"{value:g}") for name, value in limits.items() if value is not None}


_RULES: Mapping[str, Callable[[str, Rows], Iterator[str]]] = {
    "Machine": _machine,
    "Run": _run,
    "Versions": _main_versions,
    "Libraries": _libraries,
    "Linear solvers": _linear_solvers,
    "Threads": _threads,
    "Limits": _limits,
}


def flat(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what describes an environment, tables within it laid open; what is not there is a dash."""
    found: dict[str, str] = {}
    for key, value in environment.items():
        if isinstance(value, Mapping):
            found |= flat(value)
        elif key == "blas" and value is not None:
            found[key] = ", ".join(sorted(str(value).split(", ")))  # in one order, whichever was loaded first
        elif key not in ("id", "started"):
            found[str(key).replace("_", " ")] = BLANK if value is None else str(value)
    return found


def different(rows: Rows) -> list[dict[str, str]]:
    """Return the environments that differ from one another."""
    known = [flat(environment) for environment in rows.environments]
    return [each for place, each in enumerate(known) if each not in known[:place]]


def _unlike(rows: Rows) -> list[str]:
    known = different(rows)
    keys = dict.fromkeys(key for each in known for key in each)
    return [key for key in keys if len({each.get(key) for each in known}) > 1]


def environment_faults(table: Table, rows: Rows) -> Iterator[Finding]:
    """Yield the faults of the table of environments."""
    known = [flat(environment) for environment in rows.environments]
    columns = {"Value": known[0]}
    if len(different(rows)) > 1:
        ids = {
            ", ".join(str(e["id"]) for e, other in zip(rows.environments, known, strict=True) if other == each): each
            for each in different(rows)
        }
        columns = {f"Environment {names}": each for names, each in ids.items()}
    if list(table.titles[1:]) != list(columns):
        yield table.block.fault(f"the columns are {', '.join(columns)}")
        return
    seen = set()
    for line, cells in table.rows:
        key = cells[table.titles[0]]
        seen.add(key)
        for title, each in columns.items():
            true = " ".join(each.get(key, BLANK).split())
            if cells[title] != visible(true):
                yield table.block.fault(f"{key} is {true}", table.block.lines[line - table.block.line], line)
    missing = {key for each in columns.values() for key in each} - seen
    if missing:
        yield table.block.fault(f"{', '.join(sorted(missing))} is not there")


def started_faults(block: Block, rows: Rows) -> Iterator[Finding]:
    """Yield the faults of a paragraph above that table."""
    started = patterns.STARTED.fullmatch(block.text)
    times = patterns.DIFFERENT_TIMES.fullmatch(block.text)
    if started is not None:
        true = ", ".join(str(environment["started"]) for environment in rows.environments)
        if readable(started["times"]) != true:
            yield block.fault(f"the runs were started {true}")
    elif times is not None:
        if int(times["count"]) != len(different(rows)):
            yield block.fault(f"there are {len(different(rows))} environments")
    else:
        yield block.fault(UNDERIVED)
