"""The script ``eulerscan``, which runs before the package is imported."""

import os
import platform
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

RUN = """
import os, sys
import eulerscan_command
assert "torch" not in sys.modules
sys.argv = ["eulerscan", "--version"]
try:
    eulerscan_command.main()
finally:
    print(os.environ["OMP_WAIT_POLICY"])
"""


@pytest.mark.parametrize(("given", "expected"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_that_wait_sleep_unless_the_environment_says_otherwise(given, expected):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | given
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "eulerscan"
    assert done.stdout.split()[-1] == expected


FAULTS = """
import resource, sys
import eulerscan_command, numpy
if sys.argv[1] == "kept":
    eulerscan_command._keep_memory()
for step in range(60):
    if step == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [numpy.ones(1 << 18) for _ in range(4)]  # 2 MiB each
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc is asked to keep memory")
def test_memory_that_is_freed_is_used_again():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", FAULTS]
    kept, returned = (
        int(subprocess.run([*command, word], env=environment, capture_output=True, text=True, check=True).stdout)
        for word in ("kept", "returned")
    )
    assert kept < 500
    assert kept < returned / 10


def test_the_script_is_installed():
    (script,) = entry_points(group="console_scripts", name="eulerscan")
    assert script.value == "eulerscan_command:main"
