# SPDX-License-Identifier: Apache-2.0
"""A run with everything that it computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gharial.audio import open_audio
from gharial.devices.base import TraceSource
from gharial.devices.open import DEFAULT
from gharial.errors import BadInput, GharialError
from gharial.program import Program
from gharial.recognise import Recogniser, StreamOptions, Transcript
from gharial.trace.keys import tensors


def trace_recording(
    program: Program,
    audio: str | os.PathLike[str],
    device: str = DEFAULT,
    note: Callable[[str], object] | None = None,
    prefix: str | None = None,
) -> dict[str, np.ndarray]:
    """Recognise a recording greedily, and keep every tensor.

    Args:
        program: the model.
        audio: the recording; it should be short, for all of the trace is held in memory.
        device: name of the device to run on; one that can show what it computes.
        note: called with remarks about the audio.
        prefix: what the model is told before the audio, as in `Recogniser.stream`.

    Returns:
        The tensors of docs/numerics.md, section 12, in the order of the machine; the first axis is time.

    Raises:
        BadInput: the audio, the prefix or the device cannot be used, or the device shows nothing.
        GharialError: the device failed, or showed something else than what its program has.
    """
    with (
        open_audio(audio, program.manifest["features"]["sample_rate"]) as source,
        Recogniser(program, device) as recogniser,
    ):
        shown = recogniser.device
        if not isinstance(shown, TraceSource):
            raise BadInput("this device does not show what it computes", f"device {device}", expected="a simulated one")
        told = recogniser.prefixes.tokens(prefix)
        shown.start_trace(program.manifest["layers"], program.manifest["trace"])
        transcript = recogniser.transcribe(source, StreamOptions(prefix=prefix))
        kept = shown.stop_trace()
        if note is not None:
            for remark in source.notes:
                note(f"{source.path}: {remark}")
    return _assembled(program, kept, transcript, told)


def _assembled(
    program: Program, kept: Mapping[str, Sequence[np.ndarray]], transcript: Transcript, prefix: tuple[int, ...]
) -> dict[str, np.ndarray]:
    """One array a tensor, of the type and shape that the program's layers have."""
    found: dict[str, np.ndarray] = {}
    for name, (dtype, shape) in tensors(program).items():
        steps = kept.get(name, ())
        array = np.array(steps, np.dtype(dtype)) if len(steps) else np.zeros((0, *shape), dtype)
        if array.shape[1:] != shape:
            raise GharialError(f"the device's trace of {name} has shape {array.shape[1:]} a step, expected {shape}")
        found[name] = array
    found["prefix"] = np.array(prefix, np.int32)
    found["tokens"] = np.array([token.id for token in transcript.tokens], np.int32)
    found["steps"] = np.array([token.step for token in transcript.tokens], np.int32)
    return found
