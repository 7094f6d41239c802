"""Values of our own dataclasses as bytes that nobody has to unpickle: JSON, with arrays in base64, read by the types of the fields."""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from bench_mtl.core.types import Array, Certificate, Proof, Record
from bench_mtl.model.patterns import PackedPattern
from bench_mtl.runner.wire import UnreadableError

T = TypeVar("T")

#: What fields may be declared with whose modules import that for type checkers only.
_NAMES = {"Array": Array, "Certificate": Certificate, "Mapping": Mapping, "PackedPattern": PackedPattern, "Proof": Proof, "Record": Record}


def flat(value: Any) -> bytes:
    """Return a value, made of numbers, words, bytes, arrays of float64, lists, tables and dataclasses, as bytes.

    Raises
    ------
    TypeError : there is something else in it.
    """
    return json.dumps(_flat(value)).encode()


def built(kind: type[T], data: object) -> T:
    """Return the value of type `kind` that `flat` has made these bytes of. They have no say in what is run, imported or looked up.

    Raises
    ------
    UnreadableError : it has not.
    """
    try:
        value: T = _reader(typing.cast(Any, kind))(json.loads(_a(bytes, data)))
    except UnreadableError:
        raise
    except Exception as error:  # whatever nonsense does to the parser, the deepest nesting included
        raise UnreadableError(f"{type(error).__name__}: {str(error)[:200]}") from None
    return value


def _flat(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype != np.float64:
            raise TypeError(f"an array of {value.dtype}")
        return [list(value.shape), _flat(np.ascontiguousarray(value, dtype="<f8").tobytes())]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value):
        return {field.name: _flat(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [_flat(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _flat(item) for key, item in value.items()}
    return value


_Reader = Callable[[Any], Any]


@functools.cache
def _reader(kind: Any) -> _Reader:
    """Return what reads a value of a declared type."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (typing.Union, types.UnionType):
        (only,) = [part for part in inner if part is not type(None)]
        read = _reader(only)
        return lambda value: None if value is None else read(value)
    if origin is np.ndarray:
        return _array
    if origin is tuple:
        return _tuple_reader(inner)
    if origin is not None and issubclass(origin, Mapping):
        each = _reader(inner[1])
        return lambda value: {name: each(item) for name, item in _a(dict, value).items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return lambda value: kind(value)
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    if isinstance(kind, type) and issubclass(kind, tuple):
        readers = [_reader(hint) for hint in _hints(kind).values()]
        return lambda value: kind(*(read(item) for read, item in zip(readers, _a(list, value), strict=True)))
    if kind is bytes:
        return _bytes
    if kind is float:
        return lambda value: float(_a((int, float), value))
    if kind in (bool, int, str):
        return lambda value: _a(kind, value)
    raise TypeError(f"nobody has said how to read {kind}")


def _bytes(value: Any) -> bytes:
    return base64.b64decode(_a(str, value), validate=True)


def _array(value: Any) -> Array:
    shape, data = _a(list, value)
    array: Array = np.frombuffer(_bytes(data), dtype="<f8").astype(np.float64).reshape([_a(int, size) for size in shape])
    return array


def _tuple_reader(inner: tuple[Any, ...]) -> _Reader:
    if len(inner) == 2 and inner[1] is Ellipsis:
        each = _reader(inner[0])
        return lambda value: tuple(each(item) for item in _a(list, value))
    readers = [_reader(part) for part in inner]
    return lambda value: tuple(read(item) for read, item in zip(readers, _a(list, value), strict=True))


def _dataclass_reader(kind: Any) -> _Reader:
    hints = _hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind)}

    def read(value: Any) -> Any:
        if _a(dict, value).keys() != readers.keys():
            raise UnreadableError(f"a {kind.__name__} with other fields")
        return kind(**{name: reader(value[name]) for name, reader in readers.items()})

    return read


def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, localns=_NAMES)


def _a(kind: Any, value: Any) -> Any:
    """`value` if it is of this very kind: no bool is a number here."""
    if type(value) not in (kind if isinstance(kind, tuple) else (kind,)):
        raise UnreadableError(f"{type(value).__name__} where it has no place")
    return value
