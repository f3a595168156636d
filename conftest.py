"""Before anything is collected: Triton's kernels run in its interpreter, which must be chosen before triton is imported.

And `torch.compile` starts no processes of its own, each of which would import torch first: those of the tests use all cores.
"""

import importlib.util
import os

os.environ.setdefault("TRITON_INTERPRET", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/eulerscan/kernels/triton/*"]
