# SPDX-License-Identifier: Apache-2.0
"""Several models in one server, and models that are exchanged while streams run."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from prefix_models import VALID, checkpoint
from recordings import LONG, SHORT, samples
from serve_expected import Message, messages_of, steps_of
from serving import AUDIO, FRAME, PATIENCE_S, Running, said, serving

from gharial.cli.decoding import Decoding
from gharial.decoding import DecoderOptions
from gharial.errors import BadInput, GharialError
from gharial.model import compile_model, demo_model
from gharial.recognise import StateResets, StreamOptions, load
from gharial.serve import ModelSettings, Server, Settings, Watcher, swap
from gharial.serve.models import LoadedModel

RESETS = StreamOptions(state_resets=StateResets())
GREEDY = Decoding("greedy", None, None, state_resets=True)
BEAM = Decoding("beam", DecoderOptions(), None, state_resets=True)

ONE = ModelSettings("general", "1", decoding=GREEDY)
TWO = ModelSettings("general", "2", decoding=BEAM)
OTHER = ModelSettings("other", "7", decoding=GREEDY, languages=("de", "fr"))


@pytest.fixture(scope="module")
def said_by() -> dict[str, dict[Path, list[Message]]]:
    """What each decoder says of recordings: by this it shows who has served a stream."""
    found: dict[str, dict[Path, list[Message]]] = {}
    for decoder in ("greedy", "beam"):
        with load(decoder=decoder, device="emulator:u50") as recogniser:
            found[decoder] = {
                path: messages_of(steps_of(recogniser, samples(path), RESETS), decoder == "greedy")
                for path in (SHORT, LONG)
            }
    assert found["greedy"] != found["beam"]
    return found


def heard(running: Running, more: str, path: Path = SHORT) -> list[Message]:
    client = running.connect(AUDIO + more)
    client.send_binary(samples(path).tobytes())
    client.send_binary(b"")
    messages, code, reason = said(client)
    assert (code, reason) == (1000, "")
    return messages


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if " on " in thread.name}


def test_models_by_name_and_version(said_by: dict[str, dict[Path, list[Message]]]) -> None:
    with serving(models=(ONE, TWO, OTHER)) as running:
        for more, decoder in [
            ("", "beam"),
            ("&model=general", "beam"),
            ("&model=general&version=latest", "beam"),
            ("&version=1", "greedy"),
            ("&version=2&lang=en", "beam"),
            ("&model=other", "greedy"),
            ("&model=other&version=7&lang=de", "greedy"),
        ]:
            assert heard(running, more) == said_by[decoder][SHORT], more
        for more, named in [
            ("&version=7", "version"),
            ("&model=other&version=1", "version"),
            ("&model=nobody", "model"),
            ("&model=other&lang=en", "lang"),
        ]:
            _, code, reason = said(running.connect(AUDIO + more))
            assert code == 1008 and reason.startswith(f"400 {named}: ")


def test_a_running_stream_ends_on_what_it_began_with(said_by: dict[str, dict[Path, list[Message]]]) -> None:
    with serving(models=(ONE,)) as running:
        client = running.connect()
        audio = samples(LONG).tobytes()
        client.send_binary(audio[: 30 * FRAME])
        client.recv()
        changes = running.do(running.server.reload((TWO,)))
        assert (changes.opened, changes.kept, changes.retired) == (("general/2",), (), ("general/1",))
        assert heard(running, "") == said_by["beam"][SHORT]
        assert said(running.connect(f"{AUDIO}&version=1"))[1] == 1008
        assert len(threads()) == 2
        client.send_binary(audio[30 * FRAME :])
        client.send_binary(b"")
        assert said(client)[0] == said_by["greedy"][LONG][1:]
        wait_for(lambda: not running.server.hub.swaps.retired)
        wait_for(lambda: threads() == {"general/2 on emulator:u50"})


def test_what_is_the_same_stays(tmp_path: Path) -> None:
    """By settings and by the files: one that was written anew is opened anew, with the same name and version too."""
    path = tmp_path / "model.hw.pt"
    shutil.copy(demo_model(), path)
    filed = ModelSettings("filed", "1", model=str(path), decoding=GREEDY)
    with serving(models=(ONE, filed)) as running:
        before = list(running.server.hub.models)
        changes = running.do(running.server.reload((filed, ONE)))
        assert (changes.opened, changes.kept, changes.retired) == ((), ("filed/1", "general/1"), ())
        assert running.server.hub.models == before[::-1]
        os.utime(path, ns=(1, 1))
        changes = running.do(running.server.reload((ONE, filed)))
        assert (changes.opened, changes.kept, changes.retired) == (("filed/1",), ("general/1",), ("filed/1",))
        assert running.server.hub.models[0] is before[0] and running.server.hub.models[1] is not before[1]
        assert heard(running, "&model=filed")


@pytest.mark.parametrize(
    "wanted",
    [
        (),
        (ModelSettings("general", "2", model="/nowhere/model.hw.pt", decoding=GREEDY),),
        (TWO, ModelSettings("general", "3", devices=("emulator:u50", "emulator:nowhere"), decoding=GREEDY)),
    ],
    ids=["none", "no file", "no device"],
)
def test_a_change_that_fails_changes_nothing(
    wanted: tuple[ModelSettings, ...], said_by: dict[str, dict[Path, list[Message]]]
) -> None:
    with serving(models=(ONE,)) as running:
        with pytest.raises(BadInput):
            running.do(running.server.reload(wanted))
        assert heard(running, "") == said_by["greedy"][SHORT]
        assert threads() == {"general/1 on emulator:u50"}


def test_a_server_whose_model_cannot_be_opened_leaves_nothing() -> None:
    bad = ModelSettings("bad", devices=("emulator:nowhere",), decoding=GREEDY)
    with pytest.raises(BadInput), serving(models=(ONE, bad)):
        pass
    assert not threads()


class Boards:
    """Devices that hold one program at a time, as boards do; opening one that is held is an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: dict[str, str] = {}
        self.broken = ""
        opened = LoadedModel.open

        def one_at_a_time(model: LoadedModel, device: str) -> object:
            if self.broken == model.name:
                raise GharialError("it does not fit")
            assert device not in self.held, f"{device} is held by {self.held[device]}"
            slot = opened(model, device)
            self.held[device] = model.name
            stop = slot.worker.stop

            def stopping() -> None:
                stop()
                self.held.pop(device, None)

            monkeypatch.setattr(slot.worker, "stop", stopping)
            return slot

        monkeypatch.setattr(swap, "exclusive", lambda device: True)
        monkeypatch.setattr(LoadedModel, "open", one_at_a_time)


