"""The code and the commands of the README run when pasted in order."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import torch

import eulerscan as es

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_commands_on_files_run_when_pasted_in_order(run, monkeypatch, tmp_path):
    """With fewer epochs. `make` and `pip` have tests of their own."""
    monkeypatch.chdir(tmp_path)
    lines = "".join(re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)).splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    script, *arguments = next(words[1:] for words in commands if words[0] == "python")
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    runpy.run_path(str(ROOT / script), run_name="__main__")
    done = set()
    for program, *arguments in commands:
        if program == "eulerscan":
            run(*("2" if before == "--epochs" else word for before, word in zip(["", *arguments], arguments, strict=False)))
            done.add(arguments[0])
    assert done >= {"advise", "transform", "distances", "plot", "explore", "train", "evaluate", "predict", "fit"}
    assert {"transforms.npz", "tree.png", "ring.pdf", "ring.html", "predictions.csv", "fit.gif"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 3
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(block, namespace)
    assert namespace["logits"].shape == (8, 10)
    assert torch.equal(namespace["batch"].euler_characteristic(), torch.tensor([50, 1, 1]))
    assert namespace["sparse"].loss < 0.05 * namespace["sparse"].start_loss


def test_the_readme_names_the_current_version_and_no_package_index():
    assert set(re.findall(r"\d+\.\d+\.\d+(?=[-}])", README)) == {es.__version__}
    assert not re.search(r"pip install \"?eulerscan[^-]", README), "nothing is published yet"
