"""The words of a report: everything in it but tables, figures and their captions."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.core.errors import plural
from bench_mtl.core.text import one_line, visible
from bench_mtl.core.types import NEGLIGIBLE_SHARE, Status
from bench_mtl.engine.places import MOST_PLACES, traceback_lines
from bench_mtl.engine.proofs import format_gap
from bench_mtl.engine.suite_file import LARGEST_FILE
from bench_mtl.report.columns import (
    BLANK,
    LONGEST_CELL,
    enumerated,
    escaped,
    format_lower,
    format_objective,
    format_target,
    format_upper,
    to_markdown,
)
from bench_mtl.report.tables.winners import about_equal
from bench_mtl.results.enclosures import CONTRADICTION
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, UNKNOWN
from bench_mtl.results.loading import Results, machine_name

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Place

READING = f"""\
- **Proven relative gap.** (primal - dual) / |primal|. Primal is an upper bound on the objective at the solver's point, repaired to be
  feasible. Dual is a lower bound on the optimum, from the solver's dual point or from residuals. The optimum lies between them, whatever
  the solver claims. Below an optimum of {NEGLIGIBLE_SHARE:g} times the objective at zero, a run is verified relative to that share.
- **Infeasibility.** Relative excess over the constraint of the solver's point before repair.
- **Passes.** One product with the data matrix and one with its transpose are one pass; `{BLANK}` where a solver does not say. Iterations
  of different solvers are not comparable, passes are.
- **Time to a gap** (`s to ...`). Seconds on the solver's clock, set-up included, until the gap was proven. The stopping tests of an
  iterative solver count, unless the report says that its clock is older; certificates of curves and of a generic solver's answers do not.
  Building a generic solver's model, and compiling it or a specialised solver's kernels, is not counted (see the table of times). An
  iterative solver has one run to each target. A generic solver is run anew for every tolerance of a ladder; its time is that of the
  quickest run that proves the gap.
- **What was not reached** has no time and no ratio: it is `not in 60 s`, the time that a solve had, or the status that runs ended with.
- **Several seeds or repetitions** make one row: the worst gap and infeasibility, the median of the rest, `(k of N)` where only k of N runs
  have a value. A time to a gap is of the runs that reached it; where on some seed no run did, it is left out. Some suites repeat the
  fastest solvers, as far as the target that they are fastest to: such a run counts for that target and looser ones.
- **Kind.** A generic solver is handed the whole problem as a model, and a tolerance; a specialised one works with the problem's
  gradients, projections and proximal operators.
"""

PEERS = """\
- **Peer.** A solver of another library that minimises the same objective. It is asked for a ladder of tolerances and timed like a generic
  one, by the call that its user would make. Where specialised solvers are set against generic ones, peers are among the generic.
"""

#: Packages whose solvers are compared.
_LIBRARIES = (
    "cvxpy", "ecos", "scs", "clarabel", "highspy", "highspy-extras", "ortools", "osqp", "piqp", "qoco", "proxsuite", "moreau", "cvxopt",
    "sdpa-python", "mosek", "gurobipy", "coptpy", "xpress", "scikit-learn", "celer", "skglm", "cyanure", "spams-bin",
)  # fmt: skip

LIMITATIONS = """\
- Times are of one machine a problem and of the number of threads there. Differences of a few per cent mean nothing{repeated}.
- Iterative solvers are certified now and then, so their times can be late by some per cent (tests are spaced so that a run as long as a
  hundred of them is about a tenth late); points of curves are at steps that grow by 5 %. A generic solver's time depends on its ladder: a
  tolerance between two steps of it might have been quicker.
- Leaving out the building and compiling of models favours generic solvers.
- Bounds hold in exact arithmetic on the data as stored (docs/proofs.md); those of old versions, before these proofs, up to rounding in
  double precision.
- Intervals and tests over a group take its problems for a sample of their kind. Radii and preprocessings of one data set are not
  independent: intervals are narrower, and p is smaller, than for new data sets.
