"""The script ``eulerscan``: settings of the process that must precede the import of torch, then the command line.

It stands outside of the package, whose import loads torch.
"""

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
KEPT = 2**25  # bytes: the largest threshold for mmap that glibc takes


def main() -> None:
    """Run the command line in a process that is set up for training.

    OpenMP threads that wait sleep, unless the environment says otherwise: spinning ones take the processor from whatever else
    runs, and training beside another program is several times slower.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _keep_memory()
    from eulerscan.cli.main import main as run

    run()


def _keep_memory() -> None:
    """Let glibc reuse what is freed.

    By default it returns large blocks, and the next step of training gets them back page by page.
    """
    chosen = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if sys.platform == "linux" and not chosen:
        try:
            mallopt = ctypes.CDLL(None).mallopt
        except AttributeError:  # another C library
            return
        for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            mallopt(parameter, KEPT)
