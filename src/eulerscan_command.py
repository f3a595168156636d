"""The script ``eulerscan``: settings that must precede the import of torch, then the command line.

It stands outside of the package, whose import loads torch.
"""

import os


def main() -> None:
    """Run the command line with OpenMP threads that sleep while they wait, unless the environment says otherwise.

    Spinning ones take the processor from whatever else runs: training beside another program is then several times slower.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from eulerscan.cli.main import main as run

    run()
