# SPDX-License-Identifier: Apache-2.0
"""The machine's microphone, through PortAudio (the extra `microphone`)."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gharial.audio import SAMPLE_RATE
from gharial.audio.convert import MonoConverter
from gharial.client.pace import FRAME_S
from gharial.errors import BadInput, GharialError

_PIPE = "or pipe samples in: arecord -q -t raw -f S16_LE -r 16000 -c 1 | gharial listen -"


def _portaudio() -> Any:
    try:
        import sounddevice
    except ImportError:
        remedy = f"pip install gharial[microphone], {_PIPE}"
        raise BadInput("a microphone needs sounddevice", found="none", expected="sounddevice", remedy=remedy) from None
    except OSError as error:  # PortAudio itself is missing
        remedy = f"apt-get install libportaudio2, {_PIPE}"
        raise BadInput("a microphone needs PortAudio", found=error, remedy=remedy) from None
    return sounddevice


def inputs() -> list[str]:
    """Names of the inputs there are, in their order.

    Raises:
        BadInput: sounddevice or PortAudio is not installed.
    """
    return [device["name"] for device in _portaudio().query_devices() if device["max_input_channels"] > 0]


@contextmanager
def microphone(
    name: str | int | None = None, tell: Callable[[str], object] = lambda sentence: None
) -> Iterator[Iterator[np.ndarray]]:
    """Open a microphone; gives its blocks of 60 ms as they are spoken, without end.

    Args:
        name: of the input, a part of it that no other has, or its number; None for the system's own.
        tell: called with a sentence where the input runs at another rate.

    Returns:
        (n,) blocks at 16 kHz: int16, or float32 with full scale 1 where they are resampled.

    Raises:
        BadInput: sounddevice or PortAudio is not installed, or there is no such input.
        GharialError: the input cannot be opened.
    """
    sounddevice = _portaudio()
    waiting: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()

    def take(block: np.ndarray, _frames: int, _time: object, _status: object) -> None:
        waiting.put(block.copy())  # the buffer is PortAudio's, which goes on

    try:
        facts = sounddevice.query_devices(name, "input")
    except (ValueError, sounddevice.PortAudioError):
        there = ", ".join(inputs()) or "no input at all"
        raise BadInput("no such microphone", "--input", name or "no default one", there, _PIPE) from None
    rate = SAMPLE_RATE
    try:
        sounddevice.check_input_settings(device=name, channels=1, dtype="int16", samplerate=rate)
    except (ValueError, sounddevice.PortAudioError):
        rate = round(facts["default_samplerate"])
        tell(f"{facts['name']}: resampled from {rate} Hz")
    converter = MonoConverter(rate, SAMPLE_RATE)
    kind = "int16" if rate == SAMPLE_RATE else "float32"

    def blocks() -> Iterator[np.ndarray]:
        while True:
            block = converter.push(waiting.get())
            if len(block):
                yield block

    try:
        stream = sounddevice.InputStream(
            samplerate=rate, blocksize=round(rate * FRAME_S), device=name, channels=1, dtype=kind, callback=take
        )
        with stream:
            yield blocks()
    except sounddevice.PortAudioError as error:
        raise GharialError(f"{facts['name']}: the microphone failed: {error}") from error
