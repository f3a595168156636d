import subprocess
import sys
from pathlib import Path

import pytest

WALKS = Path(__file__).parents[1] / "benchmarks" / "walks.py"


@pytest.mark.skipif(not WALKS.exists(), reason="benchmarks are not there")
def test_the_way_to_the_kernel_is_short_and_a_file_is_opened_and_packed_once():
    result = subprocess.run([sys.executable, str(WALKS)], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Every bound is met." in result.stdout
