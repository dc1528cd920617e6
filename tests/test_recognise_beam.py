# SPDX-License-Identifier: Apache-2.0
"""Beam search through the whole stack: what comes out is the plain search's, whoever shares the device."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ngram_files import binary
from plain_beam import Said, Spoken, plain_search, vectors_of
from prefix_models import ANY, checkpoint, tokens_of
from recordings import FILES, LONG, SHORT, cuts, samples
from rtl_device import needed

from gharial.decoding import DecoderOptions
from gharial.devices.emulator import EmulatorDevice
from gharial.driver import Driver
from gharial.isa import _registers as reg
from gharial.isa.commands import Mode
from gharial.model import compile_model
from gharial.ngram import NgramModel
from gharial.program import Program
from gharial.recognise import Recogniser, load
from gharial.recognise.decoders import make_engine
from gharial.recognise.session import Emitted, Session, StepResult

BIG = "emulator:u50"
SCALE = 0.3
"""Large, so that it shows."""

DEMO_CASES: dict[str, dict[str, Any]] = {
    "usual": {},
    "wide": {"width": 8, "score_threshold": -1.0, "topk_threshold": 4.0},
    "one": {"width": 1},
    "ngram": {"ngram_scale": SCALE},
    "late": {"final_limit_s": -1.0, "topk_threshold": 5.0, "score_threshold": 2.0},
    "penalty": {"blank_penalty": 2.0, "topk_threshold": 4.0},
    "few symbols": {"max_symbols": 1, "max_expansions": 3, "blank_penalty": 3.0},
}
RANDOM_CASES: dict[str, dict[str, Any]] = {
    "ignore": {"eos": "ignore", "topk_threshold": 3.0},
    "blank": {"eos": "blank", "blank_penalty": -1.0, "topk_threshold": 3.0},
    "predict": {"eos": "predict", "eos_alpha": 0.5, "eos_beta": 0.01, "topk_threshold": 3.0},
    "marks": {"merge_lone_marks": True, "topk_threshold": 3.0, "width": 3},
}
BOOSTS = {"on": 0.6, "right d": 0.4, "no": -0.5}


def said(tokens: tuple[Emitted, ...]) -> list[Said]:
    return [(one.token, one.step, one.confidence) for one in tokens]


def heard(session: Session, results: list[StepResult]) -> Spoken:
    """What a session that is done has given, and its alternatives."""
    assert [one.step for one in results] == list(range(len(results)))
    return Spoken(
        [said(one.finals) for one in results],
        [said(one.partial) for one in results],
        [(one.mean, said(one.tokens)) for one in session.alternatives(100)],
    )


def alone(
    recogniser: Recogniser, vectors: np.ndarray, prefix: tuple[int, ...] = (), boosts: dict[str, float] | None = None
) -> Spoken:
    engine = recogniser.engine
    session = engine.open(prefix, recogniser.keywords(boosts) if boosts else None)
    session.put(vectors)
    session.ended = True
    engine.run()
    if session.error is not None:
        raise session.error
    found = heard(session, list(session.results))
    engine.close(session)
    return found


def same(found: Spoken, wanted: Spoken) -> None:
    """Tokens to the last bit; confidences and means but for the rounding of another order of sums."""
    assert shapes(found) == shapes(wanted)
    np.testing.assert_allclose(numbers(found), numbers(wanted), rtol=1e-9, atol=1e-12)


def shapes(spoken: Spoken) -> object:
    lists = [*spoken.finals, *spoken.partials, *[tokens for _, tokens in spoken.alternatives]]
    return len(spoken.finals), [[(token, step) for token, step, _ in one] for one in lists]


def numbers(spoken: Spoken) -> list[float]:
    lists = [*spoken.finals, *spoken.partials, *[tokens for _, tokens in spoken.alternatives]]
    return [mean for mean, _ in spoken.alternatives] + [value for one in lists for _, _, value in one]


@pytest.fixture(scope="module")
def plain_demo() -> Iterator[Recogniser]:
    with load(device=BIG) as opened:
        yield opened


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A random model with an end-of-sequence token, user-defined symbols, and prefixes of any kind."""
    folder = tmp_path_factory.mktemp("random")
    shutil.copy(SHORT, folder / "talk.flac")
    return compile_model(checkpoint(folder, 1, {"valid_prefix": ANY}, blank=2.0), "tiny", folder)


