"""Before anything is collected: Triton's kernels run in its interpreter, which must be chosen before triton is imported."""

import importlib.util
import os

os.environ.setdefault("TRITON_INTERPRET", "1")
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/eulerscan/kernels/triton/*"]
