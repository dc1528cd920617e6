# SPDX-License-Identifier: Apache-2.0
"""Streams with prefixes: primed as the tokens say, whoever shares the device, on every device."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from command import Run
from prefix_models import ANY, DEFAULT, TOKENS, VALID, VOCABULARY, checkpoint, tokens_of
from recordings import FILES, LONG, SHORT, cuts, facts, samples
from rtl_device import needed

from gharial.bench.models import DeviceModel, measure_wer
from gharial.checkpoint import load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.devices.emulator import EmulatorDevice
from gharial.driver import DecodeEntry, Driver, EncodeEntry, Recovery, Ticket
from gharial.errors import DeviceError
from gharial.features import quantise_features
from gharial.floating.yardstick import TorchRnnt
from gharial.isa.commands import Kind, Mode
from gharial.isa.faults import Fault
from gharial.model import compile_model
from gharial.program import Program
from gharial.recognise import Recogniser, StreamOptions
from gharial.trace import first_difference, read_trace, trace_recording, write_trace

FREE = ("", "<pnc>", "<nopnc>", *VALID)
"""The prefixes of `ANY`."""

PIECE = samples(LONG)[16000:24000]


def compiled(folder: Path, spec: object, config: str = "tiny", seed: int = 1) -> Program:
    shutil.copy(SHORT, folder / "talk.flac")
    return compile_model(checkpoint(folder, seed, spec), config, folder)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A model that takes any of `FREE`, without a default."""
    return compiled(tmp_path_factory.mktemp("any"), {"valid_prefix": ANY})


@pytest.fixture
def recogniser(program: Program) -> Iterator[Recogniser]:
    with Recogniser(program) as opened:
        yield opened
        assert opened.free_streams == 16


def heard(recogniser: Recogniser, values: np.ndarray, prefix: str | None) -> list[tuple[int, int, float]]:
    with recogniser.stream(StreamOptions(prefix)) as stream:
        stream.push(values)
        return facts(stream.finish().tokens)


def logits(recogniser: Recogniser, vectors: np.ndarray, prefix: tuple[int, ...], emitted: bool) -> np.ndarray:
    """Logits of the first encoder step after a prefix, primed without joints, or emitted by hand at that step."""
    driver = recogniser.driver
    driver.encode([EncodeEntry(0, vectors, 0, True)])
    for kind, token in ((Kind.START, 0), *((Kind.TOKEN, token) for token in prefix)):
        ticket = driver.decode([DecodeEntry(0, 0, kind, 3, 3, token, joint=emitted)], mode=Mode.ALL)
    if not emitted:
        ticket = driver.decode([DecodeEntry(0, 0, Kind.NONE, 3, 3)], mode=Mode.ALL)
    return ticket.result().logits[0]


