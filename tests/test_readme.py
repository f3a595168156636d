"""The Python blocks of the README run when pasted in order."""

import re
from pathlib import Path

import torch


def test_the_readme_runs():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 3
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(block, namespace)
    assert namespace["logits"].shape == (8, 10)
    assert torch.equal(namespace["batch"].euler_characteristic(), torch.tensor([50, 1, 1]))
