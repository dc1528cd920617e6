# SPDX-License-Identifier: Apache-2.0
"""The WebSocket API, message by message, with a plain blocking client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recordings import LONG, samples
from serving import Running, serving, spoken, transcript

from gharial.cli.decoding import Decoding
from gharial.recognise import StateResets, StreamOptions, load
from gharial.serve import ModelSettings


@pytest.fixture(scope="module", params=["greedy", "beam"])
def decoder(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def running(decoder: str) -> Iterator[Running]:
    decoding = Decoding("greedy", None, None, state_resets=True) if decoder == "greedy" else None
    with serving(models=(ModelSettings(decoding=decoding),)) as server:
        yield server


@pytest.fixture(scope="module")
def offline(decoder: str) -> str:
    with load(device="emulator:u50", decoder=decoder) as recogniser:
        return recogniser.transcribe(LONG, StreamOptions(state_resets=StateResets())).text


def test_finals_joined_are_the_offline_transcript(running: Running, offline: str) -> None:
    frames = spoken(running.connect(), samples(LONG).tobytes())
    assert transcript([message for frame in frames for message in frame]).strip() == offline
