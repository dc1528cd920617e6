# SPDX-License-Identifier: Apache-2.0
"""Beam search when something goes wrong: who is hit says so, the others go on, and no slot is lost for good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from checkpoint_files import complete
from plain_beam import vectors_of
from prefix_models import checkpoint
from recordings import FILES, LONG, SHORT, samples, talkative

from gharial.decoding import DecoderOptions
from gharial.devices.emulator import EmulatorDevice
from gharial.devices.open import open_device
from gharial.driver import Driver, Recovery, Ticket
from gharial.errors import BadInput, CommandFailed, DeviceError, GharialError
from gharial.isa.commands import Mode
from gharial.isa.faults import Fault
from gharial.model import open_model, vocabulary
from gharial.recognise import Recogniser, load
from gharial.recognise.beam import BeamEngine, BeamSession, places
from gharial.recognise.decoders import search_model
from gharial.recognise.engine import Engine
from gharial.recognise.session import Alternative, Session, StepResult

OPTIONS = DecoderOptions(width=2, topk_threshold=3.0)


@pytest.fixture
def recogniser() -> Iterator[Recogniser]:
    with load(decoder="beam", options=OPTIONS, ngram=False) as opened:
        yield opened
        engine = engine_of(opened)
        for session in list(engine._sessions):
            engine.close(session)
        assert engine.free == 8
        engine.run()
        assert sorted(engine._numbers) == list(range(8)) and len(engine._idle) == len(engine._lanes)
        for name, (free, every) in engine.search.pools.items():
            assert free == every - (name == "ngrams"), name


def engine_of(recogniser: Recogniser) -> BeamEngine:
    assert isinstance(recogniser.engine, BeamEngine)
    return recogniser.engine


def opened(engine: BeamEngine, vectors: np.ndarray, ended: bool = True) -> BeamSession:
    session = engine.open()
    session.put(vectors)
    session.ended = ended
    return session


def outcome(session: BeamSession) -> tuple[list[StepResult], list[Alternative]]:
    assert session.error is None and session.done
    return list(session.results), session.alternatives(9)


def put_whole(engine: Engine[Any], vectors: np.ndarray) -> Session:
    session: Session = engine.open()
    session.put(vectors)
    session.ended = True
    return session


def wanted_of(engine: Engine[Any], vectors: np.ndarray) -> tuple[list[StepResult], list[Alternative]]:
    session = put_whole(engine, vectors)
    engine.run()
    assert session.error is None
    found = list(session.results), session.alternatives(9)
    engine.close(session)
    return found


def wanted(recogniser: Recogniser, vectors: np.ndarray) -> tuple[list[StepResult], list[Alternative]]:
    return wanted_of(recogniser.engine, vectors)


@pytest.mark.parametrize("kind", ["prediction", "encoder"])
def test_a_command_that_fails(recogniser: Recogniser, kind: str) -> None:
    """The device refuses a step of one stream, and with it the command that it is in; who is not in it goes on."""
    engine, vectors = engine_of(recogniser), vectors_of(recogniser, samples(LONG))
    whole = wanted(recogniser, vectors)
    hit, beside, other = (opened(engine, vectors[:40], ended=False) for _ in range(3))
    engine.run()
    assert hit.number is not None
    slot = hit.encoder if kind == "encoder" else engine.search.kept(hit.number)[0].slot
    recogniser.driver.free(kind, [slot]).result()
    for session in (hit, beside):
        session.put(vectors[40:])
        session.ended = True
    engine.run()
    for session in (hit, beside):
        assert session.done and isinstance(session.error, CommandFailed) and session.error.fault == "BAD_SLOT"
        with pytest.raises(CommandFailed):
            session.alternatives()
    other.put(vectors[40:])
    other.ended = True
    late = opened(engine, vectors)
    engine.run()
    assert outcome(other) == outcome(late) == whole


def test_damaged_results_hit_one_stream(recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, vectors = engine_of(recogniser), vectors_of(recogniser, samples(SHORT))
    whole = wanted(recogniser, vectors)
    sessions = [opened(engine, vectors) for _ in range(3)]
    original, calls = recogniser.driver.decode_bytes, 0

    def damaging(*given: Any) -> Ticket[bytes]:
        nonlocal calls
        calls += 1
        ticket = original(*given)
        if calls == 9:
            assemble = ticket._assemble
            monkeypatch.setattr(ticket, "_assemble", lambda: assemble()[:12] + b"\xff" + assemble()[13:])
        return ticket

    monkeypatch.setattr(recogniser.driver, "decode_bytes", damaging)
    engine.run()
    failed = [session for session in sessions if session.error is not None]
    assert len(failed) == 1 and isinstance(failed[0].error, DeviceError)
    assert [outcome(session) for session in sessions if session not in failed] == [whole] * 2


@pytest.mark.parametrize("reloaded", [False, True])
def test_a_fault_that_halts_takes_slots(
    recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch, reloaded: bool
) -> None:
    """A stream that does nothing just then, and whose state is lost all the same; one that has none yet."""
    engine, vectors = engine_of(recogniser), vectors_of(recogniser, samples(SHORT))
    whole = wanted(recogniser, vectors)
    lost, kept, fresh = (opened(engine, vectors[:20], ended=False) for _ in range(3))
    fresh.vectors.clear()
    fresh.waiting = 0
    engine.run()
    assert lost.number is not None
    slots = [one.slot for one in engine.search.kept(lost.number)]
    recover = recogniser.driver.recover

    def recovered() -> Recovery:
        found = recover()
        return replace(found, lost_prediction=(*found.lost_prediction, *slots), reloaded=reloaded)

    monkeypatch.setattr(recogniser.driver, "recover", recovered)
    assert isinstance(recogniser.device, EmulatorDevice)
    recogniser.device.inject_watchdog()
    at_work = opened(engine, vectors)
    engine.run()
    assert isinstance(lost.error, DeviceError) and isinstance(at_work.error, DeviceError)
    assert (kept.error is not None) == reloaded and fresh.error is None
    for session, rest in ((kept, vectors[20:]), (fresh, vectors)):
        if session.error is None:
            session.put(rest)
            session.ended = True
            engine.run()
            assert outcome(session) == whole


def test_streams_closed_in_the_middle(recogniser: Recogniser, seed: int) -> None:
    """Others are not disturbed, and who takes the place at once finds it clean."""
    random = np.random.default_rng(seed)
    engine = engine_of(recogniser)
    vectors = {path: vectors_of(recogniser, samples(path)) for path in FILES[:3]}
    whole = {path: wanted(recogniser, array) for path, array in vectors.items()}
    live: list[tuple[Any, BeamSession]] = []
    done = 0
    while done < 12:
        while len(live) < 8:
            path = FILES[int(random.integers(3))]
            live.append((path, opened(engine, vectors[path])))
        for _ in range(int(random.integers(1, 30))):
            if not engine.submit() or random.random() < 0.5:
                engine.collect()
        for path, session in list(live):
            if session.done:
                assert outcome(session) == whole[path]
                done += 1
            elif random.random() > 0.1:
                continue
            engine.close(session)
            engine.close(session)
            live.remove((path, session))


def test_an_error_in_the_search_leaves_the_engine_usable(
    recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, vectors = engine_of(recogniser), vectors_of(recogniser, samples(SHORT))
    whole = wanted(recogniser, vectors)
    hit = opened(engine, vectors)
    monkeypatch.setattr(engine.search, "feed", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.run()
    monkeypatch.undo()
    late = opened(engine, vectors)
    engine.run()
    assert hit.error is not None and outcome(late) == whole


def test_alternatives_have_their_time(recogniser: Recogniser) -> None:
    engine, vectors = engine_of(recogniser), vectors_of(recogniser, samples(SHORT))
    session = engine.open()
    assert session.done and session.alternatives(3) == [Alternative(0.0, 0.0, ())]
    session.put(vectors)
    with pytest.raises(RuntimeError, match="not done"):
        session.alternatives()
    session.ended = True
    engine.run()
    found = session.alternatives(2)
    assert 1 <= len(found) <= 2 and [one.mean for one in found] == sorted((one.mean for one in found), reverse=True)
    engine.close(session)
    with pytest.raises(RuntimeError, match="closed"):
        session.alternatives()


@pytest.mark.parametrize(
    ("encoder", "prediction", "options", "wanted"),
    [
        (16, 64, DecoderOptions(), (10, 1)),
        (16, 64, DecoderOptions(width=1), (16, 3)),
        (8, 32, DecoderOptions(), (2, 1)),
        (8, 27, DecoderOptions(), (1, 1)),  # enough as a rule, though not for any step
        (8, 7, DecoderOptions(), (0, 1)),
        (8, 32, DecoderOptions(width=1), (8, 2)),
        (64, 256, DecoderOptions(), (58, 1)),
        (4096, 49152, DecoderOptions(), (4096, 3)),
        (4096, 49152, DecoderOptions(width=32), (1523, 3)),
    ],
)
def test_places(encoder: int, prediction: int, options: DecoderOptions, wanted: tuple[int, int]) -> None:
    sessions, lanes = places(encoder, prediction, options)
    assert (sessions, lanes) == wanted
    if sessions > 1:
        assert sessions * options.width + lanes * options.expansions <= prediction


def engine_with(slots: int, options: DecoderOptions) -> BeamEngine:
    program = open_model()
    driver = Driver(open_device("emulator", program.config, program.manifest), program, prediction_slots=slots)
    return BeamEngine(driver, search_model(program, vocabulary(program)), options)


@pytest.mark.parametrize(
    ("slots", "width", "most"), [(8, 4, 1), (26, 4, 1), (28, 4, 1), (32, 4, 2), (18, 2, 1), (32, 2, 8)]
)
def test_few_slots_change_nothing(slots: int, width: int, most: int) -> None:
    """As many streams as there are places for, and more steps ready than can be searched at a time."""
    options = DecoderOptions(width=width)
    with load(decoder="beam", options=options, device="emulator:u50") as big:
        vectors = [vectors_of(big, samples(path)) for path in FILES[:most]]
        expected = [wanted(big, array) for array in vectors]
    engine = engine_with(slots, options)
    sessions = [opened(engine, array) for array in vectors]
    assert engine.free == 0
    with pytest.raises(GharialError, match="no place is left"):
        engine.open()
    engine.run()
    # The device is another, of the same numbers.
    assert [outcome(session) for session in sessions] == expected
    engine._driver.close()


def test_too_wide_for_the_device() -> None:
    with pytest.raises(BadInput, match="too few prediction slots") as caught:
        engine_with(7, DecoderOptions())
    complete(caught.value)
    with pytest.raises(BadInput, match="17"):
        load(decoder="beam", options=DecoderOptions(width=17), ngram=False)


def test_a_model_that_never_ends_a_step(tmp_path: Any) -> None:
    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration" / SHORT.name).write_bytes(SHORT.read_bytes())
    options = DecoderOptions(max_symbols=3, final_limit_s=0.3)
    model = talkative(tmp_path)
    with load(model, decoder="beam", options=options, calibrate=tmp_path / "calibration") as chatty:
        session = opened(engine_of(chatty), vectors_of(chatty, samples(SHORT)[:9000]))
        chatty.run()
        results, alternatives = outcome(session)
        tokens = [token.step for one in results for token in one.finals]
        tokens += [token.step for token in alternatives[0].tokens]
        assert tokens == sorted(tokens) and max(map(tokens.count, tokens)) == 3
        assert set(tokens) == set(range(len(results)))


def test_settings_that_a_decoder_has_no_use_for(tmp_path: Any) -> None:
    useless: list[dict[str, Any]] = [
        *({"options": DecoderOptions(width=2)}, {"ngram": tmp_path / "a.ngram"}, {"ngram": True}, {"mode": Mode.ALL})
    ]
    for options in useless:
        with pytest.raises(BadInput, match="beam-width 1") as caught:
            load(decoder="greedy", **options)
        complete(caught.value)
    with pytest.raises(BadInput, match="unknown decoder") as caught:
        load(decoder="viterbi")
    complete(caught.value)
    with load(decoder="greedy", options=DecoderOptions(), ngram=False) as greedy:
        keywords = greedy.keywords({"on": 1.0})
        with pytest.raises(BadInput, match="keywords") as caught:
            greedy.engine.open(keywords=keywords)
        complete(caught.value)
        assert greedy.free_streams == 8
    with pytest.raises(BadInput, match="no n-gram beside") as caught:
        load(decoder="beam", ngram=True)
    complete(caught.value)
    with pytest.raises(BadInput, match="end-of-sequence"):
        load(decoder="beam", options=DecoderOptions(eos="ignore"))  # type: ignore[arg-type]


def test_keywords_are_checked_against_the_vocabulary(recogniser: Recogniser, tmp_path: Any) -> None:
    path = tmp_path / "keywords.json"
    path.write_text('{"keywords": {"left on": 0.5}}')
    assert recogniser.keywords(path).boosts == recogniser.keywords({"left on": 0.5}).boosts == {"left on": 0.5}
    path.write_text('{"keywords": {"ж": 0.5}}')
    for given, where in ((path, str(path)), ({"ж": 0.5}, "keywords")):
        with pytest.raises(BadInput) as caught:
            recogniser.keywords(given)
        assert where in str(caught.value) and "ж" in str(caught.value)


def test_fuzzy_needs_its_classes(tmp_path: Any) -> None:
    (tmp_path / SHORT.name).write_bytes(SHORT.read_bytes())
    with pytest.raises(BadInput, match="FUZZY") as caught:
        load(checkpoint(tmp_path, 1, None), "emulator:tiny", decoder="beam", mode=Mode.FUZZY, calibrate=tmp_path)
    complete(caught.value)


@pytest.mark.parametrize("decoder", ["greedy", "beam"])
def test_anything_may_fail_at_any_time(decoder: str, seed: int) -> None:
    """Sessions come and go while the device fails in every way; each says so or has heard what it should have."""
    random = np.random.default_rng(seed)
    failed = finished = 0
    with load(decoder=decoder, options=OPTIONS if decoder == "beam" else None, ngram=False) as recogniser:
        engine, device = recogniser.engine, recogniser.device
        assert isinstance(device, EmulatorDevice)
        vectors = [vectors_of(recogniser, samples(path)) for path in FILES[:4]]
        whole = [wanted_of(engine, array) for array in vectors]
        live: list[tuple[int, Session]] = []
        while finished < 12 or failed < 6:
            while len(live) < 6:
                number = int(random.integers(4))
                live.append((number, put_whole(engine, vectors[number])))
            for _ in range(int(random.integers(1, 40))):
                if not engine.submit() or random.random() < 0.3:
                    engine.collect()
            chance = random.random()
            if chance < 0.1:
                device.inject_watchdog()
            elif chance < 0.2:
                device.inject_bus_error(Fault.BUS_READ if random.random() < 0.5 else Fault.BUS_WRITE)
            elif chance < 0.3:
                recogniser.driver.free("encoder", [live[int(random.integers(len(live)))][1].encoder])
            elif chance < 0.4:
                recogniser.driver.free("prediction", [int(random.integers(32))])
            for number, session in list(live):
                if session.done:
                    live.remove((number, session))
                    if session.error is None:
                        assert (list(session.results), session.alternatives(9)) == whole[number]
                        finished += 1
                    else:
                        assert isinstance(session.error, DeviceError)
                        failed += 1
                    engine.close(session)
        for _, session in live:
            engine.close(session)
        recogniser.device.reset()
        assert engine.free == 8
