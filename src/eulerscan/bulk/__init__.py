"""Folders of files, however many: read, transformed and written in shards, here or on a cluster."""

from .files import Transforms, load_transforms, write_transforms
from .settings import Settings
from .shards import Shard, transform_folder, transform_shard, transformed
from .sources import NothingReadError, Source, find_shapes, first_dimension

__all__ = [
    "NothingReadError",
    "Settings",
    "Shard",
    "Source",
    "Transforms",
    "find_shapes",
    "first_dimension",
    "load_transforms",
    "transform_folder",
    "transform_shard",
    "transformed",
    "write_transforms",
]