- Solvers run with the options of the suite below and their defaults otherwise. Nothing is claimed for other options, sizes or data.
- Peak memory is that of the whole process. A run that was killed has lost the answer that it was working on.
"""

#: What a suite may limit, in words, in which the number stands for {}.
_LIMITS = {
    "seconds": "{} s a solve, of a generic solver for each tolerance",
    "wall_seconds": "{} s a run in all",
    "off_clock_seconds": "{} s a pause of the clock",
    "iterations": "{} iterations",
    "work": "{} passes",
    "memory_gib": "{} GiB",
}

#: What is above the lines of code where runs raised.
RAISED = "Where the runs of status error raised"

#: Of different tracebacks, how many are shown.
MOST_TRACEBACKS = 100

#: Of what disturbed runs, and of the solvers of these, so many are named.
_MOST_NAMED = 5

#: How the first line of the text begins that stands in the place of a suite's file, where there was none.
_WITHOUT_FILE = ("bench_mtl.compare(", "bench-mtl solve ")


def command_line(name: str, suite_text: str, data: Iterable[str]) -> str:
    """Return the command for a suite: by its name if it ships with this package, else by a file; or what replaces a file."""
    from bench_mtl.data.catalogue import built_in_names
    from bench_mtl.engine.suite_file import shipped_suites

    first = suite_text.partition("\n")[0].removeprefix("# ")
    if first.startswith(_WITHOUT_FILE):
        return visible(first)
    shipped = shipped_suites().get(name)
    suite = name if shipped is not None and shipped.read_text(encoding="utf-8") == suite_text else "SUITE.toml"
    from_folder = any(json.loads(spec).get("name") not in built_in_names() for spec in data)
    return f"bench-mtl run {suite}{' --data-dir DATA' if from_folder else ''} --out DIR"


def asked(results: Results) -> str:
    """Return what was asked, in Markdown, on one line: how many solvers of which kind, on how many problems, to which targets."""
    ran = results.runs[results.runs["status"] != Status.SKIPPED]
    counts = ran.groupby("kind")["solver_label"].nunique()
    kinds = [f"{counts[kind]} {kind}" for kind in (SPECIALISED, GENERIC, PEER, UNKNOWN) if kind in counts] or ["0"]
    solvers = f"{enumerated(kinds)} solver{'' if counts.sum() == 1 else 's'}"
    problems = plural(results.runs["problem_label"].nunique(), "problem")
    every = ran.groupby("problem_label")["solver_label"].nunique().reindex(results.runs["problem_label"].unique(), fill_value=0)
    some = "" if (every == counts.sum()).all() else ", not each on every one"
    reached = enumerated([format_target(target) for target in results.targets])
    return f"{solvers}, settings counted apart, on {problems}{some}, to a proven relative gap of {reached}."


def where(results: Results) -> str:
    """Return where runs were made, in Markdown, on one line: machines, threads, limits, dates and repetitions."""
    lines = provenance_lines(results.environments, results.runs)
    machines = dict.fromkeys(escaped(machine_words({**entry, "processor_details": None})) for entry in results.environments)
    threads = f"{lines['Threads']} thread{'' if lines['Threads'] == '1' else 's'}"
    return "; ".join(filter(None, [" and ".join(machines), threads, lines.get("Limits"), lines["Run"]])) + "."


def unfinished(missing: int) -> str:
    """Return a sentence saying how many cases of the suite are not in the results; empty where all are."""
    return f"**Unfinished: {plural(missing, 'case')} of the suite {'has' if missing == 1 else 'have'} no row yet.**" if missing else ""


def not_asked(results: Results) -> str:
    """Return a sentence saying which targets of the view are tighter than any that was asked for; empty where none is."""
    tightest = results.runs["target"].min()
    if not (beyond := [format_target(target) for target in results.view.targets if target < tightest]):
        return ""
    return f"**No run was asked for {' or '.join(beyond)}: the tightest target of these runs is {format_target(tightest)}.**"


def clock(runs: pd.DataFrame) -> str:
    """Return a sentence that says that times are of an older clock; empty where none is."""
    clocks = set(runs["clock"])
    what, mixed = ("Times of this report", "") if len(clocks) == 1 else ("Some times", ": ratios mix them with others")
    words = f"{what} are of an older clock, which did not count the stopping tests of iterative solvers{mixed}."
    return words if "older" in clocks else ""


def inline(environments: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence that says that rows prove less than others; empty where all were certified in a process without solvers."""
    are_inline = {environment.get("isolation") == "inline" for environment in environments}
    if True not in are_inline:
        return ""
    runs = "Some runs" if False in are_inline else "All runs"
    return f"**{runs} were certified in the process of their solver alone** (isolation inline), which a solver can change: they prove less."


