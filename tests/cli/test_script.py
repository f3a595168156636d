"""The script ``eulerscan``, which runs before the package is imported."""

import os
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


def test_the_script_is_installed():
    (script,) = entry_points(group="console_scripts", name="eulerscan")
    assert script.value == "eulerscan_command:main"