@pytest.mark.parametrize("case", DEMO_CASES)
def test_the_plain_search_on_the_demo_model(plain_demo: Recogniser, case: str, seed: int) -> None:
    options = DecoderOptions(**DEMO_CASES[case])
    ngram: Any = False
    scorer = None
    if case == "ngram":
        pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")
        ngram = binary()
        scorer = NgramModel(ngram, plain_demo.program.section("sentencepiece"), lambda _: None)
    boosts = BOOSTS if case == "late" else None
    path = FILES[seed % len(FILES)]
    vectors = vectors_of(plain_demo, samples(path)[:32000])
    wanted = plain_search(plain_demo, vectors, options, boosts=boosts, ngram=scorer)
    with load(device=BIG, decoder="beam", options=options, ngram=ngram, note=lambda _: None) as recogniser:
        same(alone(recogniser, vectors, boosts=boosts), wanted)


@pytest.mark.parametrize("case", RANDOM_CASES)
def test_the_plain_search_on_a_random_model(program: Program, case: str, seed: int) -> None:
    options = DecoderOptions(**RANDOM_CASES[case])
    vectors = np.random.default_rng(seed).integers(-50, 51, (25, 240)).astype(np.int8)
    prefix = tokens_of("<pnc><lang_fr>")
    with Recogniser(program) as recogniser:
        wanted = plain_search(recogniser, vectors, options, prefix=prefix)
    with Recogniser(program, decoder="beam", options=options) as recogniser:
        same(alone(recogniser, vectors, prefix), wanted)


@pytest.mark.parametrize("mode", [Mode.ALL, Mode.FUZZY])
def test_other_modes(plain_demo: Recogniser, mode: Mode) -> None:
    options = DecoderOptions(topk_threshold=3.0)
    vectors = vectors_of(plain_demo, samples(SHORT))
    wanted = plain_search(plain_demo, vectors, options, mode=mode)
    with load(device=BIG, decoder="beam", options=options, mode=mode) as recogniser:
        same(alone(recogniser, vectors), wanted)


@pytest.mark.parametrize(
    "device", ["reference", "emulator", "emulator:tiny-batch", "verilator:tiny", "verilator:tiny-batch"]
)
def test_on_every_device(program: Program, device: str, tmp_path: Path, seed: int) -> None:
    if device.startswith("verilator"):
        needed()
    config = device.partition(":")[2] or ("ecp5-85f" if device == "emulator" else "tiny")
    other = program
    if config != "tiny":
        shutil.copy(SHORT, tmp_path / "talk.flac")
        other = compile_model(checkpoint(tmp_path, 1, {"valid_prefix": ANY}, blank=2.0), config, tmp_path)
    options = DecoderOptions(width=2, topk_threshold=3.0)
    random = np.random.default_rng(seed)
    streams = [random.integers(-50, 51, (length, 240)).astype(np.int8) for length in (5, 2, 8)]
    prefixes = [(), tokens_of("<pnc>"), tokens_of("<nopnc><lang_en>")]
    with Recogniser(program, "emulator:tiny") as recogniser:
        wanted = [plain_search(recogniser, v, options, prefix=p) for v, p in zip(streams, prefixes, strict=True)]
    with Recogniser(other, device, decoder="beam", options=options) as recogniser:
        sessions = [recogniser.engine.open(prefix) for prefix in prefixes]
        for session, vectors in zip(sessions, streams, strict=True):
            session.put(vectors)
            session.ended = True
        recogniser.engine.run()
        for session, spoken in zip(sessions, wanted, strict=True):
            assert session.error is None
            same(heard(session, list(session.results)), spoken)


Job = tuple[np.ndarray, tuple[int, ...], dict[str, float] | None]
"""Vectors, prefix, boosts."""


def in_company(recogniser: Recogniser, jobs: list[Job], random: np.random.Generator, longest: int) -> list[Spoken]:
    """Sessions that come and go, as many at a time as there are places, of random cuts in random order."""
    engine, waiting, live = recogniser.engine, list(range(len(jobs))), dict[int, Any]()
    found: dict[int, Spoken] = {}
    results: dict[int, list[StepResult]] = {number: [] for number in waiting}
    most = engine.free
    while waiting or live:
        if waiting and engine.free and random.random() < 0.4:
            number = waiting.pop()
            vectors, prefix, boosts = jobs[number]
            session = engine.open(prefix, recogniser.keywords(boosts) if boosts else None)
            live[number] = session, cuts(vectors, random, longest)
        if not live:
            continue
        number = int(random.choice(list(live)))
        session, pieces = live[number]
        piece = next(pieces, None)
        if piece is not None:
            session.put(piece)
        else:
            session.ended = True
        for _ in range(int(random.integers(0, 4))):
            engine.submit() or engine.collect()
        while session.results:
            results[number].append(session.results.popleft())
        if session.ended:
            engine.run()
            assert session.error is None
            found[number] = heard(session, results[number] + list(session.results))
            engine.close(live.pop(number)[0])
    assert engine.free == most
    return [found[number] for number in range(len(jobs))]


