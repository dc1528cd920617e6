# SPDX-License-Identifier: Apache-2.0
"""Audio input: any file or raw stream, as blocks of mono samples at 16 kHz.

Public names:

- `open_audio(path)`: a file of any rate, channel count and format that libsndfile reads (WAV, FLAC, OGG, MP3, ...).
- `open_raw(stream)`: a binary stream of s16le mono samples at 16 kHz, such as standard input.
- `AudioSource`: what both give: `blocks()`, `notes`, `duration_s`, use in a `with` statement.
- `PcmDecoder`: bytes of any length to int16 samples, for whatever receives raw audio piece by piece.
- `read_all(source)`: every block joined.

Nothing here holds a whole file in memory, and no size that a header claims is believed. What a listener may want to
know but need not act on (resampled, mixed down, truncated) is put in `notes`, one short sentence each; some of them are
only known at the end of the audio.
"""

from gharial.audio.file import AudioFile, open_audio
from gharial.audio.raw import PcmDecoder, RawAudio, open_raw
from gharial.audio.source import SAMPLE_RATE, AudioSource, read_all

__all__ = [
    "SAMPLE_RATE",
    "AudioFile",
    "AudioSource",
    "PcmDecoder",
    "RawAudio",
    "open_audio",
    "open_raw",
    "read_all",
]
