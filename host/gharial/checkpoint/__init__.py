# SPDX-License-Identifier: Apache-2.0
"""Untrusted model files: torch zip archives read without torch, and the hardware checkpoints made of them.

A checkpoint comes from somebody else. Nothing here runs code out of a file, follows a path out of a file, or
allocates memory that the file's own size does not account for; whatever does not fit raises `BadInput`.
"""

from gharial.checkpoint.dims import ModelDims
from gharial.checkpoint.features import FeatureSettings
from gharial.checkpoint.hardware import HardwareCheckpoint, is_training_checkpoint, load_hardware
from gharial.checkpoint.inspect import describe, format_description
from gharial.checkpoint.prefix_spec import PrefixSpec
from gharial.checkpoint.prefixes import Prefixes
from gharial.checkpoint.torchzip import load

__all__ = [
    "FeatureSettings",
    "HardwareCheckpoint",
    "ModelDims",
    "PrefixSpec",
    "Prefixes",
    "describe",
    "format_description",
    "is_training_checkpoint",
    "load",
    "load_hardware",
]
