"""What can be imported from `bench_mtl` itself."""

import subprocess
import sys

import bench_mtl


def test_every_public_name_is_there_and_is_that_of_its_module() -> None:
    assert set(bench_mtl.__all__) == set(dir(bench_mtl)) == {*bench_mtl._MODULES, "__version__"}
    for name in bench_mtl.__all__:
        assert getattr(bench_mtl, name).__class__ is not None
        if isinstance(found := getattr(bench_mtl, name), type):
            assert found.__name__ == name


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = "import bench_mtl, sys; print(sorted({'numpy', 'scipy', 'pandas', 'numba', 'cvxpy', 'click'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "[]\n"