def test_a_prefix_is_what_the_same_tokens_leave_behind(recogniser: Recogniser, seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.integers(-40, 40, (2, 240)).astype(np.int8)
    prefix = tuple(int(token) for token in random.integers(0, VOCABULARY, 3))
    primed, emitted = (logits(recogniser, vectors, prefix, by_hand) for by_hand in (False, True))
    np.testing.assert_array_equal(primed, emitted)


@pytest.mark.parametrize("model", [1, 2, 3, 4])
def test_first_logits_are_the_float_models(tmp_path: Path, model: int) -> None:
    """Beside the right prefix's error, that of a network which was told nothing is large."""
    program = compiled(tmp_path, {"valid_prefix": ANY}, seed=model)
    loaded = load_hardware(checkpoint(tmp_path, model, {"valid_prefix": ANY}))
    with Recogniser(program) as recogniser:
        features = audio_features(SHORT, recogniser.front_end)[20:22]
        vectors = quantise_features(features, recogniser.feature_bits)
        unit = 2.0 ** -program.header["logit_bits"]
        for prefix in VALID:
            found = unit * logits(recogniser, vectors, tokens_of(prefix), emitted=False)
            wanted, untold = (
                TorchRnnt(loaded, prefix=told).forced_logits(features, [])[0] for told in (tokens_of(prefix), ())
            )
            error, other = (float(np.square(found - exact).sum()) for exact in (wanted, untold))
            print(f"{prefix}: {10 * np.log10(np.square(wanted).sum() / error):.1f} dB")
            assert error < 0.02 * np.square(wanted).sum()
            assert error < 0.2 * other


def test_streams_side_by_side_are_those_alone(program: Program, seed: int) -> None:
    """Sixteen streams with prefixes of any length, cut anywhere, begun and ended whenever it comes to it."""
    random = np.random.default_rng(seed)
    wanted = {}
    for prefix in FREE:
        with Recogniser(program) as alone:
            wanted[prefix] = [heard(alone, samples(path)[:24000], prefix) for path in FILES[:3]]
    jobs = [(str(random.choice(FREE)), int(random.integers(3))) for _ in range(24)]
    found: dict[int, list[tuple[int, int, float]]] = {number: [] for number in range(len(jobs))}
    with Recogniser(program) as recogniser:
        waiting = list(range(len(jobs)))
        live = {}
        while waiting or live:
            if waiting and len(live) < 16 and random.random() < 0.4:
                number = waiting.pop()
                prefix, file = jobs[number]
                stream = recogniser.stream(StreamOptions(prefix))
                live[number] = stream, cuts(samples(FILES[file])[:24000], random, 6000)
            if not live:
                continue
            number = int(random.choice(list(live)))
            stream, pieces = live[number]
            piece = next(pieces, None)
            if piece is not None:
                stream.feed(piece)
                if random.random() < 0.3:
                    recogniser.run()
                found[number] += facts(stream.take())
            else:
                found[number] += facts(stream.finish().tokens[len(found[number]) :])
                del live[number]
        assert recogniser.free_streams == 16
    assert found == {number: wanted[prefix][file] for number, (prefix, file) in enumerate(jobs)}


def test_priming_leaves_the_state_of_the_tokens_in_order(recogniser: Recogniser, seed: int) -> None:
    """The slots of sessions that began together, byte by byte, against tokens sent one by one."""
    random = np.random.default_rng(seed)
    driver, engine = recogniser.driver, recogniser.engine
    told = [tuple(random.integers(0, VOCABULARY, length).tolist()) for length in (1, 2, 3, 5, 2)]
    sessions = [engine.open(prefix) for prefix in told]
    engine.run()
    (slot,) = driver.allocate("prediction")
    for prefix, session in zip(told, sessions, strict=True):
        for kind, token in ((Kind.START, 0), *((Kind.TOKEN, token) for token in prefix)):
            driver.decode([DecodeEntry(0, 0, kind, slot, slot, token, joint=False)])
        found, wanted = driver.save("prediction", [session.prediction, slot]).result()
        assert found.data == wanted.data
        engine.close(session)
    driver.release("prediction", (slot,))


def test_a_first_step_waits_for_its_priming(recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = recogniser.driver
    decode, greedy = driver.decode, driver.greedy
    primings: list[Ticket[Any]] = []
    ahead: list[bool] = []

    def decoded(*given: Any, **options: Any) -> Any:
        primings.append(decode(*given, **options))
        return primings[-1]

    def stepped(*given: Any, **options: Any) -> Any:
        ahead.append(not all(ticket.done for ticket in primings))
        return greedy(*given, **options)

    monkeypatch.setattr(driver, "decode", decoded)
    monkeypatch.setattr(driver, "greedy", stepped)
    assert heard(recogniser, PIECE, "<pnc><lang_en>")
    assert len(primings) == 3 and ahead and not any(ahead)


def test_a_primed_stream_whose_slot_is_lost_says_so(recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has sent no step yet: what it has on the device is the prefix alone."""
    idle, other = recogniser.stream(StreamOptions("<pnc>")), recogniser.stream(StreamOptions(""))
    recogniser.run()
    primed = idle._segments._live[0].session.prediction  # type: ignore[attr-defined]
    recover = recogniser.driver.recover

    def recovered() -> Recovery:
        found = recover()
        return replace(found, lost_prediction=(*found.lost_prediction, primed))

    monkeypatch.setattr(recogniser.driver, "recover", recovered)
    assert isinstance(recogniser.device, EmulatorDevice)
    recogniser.device.inject_watchdog()
    other.feed(PIECE)
    recogniser.run()
    for stream in (idle, other):
        with pytest.raises(DeviceError):
            stream.finish()


def test_prefixes_matter(recogniser: Recogniser) -> None:
    found = [heard(recogniser, PIECE, prefix) for prefix in FREE]
    assert len({tuple(tokens) for tokens in found}) == len(FREE)
    assert heard(recogniser, PIECE, None) == found[0]


def test_the_prefix_is_no_part_of_the_transcript(tmp_path: Path) -> None:
    with Recogniser(compiled(tmp_path, "usual")) as recogniser, recogniser.stream() as stream:
        assert recogniser.prefixes.default == DEFAULT
        recogniser.run()
        assert (stream.tokens, stream.text, stream.audio_s, stream.done) == ([], "", 0.0, False)
        stream.end()
        transcript = stream.finish()
        assert (transcript.text, transcript.tokens, transcript.audio_s) == ("", (), 0.0)
        told = heard(recogniser, PIECE, DEFAULT)
        assert heard(recogniser, PIECE, None) == told
        assert min(step for _, step, _ in told) == 0


@pytest.mark.parametrize(
    "device", ["reference", "emulator:tiny-batch", "emulator:u50", "verilator:tiny", "verilator:tiny-batch"]
)
def test_on_every_device(program: Program, tmp_path: Path, device: str) -> None:
    if device.startswith("verilator"):
        needed()
    config = device.partition(":")[2] or "tiny"
    other = program if config == "tiny" else compiled(tmp_path, {"valid_prefix": ANY}, config)
    values = PIECE[:800]
    told = ("", "<pnc>", "<nopnc><lang_fr>")
    with Recogniser(program) as recogniser:
        wanted = [heard(recogniser, values, prefix) for prefix in told]
    with Recogniser(other, device) as recogniser:
        streams = [recogniser.stream(StreamOptions(prefix)) for prefix in told]
        for stream in streams:
            stream.feed(values)
            stream.end()
        recogniser.run()
        assert [facts(stream.finish().tokens) for stream in streams] == wanted


def test_many_recordings_have_one_prefix(recogniser: Recogniser) -> None:
    outcomes = list(recogniser.transcribe_many([PIECE] * 5, streams=2, options=StreamOptions("<pnc>")))
    assert [facts(outcome.tokens) for outcome in outcomes] == [heard(recogniser, PIECE, "<pnc>")] * 5
    assert facts(recogniser.transcribe(PIECE, StreamOptions("<nopnc>")).tokens) == heard(recogniser, PIECE, "<nopnc>")


@pytest.mark.parametrize("how", ["read", "write", "watchdog"])
def test_a_priming_that_fails_hits_its_stream_alone(recogniser: Recogniser, how: str) -> None:
    other = recogniser.stream(StreamOptions("<pnc>"))
    other.push(PIECE[:4000])
    hit = recogniser.stream(StreamOptions("<nopnc>"))
    hit.feed(PIECE)
    assert isinstance(recogniser.device, EmulatorDevice)
    if how == "watchdog":
        recogniser.device.inject_watchdog()
    else:
        recogniser.device.inject_bus_error(Fault.BUS_READ if how == "read" else Fault.BUS_WRITE)
    recogniser.run()
    with pytest.raises(DeviceError):
        hit.take()
    with pytest.raises(DeviceError):
        hit.finish()
    other.push(PIECE[4000:])
    assert facts(other.finish().tokens) == heard(recogniser, PIECE, "<pnc>")


def test_streams_that_are_closed_early_leave_nothing(recogniser: Recogniser) -> None:
    wanted = heard(recogniser, PIECE, "<pnc>")
    for run in (False, True):
        for _ in range(3):
            gone = [recogniser.stream(StreamOptions("<nopnc><lang_en>")) for _ in range(15)]
            gone[0].feed(PIECE)
            if run:
                recogniser.engine.run(drain=False)
            for stream in gone:
                stream.close()
        assert heard(recogniser, PIECE, "<pnc>") == wanted


def test_more_primings_than_a_command_takes(program: Program) -> None:
    with Recogniser(program) as recogniser:
        wanted = heard(recogniser, PIECE, "<pnc>")
        recogniser.engine._most = 3
        streams = [recogniser.stream(StreamOptions("<pnc>")) for _ in range(16)]
        for stream in streams:
            stream.feed(PIECE)
            stream.end()
        recogniser.run()
        assert [facts(stream.finish().tokens) for stream in streams] == [wanted] * 16


def test_a_trace_records_the_prefix(cli: Run, program: Program, tmp_path: Path) -> None:
    model = tmp_path / "m.gprog"
    program.write(model)
    soundfile.write(tmp_path / "talk.wav", PIECE, 16000)
    traces = {}
    for name, prefix, device in (
        ("a", "<pnc><lang_fr>", "emulator"),
        ("b", "<pnc><lang_fr>", "reference"),
        ("c", "<nopnc><lang_fr>", "emulator"),
        ("d", "", "emulator"),
    ):
        options = ["--prefix", prefix, "--device", device]
        assert cli("trace", model, tmp_path / "talk.wav", "-o", tmp_path / f"{name}.npz", *options).code == 0
        traces[name] = read_trace(tmp_path / f"{name}.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    told = traces["a"]
    assert told["prefix"].tolist() == [TOKENS["<pnc>"], TOKENS["<lang_fr>"]]
    assert len(told["prediction.0.h"]) == len(told["joint_pred"]) == 1 + 2 + len(told["tokens"])
    assert len(traces["d"]["joint_pred"]) == 1 + len(traces["d"]["tokens"])
    assert first_difference(told, traces["b"]) is None
    for name in ("c", "d"):
        found = first_difference(told, traces[name])
        assert found is not None and (found.place.tensor, found.place.index) == ("prefix", 0)
        assert found.place.step is None
    changed = dict(told, joint_pred=told["joint_pred"].copy())
    changed["joint_pred"][2, 5] ^= 1  # what the last token of the prefix leaves
    found = first_difference(told, changed)
    assert found is not None and (found.place.tensor, found.place.index, found.place.step) == ("joint_pred", 2, 0)
    changed = dict(told, tokens=told["tokens"].copy())
    changed["tokens"][3] ^= 1
    found = first_difference(told, changed)
    assert found is not None and (found.place.index, found.place.step) == (3, int(told["steps"][3]))


def test_older_traces_have_no_prefix(program: Program, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "talk.wav", PIECE, 16000)
    trace = trace_recording(program, tmp_path / "talk.wav")
    write_trace(tmp_path / "old.npz", {name: array for name, array in trace.items() if name != "prefix"})
    assert first_difference(trace, read_trace(tmp_path / "old.npz")) is None


def test_the_bench_leads_the_device_alike(recogniser: Recogniser, seed: int) -> None:
    vectors = np.random.default_rng(seed).standard_normal((6, 240)).astype(np.float32)
    prefix, path = tokens_of("<pnc><lang_fr>"), [(0, 7), (2, 9), (2, 1)]
    told = DeviceModel(recogniser, prefix).forced(vectors, path)
    emitted = DeviceModel(recogniser).forced(vectors, [(0, token) for token in prefix] + path)
    np.testing.assert_array_equal(told, emitted[len(prefix) :])
    greedy = DeviceModel(recogniser, prefix).greedy(vectors)
    own = DeviceModel(recogniser, prefix).forced(vectors, greedy.path)
    assert own[own != VOCABULARY].tolist() == greedy.tokens


def test_word_errors_with_a_prefix(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "talk.wav", PIECE, 16000)
    manifest = [{"transcript": "up", "files": [{"fname": "talk.wav"}]}]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    path = checkpoint(tmp_path, 1, {"valid_prefix": ANY}, blank=4.0)
    found = measure_wer(tmp_path, path, "emulator:tiny", prefix="<nopnc><lang_en>", quiet=True)
    assert found["token_agreement"] > 0.8 and found["evaluations"] > 10


def test_slots_are_reset_and_not_only_started(program: Program) -> None:
    """A primed stream in slots that hold another's state, some of it of steps without an end."""
    with Recogniser(program) as recogniser:
        wanted = heard(recogniser, PIECE, "<pnc>")
        driver: Driver = recogniser.driver
        (encoder,), (prediction,) = driver.allocate("encoder"), driver.allocate("prediction")
        random = np.random.default_rng(1)
        driver.encode([EncodeEntry(encoder, random.integers(-99, 99, (1, 240)).astype(np.int8), 0, True)])  # ended
        driver.decode([DecodeEntry(0, 0, Kind.START, prediction, prediction, 0, joint=False)])
        for kind, slot in (("encoder", encoder), ("prediction", prediction)):
            driver._pool(kind).release((slot,))  # not wiped
        assert heard(recogniser, PIECE, "<pnc>") == wanted
