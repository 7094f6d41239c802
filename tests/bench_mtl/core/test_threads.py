"""Calls that run together: all of them, whatever one of them does and however few threads there are."""

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bench_mtl.core import threads
from bench_mtl.core.errors import InputError
from bench_mtl.core.threads import fitting_blas_threads, one_blas_thread, pinned_thread_count, run_together, useful_threads


def test_other_threads_take_part() -> None:
    met = threading.Barrier(2, timeout=10.0)  # nobody passes it alone
    run_together([lambda: met.wait() and None, lambda: met.wait() and None])


@pytest.mark.parametrize("failing", [None, 0, 3])
def test_all_calls_have_run_at_the_end_also_where_one_fails(failing: int | None) -> None:
    done: list[int] = []

    def call(i: int) -> None:
        if i == failing:
            raise ValueError(f"call {i}")
        done.append(i)

    with nullcontext() if failing is None else pytest.raises(ValueError, match=f"call {failing}"):
        run_together([lambda i=i: call(i) for i in range(20)])  # type: ignore[misc]
    assert sorted(done) == [i for i in range(20) if i != failing]
    run_together([])


def test_where_no_thread_can_start_this_one_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    ran_in: list[int] = []
    run_together([lambda: ran_in.append(threading.get_ident())] * 3)
    assert ran_in == [threading.get_ident()] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_its_own_threads() -> None:
    run_together([lambda: None] * 3)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_met).get(timeout=60)


def _met() -> bool:
    test_other_threads_take_part()
    return True


def test_threads_are_bounded_by_the_data_the_processors_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available_processors", lambda: 2)
    for value, expected in (("1", 1), ("4,2", 2), ("", 2), ("two", 2), ("0", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert useful_threads(None, 10**6) == expected
        assert useful_threads(None, 10**5) == 1
    assert useful_threads(1000, 10**6) == 2
    for bad in (0, -1, 1.5, "2", True):
        with pytest.raises(InputError, match="threads must be"):
            useful_threads(bad, 10**6)


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_one_blas_thread_until_the_last_is_out_for_few_numbers() -> None:
    with threadpool_limits(2):
        before = blas_threads()
        with one_blas_thread():
            with fitting_blas_threads(1000):
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before
        with pytest.raises(ValueError, match="lost"), one_blas_thread():
            raise ValueError("lost")
        assert blas_threads() == before
        with fitting_blas_threads(100_000_000):
            assert blas_threads() == before


def test_who_is_out_first_does_not_matter_nor_who_was_in_before() -> None:
    """A in, B in, A out, B out; and then a thread that sets BLAS's threads itself."""
    before, two = blas_threads(), _set(2)  # by this thread, which lives on
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        a, b = one_blas_thread(), one_blas_thread()
        first.submit(a.__enter__).result()
        second.submit(b.__enter__).result()
        assert blas_threads() == {1}
        first.submit(a.__exit__, None, None, None).result()
        assert blas_threads() == {1}
        second.submit(b.__exit__, None, None, None).result()
        assert blas_threads() == before
        assert first.submit(_set, 1).result() == {1}
        assert first.submit(_set, 2).result() == two
    assert blas_threads() == before


def _set(number: int) -> set[int]:
    with threadpool_limits(number):
        return blas_threads()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_inside_is_not_held() -> None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with threadpool_limits(2):
        before = blas_threads()
        with one_blas_thread():
            child = context.Process(target=_in_child, args=(sender,))
            child.start()
            assert receiver.poll(30.0)
            assert receiver.recv() == (before, {1}, before)
            child.join()


def _in_child(sender: Any) -> None:
    free = blas_threads()
    with one_blas_thread():
        held = blas_threads()
    sender.send((free, held, blas_threads()))


@pytest.mark.parametrize(("text", "count"), [("4,2", 4), ("3", 3), ("0", 1), ("", 1), ("²", 1), ("many", 1)])
def test_numbers_of_threads_are_read_from_the_environment(text: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert pinned_thread_count() == count
