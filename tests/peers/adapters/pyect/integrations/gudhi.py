from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import eulerscan as es


def gudhi_simplex_tree_to_filtration_data(tree: Any) -> list[tuple[Tensor, Tensor]]:
    values = es.convert.filtration_from_simplex_tree(tree).values
    return [(level[:, None], torch.ones(len(level))) for level in values]


def alpha_complex_to_filtration_data(points: Any) -> tuple[list[tuple[Tensor, Tensor]], Any]:
    import gudhi

    tree = gudhi.AlphaComplex(points=points).create_simplex_tree()
    return gudhi_simplex_tree_to_filtration_data(tree), tree
