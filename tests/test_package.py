"""What a user meets before the first transform."""

import subprocess
import sys
import textwrap

import eulerscan as es

FOREIGN = ("torch_geometric", "sklearn", "matplotlib", "trimesh", "gudhi", "dask", "networkx", "scipy", "pandas", "tyro")


def run(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_importing_loads_torch_and_numpy_alone():
    """networkx comes with torch where somebody traces; only what eulerscan adds to torch counts."""
    added = run("""
        import sys, torch
        before = set(sys.modules)
        import eulerscan
        print(*sorted({name.split(".")[0] for name in set(sys.modules) - before}))
    """).split()
    assert not set(added) & {*FOREIGN, "numba", "llvmlite"}


def test_numba_loads_with_the_first_transform():
    loaded = run("""
        import sys, torch, eulerscan as es
        before = "numba" in sys.modules
        es.ect(torch.rand(3, 2), es.directions.circle(2), es.thresholds(2))
        print(before, "numba" in sys.modules)
    """)
    assert loaded == "False True"


def test_every_public_name_exists_and_is_documented():
    for name in es.__all__:
        assert getattr(es, name).__doc__


def test_a_machine_without_a_place_for_the_cache_compiles_all_the_same():
    code = """
        import numba
        from numba.core.caching import CacheImpl
        CacheImpl._locator_classes = []  # nowhere to write
        from eulerscan.kernels.cpu.jit import cached
        print(cached(lambda x: x + 1)(2))
    """
    assert run(code) == "3"
