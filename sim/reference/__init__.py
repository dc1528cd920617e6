# SPDX-License-Identifier: Apache-2.0
"""The integer reference model: the machine computed plainly from docs/numerics.md.

One of three independent witnesses beside the emulator and the RTL, so it shares no arithmetic with either, nor with
the compiler. `ReferenceModel` runs a program's network layer by layer; `ReferenceDevice` puts it behind the command
interface of docs/isa.md.
"""

from .device import ReferenceDevice
from .model import EncoderState, PredictionState, Program, ReferenceModel
from .trace import Trace

__all__ = ["EncoderState", "PredictionState", "Program", "ReferenceDevice", "ReferenceModel", "Trace"]
