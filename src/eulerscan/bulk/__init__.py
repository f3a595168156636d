"""Folders of files, however many: read, transformed and written in shards, here or on a cluster."""

from .files import Transforms, load_transforms, write_transforms
from .parts import OtherRunError, transform_folder
from .settings import Settings
from .shards import Shard, transform_shard, transformed
from .sources import NothingReadError, first_dimension

__all__ = [
    "NothingReadError",
    "OtherRunError",
    "Settings",
    "Shard",
    "Transforms",
    "first_dimension",
    "load_transforms",
    "transform_folder",
    "transform_shard",
    "transformed",
    "write_transforms",
]
