"""The arguments of `compare`: problems, solvers and targets, checked and by label."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping, Sequence

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.text import require_label
from bench_mtl.engine.arguments import a_problem, a_solver
from bench_mtl.engine.registry import Registry
from bench_mtl.model.protocols import Problem, Solver


def labelled_problems(problems: object) -> dict[str, Problem]:
    """Return the problems by label: their names, numbered where several have one, unless they have labels."""
    if isinstance(problems, Mapping):
        by_label = {_label("problems", label): _a_problem(problem, f"problems['{label}']") for label, problem in problems.items()}
    elif isinstance(problems, Sequence) and not isinstance(problems, str):
        checked = [_a_problem(problem, f"problems[{place}]") for place, problem in enumerate(problems)]
        counts = Counter(problem.name for problem in checked)
        names = [problem.name if counts[problem.name] == 1 else f"{problem.name} {i}" for i, problem in enumerate(checked, start=1)]
        if len(set(names)) < len(names):
            raise InputError("problems: two would have one label; give them as a table")
        by_label = dict(zip(names, checked, strict=True))
    else:
        by_label = {(problem := _a_problem(problems, "problems")).name: problem}
    if not by_label:
        raise InputError("problems must hold at least one problem")
    return by_label


def _a_problem(problem: object, name: str) -> Problem:
    """Return a problem, or what a model of CVXPY is as one."""
    if type(problem).__module__.partition(".")[0] != "cvxpy":
        return a_problem(problem, name)
    from bench_mtl.enclosures.convex_model import ConvexModel
    from bench_mtl.enclosures.enclosing import require_model

    return ConvexModel(require_model(problem, name))


def labelled_solvers(solvers: object, registry: Registry) -> dict[str, Solver]:
    """Return the solvers by label: their own ones, unless others are given."""
    if isinstance(solvers, Mapping):
        pairs = [(_label("solvers", label), a_solver(solver, registry, f"solvers['{label}']")) for label, solver in solvers.items()]
    else:
        listed = [solvers] if isinstance(solvers, (str, Solver)) else solvers
        if not isinstance(listed, Sequence):
            raise InputError("solvers", solvers, "a list of solvers or of their names")
        checked = [a_solver(solver, registry, f"solvers[{place}]") for place, solver in enumerate(listed)]
        pairs = [(require_label(f"the label of solver '{solver.name}'", str(solver.label)), solver) for solver in checked]
    twice = [label for label, count in Counter(label for label, _ in pairs).items() if count > 1]
    if twice:
        raise InputError(f"solvers: two are labelled '{twice[0]}'; give them as a table, such as {{'a': ..., 'b': ...}}")
    if not pairs:
        raise InputError("solvers must hold at least one solver")
    return dict(pairs)


def _label(name: str, label: object) -> str:
    if not isinstance(label, str) or not label:
        raise InputError(f"{name}: labels", label, "words")
    return require_label(f"a label in {name}", label)


def relative_gaps(targets: object, name: str = "targets") -> tuple[float, ...]:
    """Return relative gaps, loose to tight."""
    listed = list(targets) if isinstance(targets, Sequence) and not isinstance(targets, str) else [targets]
    gaps = {real_number(name, target, strict=True) for target in listed}
    if not gaps or max(gaps) > 1.0:
        raise InputError(name, targets, "relative gaps, above 0 and at most 1")
    return tuple(sorted(gaps, reverse=True))


def require_importable(registry: Registry, problems: Iterable[Problem], solvers: Iterable[Solver]) -> None:
    """Raise InputError that names a class which another process would not find, if there is one."""
    pairs: list[tuple[str, Problem | Solver, object]] = [("problem", each, registry.problems.get(each.name)) for each in problems]
    pairs += [("solver", each, registry.solvers.get(each.name)) for each in solvers]
    for kind, one, installed in pairs:
        if type(one).__module__.startswith("bench_mtl.enclosures."):
            continue
        if any(getattr(installed, name, None) != getattr(type(one), name) for name in ("__module__", "__qualname__")):
            raise InputError(
                f"{kind} {type(one).__name__} is not installed, so that a process of its own cannot import it: save it as "
                f"FOLDER/{kind}s/{one.name}.py and pass plugins='FOLDER'; or isolation='inline' runs it in this process"
            )


def with_their_classes(registry: Registry, problems: Iterable[Problem], solvers: Iterable[Solver]) -> Registry:
    """Return the registry with the classes of these problems and solvers, installed or not; others are imported when they are asked for."""
    return Registry(
        ChainMap({type(each).name: type(each) for each in problems}, registry.problems),  # type: ignore[arg-type]
        ChainMap({type(each).name: type(each) for each in solvers}, registry.solvers),  # type: ignore[arg-type]
    )
