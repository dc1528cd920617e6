# SPDX-License-Identifier: Apache-2.0
"""Speech to text: a model on a device, streams of audio, transcripts.

- `load(model, device)`: a `Recogniser`.
- `Recogniser.transcribe(audio)`, `.transcribe_many(...)`: recordings.
- `Recogniser.stream()`: a `Stream` of live audio.
- `Encoder`: a program's encoder alone, for networks that are no recognisers.
- `StreamOptions`, `StateResets`, `EosMode`: what a stream may be told.
- `Transcript`, `TranscriptAlternative`, `Token`, `Word`, `StreamStep`: what comes out; `gharial.recognise.subtitles`
  writes it for other programs.
"""

from gharial.recognise.decoders import DECODERS
from gharial.recognise.encoder import Encoder
from gharial.recognise.options import EosMode, StateResets, StreamOptions
from gharial.recognise.recogniser import Recogniser, load
from gharial.recognise.stream import Stream, StreamStep
from gharial.recognise.transcript import Token, Transcript, TranscriptAlternative, Word

__all__ = [
    "DECODERS",
    "Encoder",
    "EosMode",
    "Recogniser",
    "StateResets",
    "Stream",
    "StreamOptions",
    "StreamStep",
    "Token",
    "Transcript",
    "TranscriptAlternative",
    "Word",
    "load",
]
