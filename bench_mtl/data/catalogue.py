"""Data sets by name or file, as suites and the command line ask for them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError, unknown
from bench_mtl.core.files import is_dir, is_file, require_readable
from bench_mtl.data import synthetic
from bench_mtl.data.embedded import digits
from bench_mtl.data.preprocess import preprocess
from bench_mtl.data.readers import read_arff, read_libsvm, read_npz, read_prices, read_shards, read_tabular
from bench_mtl.data.readers.common import naming, unpacked_name
from bench_mtl.data.readers.libsvm import looks_like_libsvm
from bench_mtl.data.readers.npz import npz_arrays, npz_headers
from bench_mtl.model.task_data import TaskData

DATA_VARIABLE = "BENCH_MTL_DATA"
_HOW_TO_SET = f"set the data directory with --data-dir or {DATA_VARIABLE}"
_COMMON_KEYS = ("name", "file", "preprocess", "fallback")


@dataclass(frozen=True)
class Entry:
    """A data set that can be asked for by name."""

    name: str
    kind: str
    """``"generator"``, ``"embedded"`` or ``"file"``."""
    description: str


_GENERATORS: dict[Callable[..., TaskData], str] = {
    synthetic.blocks_dense: "1 task of 1000000 x 100 dense, labels (or real targets), in shards of a folder: for more than memory holds",
    synthetic.blocks_sparse: (
        "1 task of 1000000 x 2000 sparse, a label (or real targets), in shards of a folder: 25 features an example, frequent and rare"
    ),
    synthetic.synthetic_glm: (
        "1 task of 1000 x 800 dense, real targets (or labels, classes): sparse coefficients (Duchi et al. 2008, sec. 7)"
    ),
    synthetic.synthetic_l1inf: "60 tasks of 40 x 200 dense, labels: jointly sparse coefficients (Quattoni et al. 2009, sec. 5)",
    synthetic.synthetic_market: "1000 periods of 50 correlated assets: price relatives, for portfolios",
    synthetic.synthetic_multiclass: "1000 x 50 dense, 10 classes that share the 10 features that tell them apart",
    synthetic.synthetic_sparse_low_rank: "30 tasks of 60 x 100 dense, real targets: sparse + low rank (Chen et al. 2012, sec. 7.1)",
    synthetic.synthetic_stream: "1 task of 1000 x 2000000 sparse, a label: 5200 features an example, as frequent as words (Singer 2008)",
}
_EMBEDDED: dict[Callable[..., TaskData], str] = {digits: "1797 x 64 dense, 10 classes: handwritten digits (scikit-learn)"}
_BUILTIN = {function.__name__: function for function in (*_GENERATORS, *_EMBEDDED)}
_READERS: dict[str, Callable[..., TaskData]] = {
    ".npz": read_npz,
    ".arff": read_arff,
    ".svm": read_libsvm,
    ".libsvm": read_libsvm,
    ".txt": read_libsvm,
    ".csv": read_tabular,
    ".tsv": read_tabular,
    ".parquet": read_tabular,
    ".npy": read_tabular,
    ".json": read_shards,
}
#: A table is one of prices unless one of these says what is to be learned from it.
_LEARNED = ("labels", "targets", "class_column")


def load(spec: Mapping[str, Any], *, data_dir: Path | None = None, seed: int | None = None, prices: bool = True) -> TaskData:
    """Return the tasks that a table of a suite asks for.

    Parameters
    ----------
    spec : exactly one of ``name`` (a generator, an embedded set, or the stem of an .npz file in the data directory) and
        ``file`` (a path that ends in .npz, .arff, .csv, .tsv, .parquet or .npy, or .svm, .libsvm, .txt or anything else for LIBSVM, or the
        .json of a folder of shards; of text also with .gz, .bz2 or .xz after that), the keyword
        options of that generator or reader, and perhaps ``preprocess`` (the name of a step or a list of names). A relative
        ``file`` is looked for in the data directory, then in the current folder. With ``name`` there may be a ``fallback``, a
        table of its own, for where the data directory has no such set; `notes` say that it took its place.
    data_dir : the data directory; None takes the environment variable BENCH_MTL_DATA.
    seed : passed on where the function takes a seed and the spec gives none.
    prices : whether a .csv for which none of ``labels``, ``targets`` and ``class_column`` is given holds prices (`read_prices`), as it
        does for a portfolio; otherwise it is refused, and says which columns there are.

    Raises
    ------
    InputError : an unknown name or key (the nearest is suggested), a file or data directory that is not there (with the
        places looked at), or whatever the generator, reader or preprocessing step refuses.
    """
    spec, notes = available(spec, data_dir)
    label = _label(spec)
    function, fixed = resolved(spec, data_dir, prices)
    allowed = options_of(function)
    options = {key: value for key, value in spec.items() if key not in _COMMON_KEYS}
    for key in options:
        if key not in allowed:
            raise unknown(f"key for data '{label}'", key, [*_COMMON_KEYS, *allowed])
    if "seed" in allowed and seed is not None:
        options.setdefault("seed", seed)
    steps = spec.get("preprocess", ())
    if not isinstance(steps, (str, list, tuple)):
        raise InputError(f"preprocess of data '{label}'", steps, "the name of a step or a list of names")
    try:
        data = preprocess(function(*fixed, **options), [steps] if isinstance(steps, str) else steps)
        return replace(data, notes=notes + data.notes)
    except InputError:
        raise
    except (MemoryError, ValueError, OverflowError) as error:  # what NumPy says to sizes that no machine has
        raise InputError(f"data '{label}' cannot be made: {' '.join(str(error).split()) or type(error).__name__}") from None


def available(spec: Mapping[str, Any], data_dir: Path | None) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the table without its ``fallback``, or, where the data directory has no set of its name, the fallback; and a note of that."""
    if "fallback" not in spec:
        return spec, ()
    label, instead = _label(spec), spec["fallback"]
    if "name" not in spec:
        raise InputError(f"fallback of data '{label}' needs a data set asked for by name, not by file")
    other = _label(instead)
    if label in _BUILTIN or label in _npz_files(data_directory(data_dir)):
        return {key: value for key, value in spec.items() if key != "fallback"}, ()
    return instead, (f"The data directory has no '{label}': '{other}' in its place.",)