def disturbed(runs: pd.DataFrame) -> str:
    """Return a sentence that says how many runs the machine disturbed, by what and how much at worst, and of which solvers, where these
    are few; empty where it disturbed none."""
    ran = runs[runs["status"] != Status.SKIPPED]
    each = ran["disturbances"].map(json.loads).explode().dropna().map(str)
    if each.empty:
        return ""
    parts = each.str.extract(r"(?P<kind>\D*)(?P<number>\d+(?:\.\d+)?)?").assign(sentence=each, number=lambda of: of["number"].astype(float))
    kinds = parts.sort_values("number", na_position="first").groupby("kind")["sentence"].agg(["last", "size"])
    worst = kinds.sort_values("size", ascending=False).head(_MOST_NAMED)
    what = "; ".join(f"{escaped(sentence)} (in {count})" for sentence, count in zip(worst["last"], worst["size"], strict=True))
    labels = ran.loc[each.index.unique(), "solver_label"]
    of = f", of {enumerated(list(map(escaped, labels.unique())))}," if labels.nunique() <= _MOST_NAMED else ""
    count = f"{len(labels)} of {plural(len(ran), 'run')}{of} {'was' if len(labels) == 1 else 'were'} disturbed"
    return f"**{count}**, which may have made times longer. At worst, {what}: column `disturbances` of table `run`."