PAIR = ("emulator:u50", "emulator:u55c")


def on(model: ModelSettings, *devices: str) -> ModelSettings:
    return ModelSettings(model.name, model.version, devices=devices, decoding=model.decoding)


def test_boards_are_exchanged_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, said_by: dict[str, dict[Path, list[Message]]]
) -> None:
    """The first one's streams move to the second, and end there on the old program; then that changes too."""
    boards = Boards(monkeypatch)
    with serving(models=(on(ONE, *PAIR),)) as running:
        clients = [running.connect() for _ in range(4)]
        audio = samples(LONG).tobytes()
        for client in clients:
            client.send_binary(audio[: 20 * FRAME])
            client.recv()
        running.do(running.server.reload((on(TWO, *PAIR),)))
        assert sorted(boards.held.values()) == ["general/1", "general/2"]
        assert heard(running, "") == said_by["beam"][SHORT]
        for client in clients:
            client.send_binary(audio[20 * FRAME :])
            client.send_binary(b"")
            assert said(client)[0] == said_by["greedy"][LONG][1:]
        wait_for(lambda: sorted(boards.held.values()) == ["general/2", "general/2"])
        wait_for(lambda: len(running.server.hub.models[0].slots) == 2 and not running.server.hub.swaps.retired)


def test_a_single_board_is_exchanged_when_its_streams_have_ended(
    monkeypatch: pytest.MonkeyPatch, said_by: dict[str, dict[Path, list[Message]]]
) -> None:
    boards = Boards(monkeypatch)
    with serving(models=(on(ONE, PAIR[0]),)) as running:
        client = running.connect()
        audio = samples(LONG).tobytes()
        client.send_binary(audio[: 20 * FRAME])
        client.recv()
        loop = running._loop
        change = asyncio.run_coroutine_threadsafe(running.server.reload((on(TWO, PAIR[0]),)), loop)
        wait_for(lambda: running.server.hub.models[0].slots[0].closing)
        assert said(running.connect())[1] == 1013
        client.send_binary(audio[20 * FRAME :])
        client.send_binary(b"")
        assert said(client)[0] == said_by["greedy"][LONG][1:]
        change.result(PATIENCE_S)
        assert boards.held == {PAIR[0]: "general/2"}
        assert heard(running, "") == said_by["beam"][SHORT]


