# SPDX-License-Identifier: Apache-2.0
"""The WebSocket API, message by message, with a plain blocking client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import quote

import numpy as np
import pytest
import websocket
from recordings import LONG, SHORT, cuts, samples
from serve_expected import Message, messages_of, steps_of
from serving import AUDIO, FRAME, PATIENCE_S, Running, said, serving, spoken, transcript

from gharial.cli.decoding import Decoding
from gharial.recognise import Recogniser, StateResets, StreamOptions, load
from gharial.serve import ModelSettings
from gharial.serve.protocol import SUBPROTOCOL

GREEDY = Decoding("greedy", None, None, state_resets=True)
RESETS = StreamOptions(state_resets=StateResets())


@pytest.fixture(scope="module", params=["greedy", "beam"])
def decoder(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def running(decoder: str) -> Iterator[Running]:
    # Without settings the server is as the closed one: a beam of 4, state resets.
    models = (ModelSettings(decoding=GREEDY if decoder == "greedy" else None),)
    with serving(models=models, max_rate=0.0) as server:
        yield server


@pytest.fixture(scope="module")
def recogniser(decoder: str) -> Iterator[Recogniser]:
    with load(decoder=decoder, device="emulator:u50") as opened:
        yield opened


def test_message_by_message(running: Running, recogniser: Recogniser) -> None:
    """A client as CAIMAN-ASR's are: 60 ms, one blocking receive, and so on; then the end, and all that is left."""
    audio = samples(LONG)
    steps = steps_of(recogniser, audio, RESETS)
    expected = messages_of(steps, recogniser.decoder == "greedy")
    frames = spoken(running.connect(), audio.tobytes())
    found = [message for frame in frames for message in frame]
    assert found == expected
    assert all(len(frame) == 1 for frame in frames[:-1])  # there was one to receive for every chunk
    assert transcript(found).strip() == recogniser.transcribe(LONG, RESETS).text
    for message in found:
        text = message["alternatives"][0]["transcript"]
        assert text == "" or text.startswith(" ")
        assert message["is_provisional"] <= (recogniser.decoder == "beam")


def test_every_frame_has_a_message_before_more_audio_comes(running: Running, decoder: str) -> None:
    """One message at least for each 60 ms, whatever was said; its bounds where nothing was."""
    client = running.connect()
    for frame in range(30):
        client.send_binary(bytes(FRAME))
        message = json.loads(client.recv())
        while decoder == "beam" and not message["is_provisional"]:  # a final goes before the step's provisional one
            message = json.loads(client.recv())
        texts = [one["transcript"] for one in message["alternatives"]]
        assert texts
        if not texts[0]:
            assert (message["start"], message["end"]) == (round(frame * 0.06, 6), round((frame + 1) * 0.06, 6))
    client.send_binary(b"")
    assert said(client)[1] == 1000


def test_cut_anywhere(running: Running, recogniser: Recogniser, seed: int) -> None:
    """Odd numbers of bytes, no alignment to samples or steps."""
    random, audio = np.random.default_rng(seed), samples(SHORT)
    client = running.connect()
    for piece in cuts(audio.tobytes(), random, 5000):
        if piece:
            client.send_binary(piece)
    client.send_binary(b"")
    messages, code, _ = said(client)
    assert code == 1000
    assert messages == messages_of(steps_of(recogniser, audio, RESETS), recogniser.decoder == "greedy")


def test_an_odd_byte_at_the_end_is_dropped(running: Running, recogniser: Recogniser) -> None:
    audio = samples(SHORT)
    client = running.connect()
    client.send_binary(audio.tobytes() + b"\x17")
    client.send_binary(b"")
    assert said(client)[0] == messages_of(steps_of(recogniser, audio, RESETS), recogniser.decoder == "greedy")


def test_no_audio_at_all(running: Running) -> None:
    client = running.connect()
    client.send_binary(b"")
    assert said(client) == ([], 1000, "")


def test_audio_behind_the_end_is_not_heard(running: Running, recogniser: Recogniser) -> None:
    audio = samples(SHORT)
    client = running.connect()
    client.send_binary(audio.tobytes())
    client.send_binary(b"")
    client.send_binary(samples(LONG).tobytes())
    client.send_binary(b"")
    messages, code, _ = said(client)
    assert code == 1000
    assert messages == messages_of(steps_of(recogniser, audio, RESETS), recogniser.decoder == "greedy")


def test_the_subprotocol_is_echoed_where_it_is_offered(running: Running) -> None:
    for offered, chosen in (([SUBPROTOCOL], SUBPROTOCOL), (["other", SUBPROTOCOL], SUBPROTOCOL), (["other"], None)):
        client = websocket.WebSocket()
        client.connect(
            f"ws://localhost:{running.server.port}/asr/v0.1/stream?{AUDIO}",
            header={"Sec-WebSocket-Protocol": ", ".join(offered)},
        )
        assert client.handshake_response is not None
        assert client.handshake_response.headers.get("sec-websocket-protocol") == chosen
        client.close()