def spec_of(text: str, data_dir: Path | None = None) -> dict[str, Any]:
    """Return the table for `load` that a user means by one word: a name where there is such a set, otherwise a file."""
    folder = data_directory(data_dir)
    if text in _BUILTIN or text in _npz_files(folder):
        return {"name": text}
    is_there = any(is_file("data file", place) for place in _places(text, folder))
    return {"file" if is_there or unpacked_name(text).suffix.lower() in _READERS else "name": text}


def takes_seed(spec: Mapping[str, Any]) -> bool:
    """Return whether the `seed` given to `load` can change the tasks: a generator (or a drawing of examples) that fixes no seed itself."""
    _label(spec)
    function = _reader(spec) if "file" in spec else _BUILTIN.get(spec["name"], read_npz)
    if "seed" in spec or "seed" not in options_of(function):
        return False
    drawn = [spec[key] for key in ("examples", "held_out") if not isinstance(spec.get(key), bool) and spec.get(key)]
    return function in _GENERATORS or bool(drawn)


def named_directory(option: Path | None = None) -> Path | None:
    """The data directory as an absolute path, whatever is there: `option`, else the environment variable BENCH_MTL_DATA, else None."""
    value = os.environ.get(DATA_VARIABLE)
    folder = Path(value) if option is None and value else option
    return None if folder is None else Path(os.path.expanduser(folder)).absolute()


def data_directory(option: Path | None = None) -> Path | None:
    """Return `named_directory`; InputError where it is not a folder, which says what named it."""
    folder = named_directory(option)
    if folder is None:
        return None
    named_by = DATA_VARIABLE if option is None else "--data-dir"
    if not is_dir(f"data directory (from {named_by})", folder):
        raise InputError(f"data directory {folder} (from {named_by}) is not a folder: {_HOW_TO_SET}")
    require_readable("data directory", folder)
    return folder


def entries(data_dir: Path | None = None) -> list[Entry]:
    """Return all data sets with a name: generators, embedded sets, and the .npz files of the data directory, if there is one.

    Files are described from their headers (and a few small arrays); a damaged one is listed with what is wrong.
    """
    kinds = {"generator": _GENERATORS, "embedded": _EMBEDDED}
    listed = [Entry(function.__name__, kind, text) for kind, functions in kinds.items() for function, text in functions.items()]
    files = _npz_files(data_directory(data_dir))
    return sorted(listed, key=lambda entry: entry.name) + [Entry(name, "file", _described(path)) for name, path in sorted(files.items())]


def names(data_dir: Path | None = None) -> list[str]:
    """Return the names of all data sets: of `built_in_names`, and the stems of the .npz files of the data directory, if there is one."""
    return [*sorted(_BUILTIN), *sorted(_npz_files(data_directory(data_dir)))]


def option_names(spec: Mapping[str, Any], data_dir: Path | None = None) -> list[str]:
    """Return the names of the options that `load` takes for the data set or the file of this table."""
    # A table of prices has other options than one of examples, and nobody has said yet which a .csv is.
    readers = [resolved(spec, data_dir, prices)[0] for prices in (False, True)]
    return list(dict.fromkeys(option for reader in readers for option in options_of(reader)))


def built_in_names() -> frozenset[str]:
    """Return the names of the data sets that need no file: generators and embedded sets."""
    return frozenset(_BUILTIN)