def test_a_board_that_does_not_take_the_new_program_gets_the_old_one_back(
    monkeypatch: pytest.MonkeyPatch, said_by: dict[str, dict[Path, list[Message]]]
) -> None:
    boards = Boards(monkeypatch)
    boards.broken = "general/2"
    with serving(models=(on(ONE, PAIR[0]),)) as running:
        with pytest.raises(GharialError, match="does not fit"):
            running.do(running.server.reload((on(TWO, PAIR[0]),)))
        assert boards.held == {PAIR[0]: "general/1"}
        assert heard(running, "") == said_by["greedy"][SHORT]


def test_a_board_belongs_to_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    Boards(monkeypatch)
    with serving(models=(on(ONE, PAIR[0]),)) as running, pytest.raises(BadInput, match="another model"):
        running.do(running.server.reload((on(ONE, PAIR[0]), on(TWO, PAIR[0]))))


def test_places_are_counted_with_state_resets(said_by: dict[str, dict[Path, list[Message]]]) -> None:
    """A beam of 4 has two places on the smallest device: one stream with resets, or two without."""
    small = ModelSettings(devices=("emulator:ecp5-85f",), decoding=BEAM)

    def begun(running: Running, more: str) -> object:
        client = running.connect(AUDIO + more)
        client.send_binary(bytes(FRAME))
        client.recv()
        return client

    with serving(models=(small,)) as running:
        (slot,) = running.server.hub.models[0].slots
        assert slot.places == 2
        first = begun(running, "")
        assert said(running.connect())[1:] == (1013, "503 too many connections")
        assert said(running.connect(f"{AUDIO}&state_resets=no"))[1] == 1008  # what is asked wrongly is told as such
        assert said(running.connect(f"{AUDIO}&state_resets=false"))[1] == 1013
        first.shutdown()  # type: ignore[attr-defined]
        wait_for(lambda: slot.used == 0)
        second, third = begun(running, "&state_resets=false"), begun(running, "&state_resets=false")
        assert said(running.connect(f"{AUDIO}&state_resets=false"))[1] == 1013
        second.shutdown()  # type: ignore[attr-defined]
        third.shutdown()  # type: ignore[attr-defined]
        wait_for(lambda: slot.used == 0)
        assert heard(running, "") == said_by["beam"][SHORT]


def test_each_stream_has_a_prefix_of_its_own(tmp_path: Path) -> None:
    """The server's for who names none, another for who does; one that the model does not take is refused."""
    shutil.copy(SHORT, tmp_path / "talk.flac")
    path = tmp_path / "model.gprog"
    compile_model(checkpoint(tmp_path, 1), "tiny", tmp_path).write(path)
    served = ModelSettings(
        model=str(path), devices=("emulator:tiny",), decoding=Decoding("greedy", None, None, prefix=VALID[0])
    )
    audio = samples(SHORT)
    with load(path, "emulator:tiny") as recogniser, serving(models=(served,)) as running:
        expected = {
            prefix: messages_of(steps_of(recogniser, audio, StreamOptions(prefix=prefix)), True) for prefix in VALID
        }
        assert len({str(messages) for messages in expected.values()}) == len(VALID)
        assert heard(running, "") == expected[VALID[0]]
        for prefix in VALID:
            assert heard(running, f"&prefix={quote(prefix)}") == expected[prefix]
        _, code, reason = said(running.connect(f"{AUDIO}&prefix={quote('<pnc>')}"))
        assert code == 1008 and reason.startswith("400 prefix")


def test_a_server_in_an_event_loop_of_its_own() -> None:
    """As the documentation has it: started, asked for its port, stopped; twice."""

    async def main() -> None:
        for _ in range(2):
            server = Server(Settings(port=0, models=(ONE,)), watcher=Watcher())
            await server.start()
            assert server.port > 0
            await server.stop()

    asyncio.run(main())
    assert not threads()
