"""Training that was interrupted goes on from here."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from . import checkpoints, distributed

if TYPE_CHECKING:
    from .loop import Training

Epoch = dict[str, Any]  # what is known of it, by name


class Kept:
    """What of training outlives an epoch: in a folder if there is one, and the best weights in memory if not."""

    def __init__(self, model: nn.Module, optimiser: torch.optim.Optimizer, settings: Training, folder: Path | None) -> None:
        self.model, self.optimiser, self.folder, self.settings = model, optimiser, folder, settings
        self.best: dict[str, Tensor] = {}

    def resume(self) -> tuple[list[Epoch], int]:
        """History and best epoch of a run that was interrupted; empty ones for a new run."""
        if self.folder is None or not (self.folder / "training.safetensors").exists():
            return [], 0
        progress = checkpoints.load_training(self.model, self.optimiser, self.folder / "training.safetensors")
        try:
            same = type(self.settings).from_json(progress["settings"]) == self.settings
        except (TypeError, KeyError, ValueError):  # of a later version, perhaps
            same = False
        if not same:
            raise ValueError(f"{self.folder} holds training with other settings, so it cannot go on with these.")
        history, best_epoch = progress["history"], progress["best_epoch"]
        if distributed.is_first():
            # A line may have been written whose epoch was not: it will be done again.
            lines = "".join(json.dumps(record) + "\n" for record in history)
            (self.folder / "metrics.jsonl").write_text(lines, encoding="utf-8")
        return history, best_epoch

    def epoch(self, history: list[Epoch], best_epoch: int) -> None:
        """Keep the epoch that has just ended, and its weights if it is the best."""
        is_best = best_epoch == len(history)
        if self.folder is None:
            if is_best:
                self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
            return
        if distributed.is_first():
            if is_best:
                checkpoints.save_model(self.model, self.folder / "model.safetensors")
            with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(history[-1]) + "\n")
            # Last: who is killed before this does the epoch again and writes the same files.
            progress = {"history": history, "best_epoch": best_epoch, "settings": asdict(self.settings)}
            checkpoints.save_training(self.model, self.optimiser, progress, self.folder / "training.safetensors")

    def restore_best(self) -> None:
        """Put the weights of the best epoch into the model."""
        distributed.wait()
        if self.folder is None:
            self.model.load_state_dict(self.best)
        else:
            checkpoints.load_model(self.model, self.folder / "model.safetensors")
