# SPDX-License-Identifier: Apache-2.0
"""Addresses, replies and captions of a client; audio in frames."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gharial.client import FRAME_BYTES, FRAME_S, Caption, Reply, frames, real_time, stream_url
from gharial.client.connection import refusal
from gharial.client.pace import pcm
from gharial.errors import BadInput, ServerError

AUDIO = "content_type=audio/x-raw;format=S16LE;channels=1;rate=16000"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("ws://localhost:3030", "ws://localhost:3030/asr/v0.1/stream"),
        ("somewhere", "ws://somewhere:3030/asr/v0.1/stream"),
        ("somewhere:81", "ws://somewhere:81/asr/v0.1/stream"),
        ("https://a.example/", "wss://a.example/asr/v0.1/stream"),
        ("http://[::1]:8080", "ws://[::1]:8080/asr/v0.1/stream"),
        ("wss://a.example/speech/stream", "wss://a.example/speech/stream"),
    ],
)
def test_addresses(url: str, place: str) -> None:
    assert stream_url(url) == f"{place}?{AUDIO}"


def test_parameters_stand_behind_the_audio() -> None:
    parameters = {"model": "general", "version": None, "keywords": '{"a b": 1}', "state_resets": False}
    found = stream_url("x", parameters)
    assert found.endswith(f"?{AUDIO}&model=general&keywords=%7B%22a%20b%22:%201%7D&state_resets=false")
    assert stream_url("ws://x/?model=a", {"lang": "en"}).endswith(f"/asr/v0.1/stream?model=a&{AUDIO}&lang=en")


@pytest.mark.parametrize("url", ["", "ftp://x", "ws://", "ws://x:port", "ws://user@x", "://", "ws://x:99999"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(BadInput, match="no address"):
        stream_url(url)


def message(**changes: Any) -> str:
    fields = {
        "start": 0.5,
        "end": 1,
        "is_provisional": True,
        "alternatives": [{"transcript": " on", "confidence": 1}, {"transcript": " no", "confidence": 0.5}],
    }
    return json.dumps({**fields, **changes})


def test_replies() -> None:
    reply = Reply.parse(message())
    assert (reply.start, reply.end, reply.provisional, reply.text) == (0.5, 1.0, True, " on")
    assert [one.confidence for one in reply.alternatives] == [1.0, 0.5]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "null", "{}", message(alternatives=[]), message(alternatives=[{}]), message(start="x"), "[" * 9999],
    ids=range(9),
)
def test_what_is_no_reply(text: str) -> None:
    with pytest.raises(ServerError, match="none of this interface"):
        Reply.parse(text)


def test_a_caption_is_what_is_final_and_behind_it_the_partial() -> None:
    def told(text: str, provisional: bool) -> Reply:
        return Reply.parse(message(is_provisional=provisional, alternatives=[{"transcript": text, "confidence": 1}]))

    caption = Caption()
    shown = []
    for text, provisional in (
        (" on", True),
        (" on no", True),
        (" on", False),
        (" no", True),
        ("", True),
        (" go", False),
    ):
        caption.take(told(text, provisional))
        shown.append(caption.text)
    assert shown == ["on", "on no", "on", "on no", "on", "on go"]
    assert caption.final == " on go" and caption.partial == ""


@pytest.mark.parametrize(
    ("code", "reason", "status", "again", "exits"),
    [
        (503, "503 too many connections", 503, True, 1),
        (400, "model: no such model", 400, False, 2),
        (500, "401 no such key", 401, False, 2),
        (429, "HTTP 429: too fast", 429, True, 1),
        (500, "", 500, True, 1),
    ],
)
def test_refusals(code: int, reason: str, status: int, again: bool, exits: int) -> None:
    error = refusal(code, reason, "ws://x")
    assert (error.code, error.again, error.exit_code) == (status, again, exits)
    assert str(error).startswith("ws://x: ") and str(error).splitlines()[0].endswith(f"({status})")


def test_samples_as_s16le() -> None:
    assert pcm(np.array([1, -2], np.int16)) == b"\x01\x00\xfe\xff"
    assert pcm(np.array([0.5, -1.5, 2.0], np.float32)) == b"\x00\x40\x00\x80\xff\x7f"


def test_frames_do_not_depend_on_blocks(seed: int) -> None:
    random = np.random.default_rng(seed)
    samples = random.integers(-32768, 32768, random.integers(1, 9000)).astype(np.int16)
    cuts = np.sort(random.integers(0, len(samples), 7))
    found = list(frames(np.split(samples, cuts)))
    assert b"".join(found) == samples.astype("<i2").tobytes()
    assert {len(frame) for frame in found[:-1]} <= {FRAME_BYTES} and 0 < len(found[-1]) <= FRAME_BYTES


def test_real_time_is_kept_where_the_caller_was_late() -> None:
    now = [100.0]
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    at = []
    for index, _ in enumerate(real_time([np.zeros(4 * 960 + 480, np.int16)], lambda: now[0], sleep)):
        at.append(now[0] - 100.0)
        if index == 1:
            now[0] += 2.5 * FRAME_S
    assert at == pytest.approx([FRAME_S, 2 * FRAME_S, 4.5 * FRAME_S, 4.5 * FRAME_S, 4.5 * FRAME_S])
    assert len(slept) == 2