def of(query: str) -> str:
    return f"{AUDIO}&{query}"


@pytest.mark.parametrize(
    "query",
    [
        of("model=general&version=latest&lang=en&alternatives=1"),
        of("version=1"),
        AUDIO.replace(";", "%3B").replace("/", "%2F"),
        "content_type=audio/x-raw;rate=16000;channels=1;format=s16le",
    ],
)
def test_accepted(running: Running, query: str) -> None:
    client = running.connect(query)
    client.send_binary(b"")
    assert said(client) == ([], 1000, "")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("", "content_type"),
        ("model=general", "content_type"),
        ("content_type=audio/x-raw", "content_type"),
        (AUDIO.replace("16000", "8000"), "content_type"),
        (AUDIO.replace("channels=1", "channels=2"), "content_type"),
        (AUDIO.replace("S16LE", "F32LE"), "content_type"),
        (AUDIO.replace("x-raw", "flac"), "content_type"),
        (of("model=other"), "model"),
        (of("model="), "model"),
        (of("version=7"), "version"),
        (of("lang=fr"), "lang"),
        (of("alternatives=0"), "alternatives"),
        (of("alternatives=33"), "alternatives"),
        (of("alternatives=many"), "alternatives"),
        (of("alternatives=1&alternatives=2"), "alternatives"),
        (of("prefix=<nonsense>"), "prefix"),
        (of("eos_mode=sometimes"), "eos_mode"),
        (of("state_resets=perhaps"), "state_resets"),
        (of("silence=-1"), "silence"),
        (of("silence=soon"), "silence"),
        (of("silence=nan"), "silence"),
        (of("keywords=right"), "keywords"),
        (of("keywords=[1]"), "keywords"),
        (of("typo=1"), "typo"),
        (of("&".join(f"a{n}=1" for n in range(40))), "parameters"),
    ],
)
def test_invalid_parameters_close_the_socket_with_the_reason(running: Running, query: str, named: str) -> None:
    messages, code, reason = said(running.connect(query))
    assert (messages, code) == ([], 1008)
    assert reason.startswith("400 ") and named in reason


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_no_websocket_gets_http_400(running: Running, method: str) -> None:
    request = urllib.request.Request(f"http://localhost:{running.server.port}/asr/v0.1/stream?{AUDIO}", method=method)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=PATIENCE_S)
    assert caught.value.code == 400


def test_another_path_is_http_404(running: Running) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as caught:
        websocket.create_connection(f"ws://localhost:{running.server.port}/asr/v0.2/stream?{AUDIO}", timeout=PATIENCE_S)
    assert caught.value.status_code == 404


def test_options_of_a_stream(running: Running, recogniser: Recogniser) -> None:
    greedy, audio = recogniser.decoder == "greedy", samples(LONG)
    query = of("state_resets=false&silence=0.3")
    options = StreamOptions(silence_s=0.3)
    if not greedy:
        boosts = {"up": 5.0}
        query += "&keywords=" + quote(json.dumps(boosts))
        options = StreamOptions(silence_s=0.3, keywords=boosts)
    client = running.connect(query)
    client.send_binary(audio.tobytes())
    messages, code, _ = said(client)  # it ends by itself, without an end of the audio
    assert code == 1000
    assert messages == messages_of(steps_of(recogniser, audio, options), greedy)
    assert len(messages) < len(audio) / 960


def test_alternatives(running: Running, recogniser: Recogniser) -> None:
    """The first is what one alternative would have been; others differ from it and from each other."""
    audio = samples(LONG)
    client = running.connect(of("alternatives=4"))
    client.send_binary(audio.tobytes())
    client.send_binary(b"")
    found: list[Message] = said(client)[0]
    expected = messages_of(steps_of(recogniser, audio, RESETS), recogniser.decoder == "greedy")
    several = 0
    for message in found:
        texts = [one["transcript"] for one in message["alternatives"]]
        assert 1 <= len(texts) <= 4 and len(set(texts)) == len(texts)
        assert all(0.0 <= one["confidence"] <= 1.0 for one in message["alternatives"])
        several += len(texts) > 1
        del message["alternatives"][1:]
    assert found == expected
    assert several == 0 if recogniser.decoder == "greedy" else several > 0


def test_compat(decoder: str, recogniser: Recogniser) -> None:
    """Confidences of 1.0, and parameters that nobody knows are passed over."""
    models = (ModelSettings(decoding=GREEDY if decoder == "greedy" else None),)
    with serving(models=models, compat=True) as running:
        client = running.connect(of("typo=1"))
        client.send_binary(samples(SHORT).tobytes())
        client.send_binary(b"")
        messages, code, _ = said(client)
    assert code == 1000
    assert messages == messages_of(steps_of(recogniser, samples(SHORT), RESETS), decoder == "greedy", compat=True)
