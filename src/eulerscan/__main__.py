"""``python -m eulerscan``: the command line, also for ``torchrun -m eulerscan``."""

from .cli.main import main

if __name__ == "__main__":
    main()
