# SPDX-License-Identifier: Apache-2.0
"""Export: what training gives, a checkpoint and its configuration, made into a hardware checkpoint.

- `export_checkpoint(checkpoint, config, output)`: writes the file and says which n-gram belongs to it.
"""

from gharial.export.exporter import Exported, export_checkpoint

__all__ = ["Exported", "export_checkpoint"]
