# SPDX-License-Identifier: Apache-2.0
"""Gharial: an open accelerator for streaming LSTM speech recognition, and the host software that drives it.

    import gharial

    with gharial.load() as recogniser:                    # the demo model on the emulated device
        print(recogniser.transcribe("talk.wav").text)

- `load(model, device)`: a `Recogniser`, which transcribes recordings and opens streams (`Stream`) of live audio.
- `DecoderOptions`, `EosStrategy`, `Keywords`: settings of the beam search (`load(decoder="beam", options=...)`).
- `StreamOptions`, `StateResets`, `EosMode`: what a stream or a recording is told.
- `Transcript`, `TranscriptAlternative`, `Token`, `Word`, `StreamStep`: what comes out.
- `export_checkpoint(checkpoint, config, output)`: a hardware checkpoint made of what training gives.
- `compile_model(checkpoint, config)`: a `Program` for one hardware configuration.
- `Encoder(program)`: LSTMs that are no recognisers, vectors in and outputs out.
- `GharialError`, `BadInput`, `DeviceError`: what any of it raises on purpose.

Everything is imported when it is first used, so that `import gharial` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gharial.decoding import DecoderOptions, EosStrategy, Keywords
    from gharial.errors import BadInput, DeviceError, GharialError
    from gharial.export import export_checkpoint
    from gharial.model import compile_model
    from gharial.program import Program
    from gharial.recognise import (
        Encoder,
        EosMode,
        Recogniser,
        StateResets,
        Stream,
        StreamOptions,
        StreamStep,
        Token,
        Transcript,
        TranscriptAlternative,
        Word,
        load,
    )

__version__ = "0.1.0.dev0"

__all__ = [
    "BadInput",
    "DecoderOptions",
    "DeviceError",
    "Encoder",
    "EosMode",
    "EosStrategy",
    "GharialError",
    "Keywords",
    "Program",
    "Recogniser",
    "StateResets",
    "Stream",
    "StreamOptions",
    "StreamStep",
    "Token",
    "Transcript",
    "TranscriptAlternative",
    "Word",
    "__version__",
    "compile_model",
    "export_checkpoint",
    "load",
]

_HOMES = {
    "gharial.decoding": ("DecoderOptions", "EosStrategy", "Keywords"),
    "gharial.errors": ("BadInput", "DeviceError", "GharialError"),
    "gharial.export": ("export_checkpoint",),
    "gharial.model": ("compile_model",),
    "gharial.program": ("Program",),
    "gharial.recognise": (
        *("Encoder", "EosMode", "Recogniser", "StateResets", "Stream", "StreamOptions", "StreamStep"),
        *("Token", "Transcript", "TranscriptAlternative", "Word", "load"),
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gharial' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