def machines(machines: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence naming the machines where there are several."""
    if len(machines) < 2:
        return ""
    names = "; ".join(f"{machine_name(place)}: {escaped(machine_words(machine))}" for place, machine in enumerate(machines))
    return f"**The runs were made on {len(machines)} machines** ({names}). No ratio, mean or profile mixes their times."


def headlines(winners: pd.DataFrame) -> list[str]:
    """Return sentences that count, for each machine and target, which kind of solver was fastest on how many problems; one for those alike.

    A problem on which no rival was run on every seed has no winner, nor has one on which times are about equal: they are counted apart.
    """
    targets: dict[tuple[str, str], list[str]] = {}
    for (target, *machine), rows in winners.groupby(_keys(winners, "target"), sort=False):
        alone, equal = rows["walkover"].astype(bool), about_equal(rows)
        counts = {f"a {kind} solver is fastest": (rows["kind"].eq(kind) & ~alone & ~equal).sum() for kind in (SPECIALISED, GENERIC, PEER)}
        counts |= {"times are about equal": equal.sum()}
        counts |= {"no solver reached it": rows["winner"].isna().sum(), "no rival was run on every seed": alone.sum()}
        first, *others = [f"{words} on {count}" for words, count in counts.items() if count]
        sentence = enumerated([f"{first} of {plural(len(rows), 'problem')}", *others])
        targets.setdefault((f"On {machine[0]}, to" if machine else "To", sentence), []).append(format_target(float(str(target))))
    return [f"{to} a proven relative gap of {enumerated(alike)}, {sentence}." for (to, sentence), alike in targets.items()]


def _keys(table: pd.DataFrame, column: str) -> list[str]:
    """Return what the rows of a table are told apart by: a column, and the machine where there are several."""
    return [name for name in (column, "machine") if name in table]


def certainty(winners: pd.DataFrame) -> str:
    """Return how many ratios have an interval, and how many contests have none since no rival reached the target; empty if all is none."""
    ratios, in_vain = int(winners["ratio"].notna().sum()), int(((winners["rivals"] != "") & ~winners["walkover"].astype(bool)).sum())
    with_interval = f", {int(winners['ratio_low'].notna().sum())} with a 95 % interval" if ratios else ""
    alone = f"No rival reached the gap in {plural(in_vain, 'contest')}, which have no ratio." if in_vain else ""
    return f"{plural(ratios, 'ratio')}{with_interval}. {alone}".rstrip() if ratios or in_vain else ""


def failures(winners: pd.DataFrame) -> list[tuple[str, str]]:
    """Return, for each problem on which some target was reached by no solver or by no rival, its label and how those ended."""
    sentences = []
    for problem, rows in winners[winners["failed"] != ""].groupby(_keys(winners, "problem"), sort=False):
        targets: dict[str, list[str]] = {}
        for target, failed in zip(rows["target"], rows["failed"], strict=True):
            targets.setdefault(failed, []).append(format_target(target))
        sentences.append(
            (", ".join(map(str, problem)), " ".join(f"To {enumerated(alike)}, {failed}." for failed, alike in targets.items()))
        )
    return sentences


def run_counts(runs: pd.DataFrame) -> str:
    """Return how many runs ended how, in a sentence."""
    statuses = runs["status"].value_counts()
    counts = ", ".join(f"{statuses[status]} {status}" for status in Status if status in statuses)
    return plural(len(runs), "run") + (", all verified." if [*statuses.index] == [Status.VERIFIED] else f": {counts}.")


def tracebacks(runs: pd.DataFrame, places: Mapping[int, Sequence[Place]]) -> str:
    """Return the tracebacks of failed runs as plain text, each once: the runs that have it, the reason, and its lines of code."""
    named: dict[str, list[str]] = {}
    columns = (runs[name] for name in ("id", "problem_label", "solver_label", "status", "reason"))
    for run, problem, solver, status, reason in zip(*columns, strict=True):
        if status == Status.ERROR and (passed := places.get(run)):
            lines = [f"  {one_line(str(reason), LONGEST_CELL)}", *traceback_lines(passed[-MOST_PLACES:])]
            named.setdefault("\n".join(lines), []).append(f"{solver} on {problem}")
    texts = [f"{first}{f' and {len(more)} more' if more else ''}\n{text}" for text, (first, *more) in named.items()]
    rest = [f"and {plural(len(texts) - MOST_TRACEBACKS, 'other traceback')}"] if len(texts) > MOST_TRACEBACKS else []
    return "\n\n".join([*texts[:MOST_TRACEBACKS], *rest])


def facts(runs: pd.DataFrame) -> str:
    """Return what one problem is: its family, dimensions, data, parameters, seeds and notes, as a list."""
    seeds = [str(int(seed)) for seed in runs["seed"].dropna().unique()]
    notes = dict.fromkeys(note for text in runs["notes"].unique() for note in json.loads(text))
    lines = {
        "Problem": _different(runs["problem"]),
        "Dimensions": _different(map(_dimensions, runs["dimensions"].unique())) or "unknown, for it was never built",
        "Data": _different(map(_pairs, runs["data"].unique())),
        "Parameters": _different(map(_pairs, runs["parameters"].unique())),
        "Seeds" if len(seeds) > 1 else "Seed": ", ".join(seeds),
        "Notes": "; ".join(note.removesuffix(".") for note in notes),
    }
    return "\n".join(f"- {title}: {escaped(text)}" for title, text in lines.items() if text)


def solver_notes(runs: pd.DataFrame) -> str:
    """Return what solvers reported of their runs, each thing once: such as what one picked, and why."""
    notes = [(str(label), json.loads(info).get("note") or "") for label, info in zip(runs["solver_label"], runs["info"], strict=True)]
    said = dict.fromkeys((label, str(note)) for label, note in notes)  # a plug-in's note may be anything that JSON has
    return "\n".join(f"- {escaped(label)} says: {escaped(note)}" for label, note in said if note)


def enclosure_sentences(enclosures: pd.DataFrame) -> str:
    """Return the best proven enclosure of each instance of one problem."""
    sentences = []
    for row in enclosures.to_dict("records"):
        seed = _seed(row, " for seed {}") if len(enclosures) > 1 else ""
        lower, upper = (format_lower, format_upper) if row["agrees"] else (format_objective, format_objective)
        high = f"{upper(row['primal'])} (by {escaped(row['primal_solver'])})"
        if row["dual"] != row["dual"]:
            sentences.append(f"The runs prove{seed} that the optimum is at most {high}, and nothing from below.")
            continue
        low = f"{lower(row['dual'])} (by {escaped(row['dual_solver'])})"
        if row["agrees"]:
            gap = format_gap(row["relative_gap"])
            sentences.append(f"The runs prove{seed} that the optimum lies between {low} and {high}: a gap of {gap}.")
        else:
            sentences.append(f"**The runs contradict each other{seed}: the lower bound {low} exceeds the objective {high}.**")
    return " ".join(sentences)


def contradictions(enclosures: pd.DataFrame) -> list[str]:
    """Return a sentence for every instance on which one run's lower bound exceeds another's objective: both cannot be right."""
    return [
        f"{CONTRADICTION} on {row['problem']}{_seed(row, ' (seed {})')}: the lower bound {format_objective(row['dual'])} of "
        f"{row['dual_solver']} exceeds the objective {format_objective(row['primal'])} of {row['primal_solver']}. At least one of them is "
        f"wrong: trust no number of this problem. Enclosures that miss the others: {row['disagreeing']}."
        for row in enclosures[~enclosures["agrees"].astype(bool)].to_dict("records")
    ]


def _seed(row: Mapping[Hashable, Any], words: str) -> str:
    import pandas as pd

    return "" if pd.isna(row["seed"]) else words.format(int(row["seed"]))


def reading(kinds: Iterable[str]) -> str:
    """Return the definitions behind the tables, for runs of solvers of these kinds."""
    statuses = "\n".join(f"- `{status}`: {status.sentence}" for status in Status)
    return f"{READING}{PEERS if PEER in set(kinds) else ''}\nA run ends with one of these statuses:\n\n{statuses}"


def limitations(runs: pd.DataFrame) -> str:
    """Return what the numbers do not say."""
    return LIMITATIONS.format(repeated=", the more so as every case was run once" if _repetitions(runs)[1] == 1 else "")


def _repetitions(runs: pd.DataFrame) -> tuple[int, int]:
    """Return how often cases were run, at least and at most."""
    counts = runs.groupby(["instance_key", "solver_label"])["repetition"].nunique()
    return int(counts.min()), int(counts.max())


def environment(environments: Sequence[Mapping[str, Any]]) -> str:
    """Return the environments as a Markdown table, one column for each that differs, and when they were used."""
    import pandas as pd

    flat, different = _environments(environments)
    lines, heads = [f"Started: {escaped(', '.join(str(entry['started']) for entry in environments))}."], ["Value"]
    if len(different) > 1:
        lines.append(f"**The runs were made in {len(different)} different environments: their times hardly compare across them.**")
        ids = [[str(of["id"]) for of, table in zip(environments, flat, strict=True) if table == entry] for entry in different]
        heads = [f"Environment {', '.join(of)}" for of in ids]
    keys = dict.fromkeys(key for entry in different for key in entry)
    table = pd.DataFrame([[key, *(entry.get(key, BLANK) for entry in different)] for key in keys], columns=pd.Index(["", *heads]))
    return "\n\n".join([*lines, to_markdown(table)])


def provenance_lines(environments: Sequence[Mapping[str, Any]], runs: pd.DataFrame) -> dict[str, str]:
    """Return what the times depend on (machine, date, versions, threads, limits, repetitions) in lines of Markdown, by their titles."""
    flat, _ = _environments(environments)
    dates = sorted(str(entry["started"])[:10] for entry in environments)

    def of(*keys: str) -> str:
        return ", ".join(f"{key} {_either(values)}" for key in keys if (values := [entry[key] for entry in flat if key in entry]))

    least, most = _repetitions(runs)
    often = "once" if most == 1 else f"{least} times" if least == most else f"{least} to {most} times"
    linear: dict[str, dict[str, None]] = {}  # some solvers have several builds, which their versions do not tell apart
    for label, info in zip(runs["solver_label"], runs["info"], strict=True):
        if name := json.loads(info).get("linear_solver"):
            linear.setdefault(str(name), {})[str(label)] = None
    lines = {
        "Machine": "; ".join(dict.fromkeys(machine_words(entry) for entry in environments)),
        "Run": " to ".join(dict.fromkeys([dates[0], dates[-1]])) + f", every case {often}",
        "Versions": of("bench mtl", "commit", "python", "numpy", "blas", "numba"),
        "Libraries": of(*_LIBRARIES),
        "Linear solvers": "; ".join(f"{name} ({', '.join(labels)})" for name, labels in linear.items()),
        "Threads": _either([str(threads) for threads in runs["threads"].unique()]),
        "Limits": _different(
            ", ".join(words.format(f"{limits[key]:g}") for key, words in _LIMITS.items() if limits.get(key) is not None)
            for limits in map(json.loads, runs["limits"].unique())
        ),
    }
    return {title: escaped(line) for title, line in lines.items() if line}


def _either(values: Iterable[str]) -> str:
    """Return different values, none twice; a dash is no value."""
    return " or ".join(dict.fromkeys(value for value in values if value != BLANK)) or BLANK


def environments_differ(environments: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence saying in what the environments of one machine differ; empty where they do not."""
    _, different = _environments(environments)
    keys = dict.fromkeys(key for entry in different for key in entry)
    unlike = [key for key in keys if len({entry.get(key) for entry in different}) > 1]
    if unlike == ["commit"]:
        return f"The runs were made at {len(different)} commits, with the same files that problems and solvers compute with."
    what = f"which differ in {escaped(', '.join(unlike))}: ratios mix them."
    return f"**The runs were made in {len(different)} [environments](#environment)**, {what}" if unlike else ""


def _environments(environments: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return every environment laid open, and the different ones."""
    flat = [_flat({key: value for key, value in entry.items() if key not in ("id", "started")}) for entry in environments]
    return flat, [entry for i, entry in enumerate(flat) if entry not in flat[:i]]


def verbatim(text: str, language: str) -> str:
    """Return a code block that holds `text`, whatever backticks are in it."""
    text = suite_text(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def suite_text(text: str) -> str:
    """Return a suite file as it is shown: what cannot be seen is an escape, and what is longer than any suite may be is cut."""
    cut = len(text) > LARGEST_FILE
    return visible(text[:LARGEST_FILE]) + ("\n... (cut)" if cut else "")


def _dimensions(text: str) -> str:
    """Return sizes as ``n = 2400 examples in all, d = 200, m = 60``: a label may tell the examples of one task."""
    size, about = json.loads(text), _pairs(text, ("n", "d", "m"))
    return about.replace(f"n = {size['n']}", f"n = {size['n']} examples in all", 1) if "n" in size and size.get("m", 1) > 1 else about


def _pairs(text: str, first: Sequence[str] = ()) -> str:
    """Return a JSON table as ``a = 1, b = x``, with these names first."""
    table = json.loads(text)
    keys = dict.fromkeys((*(name for name in first if name in table), *table))
    return ", ".join(f"{key} = {value if isinstance(value := table[key], str) else json.dumps(value)}" for key in keys)


def _different(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))


def _flat(table: Mapping[str, Any]) -> dict[str, str]:
    """Nested tables laid open; what is not there is a dash."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        text = BLANK if value is None else str(value)
        if key == "blas":
            text = ", ".join(sorted(text.split(", ")))  # some rows have them as they were loaded
        flat |= _flat(value) if isinstance(value, Mapping) else {str(key).replace("_", " "): text}
    return flat


def machine_words(machine: Mapping[str, Any]) -> str:
    """Return a machine in words, as far as its description says: ``AMD EPYC (family 25), 2 cores, 7.8 GiB, Linux x86_64``."""
    cores, memory = machine.get("logical_cores"), machine.get("memory_gib")
    sizes = [f"{cores} cores" if cores is not None else "", f"{memory} GiB" if memory is not None else ""]
    details = machine.get("processor_details")
    processor = " ".join(filter(None, [str(machine.get("processor") or ""), f"({details})" if details else ""]))
    return ", ".join(str(part) for part in (processor, *sizes, machine.get("system")) if part)
