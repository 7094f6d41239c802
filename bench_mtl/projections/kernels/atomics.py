"""Integers that several threads read and write: what Numba leaves out for processors."""

from __future__ import annotations

from typing import Any

from numba import types

from bench_mtl.core.kernels.jit import intrinsic


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """array[index]; what the thread that stored it wrote before is seen after."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature.args[0], *arguments), "acquire", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index] = value, after everything that this thread wrote before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _address(context, builder, signature.args[0], *arguments[:2]), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@intrinsic
def add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index] += value at once; returns what was there before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _address(context, builder, signature.args[0], *arguments[:2]), arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), generate