def test_cuts_and_company_do_not_matter(seed: int) -> None:
    pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")
    random = np.random.default_rng(seed)
    options = DecoderOptions(width=2, topk_threshold=4.0, ngram_scale=SCALE, blank_penalty=0.5)
    with load(decoder="beam", options=options, ngram=binary(), note=lambda _: None) as recogniser:
        vectors = [vectors_of(recogniser, samples(path)) for path in FILES]
        kinds = [None, BOOSTS, {"off": 1.0}]
        jobs: list[Job] = [
            (vectors[int(random.integers(len(FILES)))], (), kinds[int(random.integers(3))]) for _ in range(12)
        ]
        wanted = [alone(recogniser, *job) for job in jobs]
        assert recogniser.free_streams == 8
        assert in_company(recogniser, jobs, random, 30) == wanted


@pytest.mark.parametrize("case", RANDOM_CASES)
def test_company_of_prefixes_and_strategies(program: Program, case: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    with Recogniser(program, decoder="beam", options=DecoderOptions(**RANDOM_CASES[case])) as recogniser:
        jobs: list[Job] = []
        for _ in range(10):
            vectors = random.integers(-50, 51, (int(random.integers(0, 20)), 240)).astype(np.int8)
            prefix = tokens_of(str(random.choice(["", "<pnc>", "<nopnc><lang_en>"])))
            jobs.append((vectors, prefix, {"on": 0.7, "o": -0.2} if random.random() < 0.5 else None))
        wanted = [alone(recogniser, *job) for job in jobs]
        assert in_company(recogniser, jobs, random, 7) == wanted


class Slow(EmulatorDevice):
    """Commands are done some time after they were sent, a few at each look."""

    def start(self, random: np.random.Generator) -> None:
        self._random, self._asked, self._given = random, 0, 0

    def ring_doorbell(self, tail: int) -> None:
        self._asked = tail

    def _work(self, most: int) -> None:
        upto = min(self._asked, self._given + most)
        if upto > self._given:
            self._given = upto
            super().ring_doorbell(upto)

    def read_register(self, offset: int) -> int:
        if offset == reg.CPL_TAIL.offset:
            self._work(int(self._random.integers(0, 3)))
        return super().read_register(offset)

    def wait(self, completions: int, timeout: float) -> bool:
        self._work(1)
        return super().wait(completions, 0)


@pytest.mark.parametrize("decoder", ["greedy", "beam"])
def test_a_device_that_takes_its_time(plain_demo: Recogniser, decoder: str, seed: int) -> None:
    """Several commands are on their way, several lanes at work."""
    random = np.random.default_rng(seed)
    program = plain_demo.program
    device = Slow(program.config, 1 << 26)
    device.start(random)
    options = DecoderOptions(width=2) if decoder == "beam" else None
    with load(device=BIG, decoder=decoder, options=options, ngram=False) as usual:
        jobs: list[Job] = [(vectors_of(usual, samples(path)), (), None) for path in FILES]
        wanted = [alone(usual, *job) for job in jobs]
        with Driver(device, program) as driver:
            engine = make_engine(driver, usual.vocabulary, decoder, options, False)
            monkey = SimpleNamespace(engine=engine, keywords=usual.keywords)
            lanes = 0
            submit = engine.submit

            def watched() -> bool:
                nonlocal lanes
                lanes = max(lanes, len(engine._rounds))
                return submit()

            engine.submit = watched  # type: ignore[method-assign]
            assert in_company(monkey, jobs, random, 40) == wanted  # type: ignore[arg-type]
            assert lanes >= 2


def facts(tokens: Any) -> list[Said]:
    return [(token.id, token.step, token.confidence) for token in tokens]


@pytest.mark.parametrize("decoder", ["greedy", "beam"])
def test_streams_are_the_recordings(decoder: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    with load(decoder=decoder) as recogniser:
        whole = recogniser.transcribe(LONG)
        assert whole.decoder == decoder and whole.text
        with recogniser.stream() as stream:
            given = [token for piece in cuts(samples(LONG), random, 3000) for token in stream.push(piece)]
            transcript = stream.finish()
        assert facts([*given, *stream.take()]) == facts(transcript.tokens) == facts(whole.tokens)
        assert [one.text for one in recogniser.transcribe_many([SHORT, LONG, SHORT])] == [
            recogniser.transcribe(SHORT).text,
            whole.text,
            recogniser.transcribe(SHORT).text,
        ]