def _label(spec: Mapping[str, Any]) -> str:
    """Return what the spec calls its data, for messages."""
    if not isinstance(spec, Mapping) or ("name" in spec) == ("file" in spec):
        raise InputError("data", spec, "a table with exactly one of 'name' and 'file'")
    key = "name" if "name" in spec else "file"
    value = spec[key]
    if not isinstance(value, (str, Path) if key == "file" else str) or not str(value):
        raise InputError(f"{key} of data", value, "a non-empty string")
    return str(value)


def resolved(spec: Mapping[str, Any], data_dir: Path | None, prices: bool = True) -> tuple[Callable[..., TaskData], tuple[Path, ...]]:
    """Return the function that `load` calls, and its positional arguments, the file if there is one; InputError as `load` raises it."""
    label = _label(spec)
    if "file" in spec:
        file = _file_at(label, data_directory(data_dir))
        if unpacked_name(label).suffix.lower() not in _READERS and not looks_like_libsvm(file):
            raise InputError(f"file '{label}' of data: its name must end in one of {', '.join(_READERS)}, or it must be a LIBSVM file")
        return _reader(spec, prices), (file,)
    if label in _BUILTIN:
        return _BUILTIN[label], ()
    folder = data_directory(data_dir)
    files = _npz_files(folder)
    if label not in files:
        place = f"there is no {folder / f'{label}.npz'}" if folder else "no data directory is set"
        raise InputError(f"{unknown('data', label, [*_BUILTIN, *files], more='bench-mtl list data')}; {place} ({_HOW_TO_SET})")
    return read_npz, (files[label],)


def _reader(spec: Mapping[str, Any], prices: bool = True) -> Callable[..., TaskData]:
    """Return the function that reads the file of a table for `load`: that of LIBSVM files for a name of no known ending."""
    suffix = unpacked_name(str(spec["file"])).suffix.lower()
    if suffix == ".csv" and prices and not any(key in spec for key in _LEARNED):
        return read_prices
    return _READERS.get(suffix, read_libsvm)


def _places(file: str, folder: Path | None) -> list[Path]:
    """Return where a data file may be: in the data directory and in the current folder, unless its path is absolute; ~ is the home."""
    path = Path(os.path.expanduser(file))
    return [path] if path.is_absolute() else [*([folder / path] if folder else []), Path.cwd() / path]


def _file_at(file: str, folder: Path | None) -> Path:
    places = _places(file, folder)
    for place in places:
        if is_file("data file", place):
            return place
    how = "" if Path(os.path.expanduser(file)).is_absolute() else f" ({_HOW_TO_SET})"
    raise InputError(f"data file '{file}' is missing: looked for {' and '.join(map(str, places))}{how}")


def _npz_files(folder: Path | None) -> dict[str, Path]:
    """Return the .npz files of a folder by stem; a built-in name stays with the built-in data."""
    return {} if folder is None else {path.stem: path for path in folder.glob("*.npz") if path.stem not in _BUILTIN}


def options_of(function: Callable[..., TaskData]) -> list[str]:
    """Return the names of the options of a generator or reader."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def _described(path: Path) -> str:
    """Return sizes and kind of an .npz data set in a few words."""
    try:
        with naming(path):
            headers = npz_headers(path)
            small = npz_arrays(path, ("X_shape", "task") + (() if "Y" in headers else ("y",)))
    except InputError as error:
        return f"unreadable: {error}"
    if odd := [name for name, array in small.items() if array.ndim != 1]:
        return f"unreadable: {odd[0]} has {small[odd[0]].ndim} dimensions, not 1"
    if "X" in headers:
        shape, storage = headers["X"].shape, "grey levels" if headers["X"].dtype == "uint8" else "dense"
    elif "X_shape" in small:
        shape, storage = tuple(small["X_shape"].tolist()), "sparse"
    else:
        return "unreadable: it has no features X"
    words = [f"{' x '.join(map(str, shape))} {storage}"]
    if "task" in small:
        words.append(f"{len(set(small['task'].tolist()))} tasks")
    if "Y" in headers:
        words.append(f"{' x '.join(map(str, headers['Y'].shape[1:]))} {'real targets' if headers['Y'].dtype.kind == 'f' else 'labels'}")
    elif "y" in small:
        different = set(small["y"].tolist())
        is_label = "task" in small or different <= {0, 1} or different <= {-1, 1}
        words.append("a real target" if small["y"].dtype.kind == "f" else "a label" if is_label else f"{len(different)} classes")
    if "train_idx" in headers and "test_idx" in headers:
        words.append("split " + "/".join(str(headers[name].shape[0]) for name in ("train_idx", "test_idx") if headers[name].shape))
    return ", ".join(words)
