# SPDX-License-Identifier: Apache-2.0
"""What a server is to say of a recording, written plainly from the API: offline steps as messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gharial.recognise import Recogniser, StreamOptions, StreamStep, Token

Message = dict[str, Any]


def steps_of(recogniser: Recogniser, audio: np.ndarray, options: StreamOptions) -> list[StreamStep]:
    """What every encoder step of a recording brings, offline and all at once."""
    with recogniser.stream(options) as stream:
        stream.feed(audio)
        stream.end()
        recogniser.run()
        return stream.steps()


def messages_of(steps: Sequence[StreamStep], greedy: bool, compat: bool = False) -> list[Message]:
    """One message a step at least: what became final, then what may change, which a greedy decoder has not."""
    messages: list[Message] = []
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        frame = round(number * 0.06, 6), round((number + 1) * 0.06, 6)
        if step.finals:
            messages.append(_message(step.finals, frame, False, compat))
        if not step.finals and (greedy or last):
            messages.append(_message((), frame, False, compat))
        if not (greedy or last):
            messages.append(_message(step.partial, frame, True, compat))
    return messages


def _message(tokens: Sequence[Token], frame: tuple[float, float], provisional: bool, compat: bool) -> Message:
    start, end = (tokens[0].start, tokens[-1].end) if tokens else frame
    mean = sum(token.confidence for token in tokens) / len(tokens) if tokens and not compat else 1.0
    return {
        "start": start,
        "end": end,
        "is_provisional": provisional,
        "alternatives": [{"transcript": "".join(token.text for token in tokens), "confidence": round(mean, 6)}],
    }
