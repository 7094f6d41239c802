"""The devices of JAX, where it is installed: which there are, what is on them, and programs that are compiled for one.

Everything is float64 within these calls alone: no setting of the process is changed.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from bench_mtl.core.compilation import compiling
from bench_mtl.core.device_moves import moving
from bench_mtl.core.devices import gpus, jax_devices
from bench_mtl.core.errors import InputError
from bench_mtl.core.text import one_line

#: What a user may ask for.
DEVICES = ("cpu", "gpu")
#: The first release of JAX with the settings of precision that calls need.
_OLDEST = (0, 8)
#: Settings that would have products of doubles made of something else, and what of.
_LOWER_PRECISION = {
    "CUBLAS_EMULATE_DOUBLE_PRECISION": "emulated float64",
    "NVIDIA_TF32_OVERRIDE": "TF32",
    "JAX_DEFAULT_DTYPE_BITS": "float32",
}
#: What JAX says of memory that cannot be had.
_NO_MEMORY = "RESOURCE_EXHAUSTED"
#: Characters of its messages that are retained.
_LONGEST = 200
#: So many programs are kept, each for data of one shape.
_MOST_PROGRAMS = 256
_programs: dict[Any, Any] = {}


def version() -> str:
    """Return the version of JAX, or "not installed"."""
    return f"jax {metadata.version('jax')}" if importlib.util.find_spec("jax") is not None else "not installed"


def obstacle(device: str, needed: int = 0) -> str | None:
    """Return why a device cannot be used for so many bytes, as the end of a sentence; None where it can.

    JAX is imported for it, and its devices are opened, which counts as compiling.
    """
    if version() == "not installed":
        return "is not installed: pip install '.[accelerator]'"
    if tuple(int(part) for part in metadata.version("jax").split(".")[:2]) < _OLDEST:
        return f"needs jax {'.'.join(map(str, _OLDEST))} or later, and {version()} is installed"
    for name, kind in _LOWER_PRECISION.items():
        if os.environ.get(name, "") not in ("", "0", "64"):
            return f"computes in float64 alone, and {name}={os.environ[name]} asks for {kind}: unset it"
    try:
        with compiling():
            jax = importlib.import_module("jax")
    except (ImportError, RuntimeError) as error:  # also where jaxlib is of another release
        return f"cannot be used, for JAX cannot be imported: {one_line(str(error), _LONGEST)}"
    try:
        chosen = _first(device)
    except RuntimeError:
        known = f"has no device '{device}' here: JAX knows {', '.join(jax_devices())}"
        return known if device == "cpu" or not (there := gpus()) else f"{known}; for {there[0].name} install jax[cuda12] or jax[cuda13]"
    with compiling(), on_device():
        has_doubles = jax.device_put(np.ones(1), chosen).dtype == np.float64
    if not has_doubles:
        return f"computes in float64 alone, which JAX makes float32 of on {chosen.device_kind} ({chosen.platform})"
    free = free_bytes(chosen)
    if free is not None and needed > free:
        return f"needs {needed / 2**30:.3g} GiB on the device, which has {free / 2**30:.3g} GiB free"
    return None


def free_bytes(device: Any) -> int | None:
    """Return how many bytes are free on a device of JAX; None where it does not say."""
    memory = device.memory_stats() or {}
    return memory["bytes_limit"] - memory.get("bytes_in_use", 0) if "bytes_limit" in memory else None


def first_device(device: str) -> Any:
    """Return the first device of this kind.

    Raises InputError: there is none, or JAX is not there.
    """
    if (reason := obstacle(device)) is not None:
        raise InputError(f"the accelerator {reason}")
    return _first(device)


def move(values: Any, device: Any) -> Any:
    """Return what `put` does once it has arrived, and count it as moved."""
    import jax

    with moving(sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(values))), on_device():
        return jax.block_until_ready(put(values, device))


def put(values: Any, device: Any) -> Any:
    """Return arrays of float64 and of indices, in tuples, on a device.

    Raises InputError: an array of float32, or of another precision.
    """
    import jax

    for leaf in jax.tree.leaves(values):
        kind = np.asarray(leaf).dtype if not isinstance(leaf, jax.Array) else leaf.dtype
        if kind.kind not in "bi" and kind != np.float64:
            raise InputError(f"the accelerator computes in float64 alone, and has {kind}")
    with on_device():
        return jax.device_put(values, device)


def call(function: Callable[..., Any], kind: Any, *arguments: Any) -> Any:
    """Return what a function of arrays on a device gives, compiled for their shapes and for `kind`; wait for nothing."""
    import jax

    shapes = tuple((leaf.shape, leaf.dtype.str, leaf.device) for leaf in jax.tree.leaves(arguments))
    key = function, kind, shapes
    with on_device():
        if key not in _programs:
            if len(_programs) >= _MOST_PROGRAMS:
                _programs.clear()
            with compiling():
                _programs[key] = jax.jit(function, static_argnums=0).lower(kind, *arguments).compile()
        return _programs[key](*arguments)


@cache
def _first(device: str) -> Any:
    with compiling():
        import jax

        return jax.devices(device)[0]


@contextmanager
def on_device() -> Iterator[None]:
    """Compute in float64 alone. Raises MemoryError: a device has too little memory."""
    import jax

    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        try:
            yield
        except jax.errors.JaxRuntimeError as error:
            if _NO_MEMORY not in str(error):
                raise
            raise MemoryError(f"that of the device, {one_line(str(error), _LONGEST)}") from None
