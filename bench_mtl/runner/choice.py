"""Which executor a user asks for."""

from __future__ import annotations

from collections.abc import Callable

from bench_mtl.core.errors import InputError
from bench_mtl.runner.executors import Executor, InlineExecutor, LocalExecutor, processors, require_processors
from bench_mtl.runner.setting import Setting


def executor_for(
    setting: Setting, *, slots: int = 1, isolation: str = "process", cluster: str | None = None, notify: Callable[[str], None] = print
) -> Callable[[], Executor]:
    """Return what makes the executor that is asked for in words, which takes a while; words are checked at once.

    Parameters
    ----------
    isolation : "process" or "inline"
    cluster : None, "local" or the address of a Dask scheduler
    notify : called with a sentence that the user should read while cases run

    Raises InputError for words that do not go together, more slots or threads than there are processors, or an empty address.
    """
    if isolation == "inline":
        if slots > 1 or cluster is not None:
            raise InputError("--isolation inline runs one case at a time in this process: neither --slots nor --cluster goes with it")
        require_processors(setting.threads)
        return lambda: InlineExecutor(setting)
    if cluster is None or cluster == "local":
        processors(slots, setting.threads)
    elif not cluster.strip() or slots > 1:
        raise InputError("--cluster is local, with --slots, or the address of a Dask scheduler, whose workers' threads are the slots")
    if cluster is None:
        return lambda: LocalExecutor(setting, slots)
    from bench_mtl.runner.cluster import ClusterExecutor

    def made() -> Executor:
        executor = ClusterExecutor.local(setting, slots) if cluster == "local" else ClusterExecutor.at(setting, cluster)
        executor.notify = notify
        return executor

    return made
