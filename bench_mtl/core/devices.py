"""The devices of this machine besides its processors: NVIDIA GPUs, and what JAX can compute on.

The former are asked for by the driver's library of management, which opens none, so that a process may fork afterwards.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple

from bench_mtl.core.compilation import compiling

#: NVIDIA's library, and the longest name of a device.
_LIBRARY, _LONGEST = "libnvidia-ml.so.1", 96
#: Values of CUDA_VISIBLE_DEVICES with which programs see none.
_NONE_VISIBLE = ("", "-1")


class GPU(NamedTuple):
    """One of them."""

    name: str
    size: int
    """Bytes of its memory."""
    free: int

    def __str__(self) -> str:
        return f"{self.name}, {self.size / 2**30:.3g} GiB, of which {self.free / 2**30:.3g} are free"


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def gpus() -> list[GPU]:
    """Return those that programs may see; none where there is no driver, or it does not answer."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in _NONE_VISIBLE:
        return []
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return []
    if library.nvmlInit_v2() != 0:
        return []
    try:
        count = ctypes.c_uint()
        return [_gpu(library, k) for k in range(count.value)] if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 else []
    finally:
        library.nvmlShutdown()


def no_gpu() -> str | None:
    """Return that there is none, as the end of a sentence; None where there is one."""
    return None if gpus() else "needs an NVIDIA GPU, and there is none here"


def jax_devices() -> list[str]:
    """Return the devices that JAX knows in words, each with its memory where it says it; they are opened for it, which is compiling."""
    with compiling():
        import jax

        each = jax.devices()
    return [f"{one.platform} ({one.device_kind}{_memory(one)})" for one in each]


def _memory(device: Any) -> str:
    limit = (device.memory_stats() or {}).get("bytes_limit")
    return "" if limit is None else f", {limit / 2**30:.3g} GiB"


def _gpu(library: Any, k: int) -> GPU:
    device, name, memory = ctypes.c_void_p(), ctypes.create_string_buffer(_LONGEST), _Memory()
    library.nvmlDeviceGetHandleByIndex_v2(k, ctypes.byref(device))
    library.nvmlDeviceGetName(device, name, _LONGEST)
    library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
    return GPU(name.value.decode(errors="replace"), memory.total, memory.free)
