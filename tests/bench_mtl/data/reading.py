"""What tests of readers share: files, the features that are read, and refusals of one line."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError


def written(path: Path, content: str | bytes) -> Path:
    """Write a file, packed where its name ends in .gz."""
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def csr_parts(X: Any) -> dict[str, Any]:
    """The arrays by which an .npz file holds sparse features."""
    matrix = sp.csr_array(X)
    return {"X_data": matrix.data, "X_indices": matrix.indices, "X_indptr": matrix.indptr, "X_shape": np.array(matrix.shape)}


def dense(data: Any, k: int = 0) -> Any:
    """The features of a task."""
    X = data.task(k)[0]
    return X.toarray() if sp.issparse(X) else np.asarray(X)


@contextmanager
def refused(words: str) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """What is done inside is refused with these words, in one line."""
    with pytest.raises(InputError, match=words) as error:
        yield error
    assert "\n" not in str(error.value)
