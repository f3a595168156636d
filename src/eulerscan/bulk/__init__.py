"""Bulk transforms: files of any number to one table, or to a folder of parts, on one machine or a cluster."""

from .manifest import OtherRunError, load_failures
from .output import FORMATS, Transforms, holds_transforms, load_transforms, write_transforms
from .parts import transform_folder
from .settings import Settings
from .transform import Report, Shard, transform_all, transform_files, transform_shard

__all__ = [
    "FORMATS",
    "OtherRunError",
    "Report",
    "Settings",
    "Shard",
    "Transforms",
    "holds_transforms",
    "load_failures",
    "load_transforms",
    "transform_all",
    "transform_files",
    "transform_folder",
    "transform_shard",
    "write_transforms",
]
