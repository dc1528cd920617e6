# SPDX-License-Identifier: Apache-2.0
"""Speed of the beam search on one core (docs/decoding.md, section 10)."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gharial.bench.decode_device import TableDevice
from gharial.bench.decode_ngram import Language, Scorer
from gharial.bench.decode_peer import compare
from gharial.decoding import BeamSearch, DecoderOptions, SearchModel
from gharial.decoding.faults import failure
from gharial.devices import checkout
from gharial.errors import BadInput
from gharial.ngram.model import LN_10

STEP_S = 0.06
BATCH = 16
_LOGIT_BITS = 8
_WARM_UP = 20  # steps
_NGRAM_SCALE = 0.05
_PARTS = 4
_PLAIN = "sim/decoding/__init__.py"
_PLAIN_STREAMS = 8
_PLAIN_SLOTS = 4096  # states of a plain search that are remembered: far more than it holds


def bench_decode(
    vocab: int = 8704,
    beam: int = 4,
    ngram: str | os.PathLike[str] | None = None,
    *,
    batch: int = BATCH,
    streams: int = 512,
    steps: int = 200,
    seed: int = 1,
    note: Callable[[str], object] = lambda text: None,
) -> dict[str, Any]:
    """Run the search over seeded results of `streams` streams in batches.

    Args:
        vocab: classes, blank included.
        beam: width.
        ngram: KenLM file; None: a seeded 4-gram of 2 M entries over the pieces.
        batch: streams of a round.
        streams, steps: how many are run; the first steps are not counted.
        seed: of the table, the language and the n-gram.
        note: is told what takes long.

    Returns:
        vocab, beam, ngram (its file, or "seeded"), batch, streams_per_core, p50_us, p99_us (of a batch from results to
        next requests), reference_streams_per_core (None outside a source checkout), peer (as `decode_peer.compare`
        has it), and what a stream's step took: evaluations, rounds, ngram_queries, kept, tokens.

    Raises:
        BadInput: a number out of range, or no n-gram.
    """
    for name, value, least, most in (
        *(("vocab", vocab, 256, 65535), ("beam", beam, 1, 32), ("batch", batch, 1, 1024)),
        *(("streams", streams, batch, 4096), ("steps", steps, 1, 1_000_000)),
    ):
        if not least <= value <= most:
            raise BadInput("number is out of range", name, value, f"{least} to {most}")
    language = Language.seeded(vocab - 1, seed)
    scorer = Scorer(ngram, language, seed, note)
    run = _Run(language, scorer, beam, batch, streams, seed)
    # The plain version does the same steps in turns with the search: others on the machine slow down both.
    plain = _Reference(language, scorer, run, seed) if checkout.has(_PLAIN) else None
    run.measure(_WARM_UP)
    run.reset_figures()
    if plain is not None:
        plain.measure(_WARM_UP)
        plain.reset_figures()
    for part in range(_PARTS):
        some = steps * (part + 1) // _PARTS - steps * part // _PARTS
        run.measure(some)
        if plain is not None:
            plain.measure(some)
    reference = None if plain is None else plain.steps * STEP_S / plain.busy_s
    waits = np.array(run.waits) * 1e6
    done = steps * len(run.groups) * batch
    rate = done * STEP_S / run.busy_s
    return {
        "vocab": vocab,
        "beam": beam,
        "ngram": "seeded" if ngram is None else os.fspath(ngram),
        "batch": batch,
        "streams_per_core": round(rate),
        "p50_us": round(float(np.percentile(waits, 50)), 1),
        "p99_us": round(float(np.percentile(waits, 99)), 1),
        "reference_streams_per_core": None if reference is None else round(reference, 1),
        "peer": _peer(language, run, seed, rate, note),
        "evaluations": run.evaluations / done,
        "rounds": len(run.waits) / done * batch,
        "ngram_queries": run.queries / done,
        "kept": run.kept / done,
        "tokens": run.tokens / done,
    }


def clock_cost(*between: Callable[[], object]) -> float:
    """Seconds between two looks at the core's clock with nothing, or some calls, between them."""
    found = []
    for _ in range(1000):
        began = time.thread_time()
        for call in between:
            call()
        found.append(time.thread_time() - began)
    return float(np.median(found))


class _Run:
    """Streams in fixed batches, a step of each in turn; clocks run while the search does, not while the table does."""

    def __init__(self, language: Language, scorer: Scorer, beam: int, batch: int, streams: int, seed: int) -> None:
        self.options = DecoderOptions(width=beam, ngram_scale=_NGRAM_SCALE)
        self.model = SearchModel([*language.pieces, ""], len(language.pieces), _LOGIT_BITS)
        most = min(65536, streams * 3 * beam + 2 * self.options.expansions + batch * 8)
        self.search = BeamSearch(
            self.model, self.options, streams=streams, slots=range(most), max_entries=4 * beam * batch, ngram=scorer
        )
        unit = self.search.temperature * 2.0 ** -(_LOGIT_BITS + 14)
        self.device = TableDevice(language, seed, most, self.search.k, self.search.stride, unit)
        numbers = np.arange(streams // batch * batch, dtype=np.int32)
        self.groups = np.split(numbers, streams // batch)
        for stream in numbers.tolist():
            self.search.open(stream)
        self.step = 0
        self.reset_figures()

    def reset_figures(self) -> None:
        """Begin to count."""
        self.busy_s, self.waits = 0.0, list[float]()
        self.evaluations = self.queries = self.kept = self.tokens = 0

    def measure(self, steps: int) -> None:
        """Run so many steps of all streams."""
        search, device, clock, core = self.search, self.device, time.perf_counter, time.thread_time
        begin, turn, tick = search.begin, search.turn, clock_cost()
        for _ in range(steps):
            for group in self.groups:
                banks = np.zeros_like(group)
                began, used = clock(), core()
                entries = begin(0, group, group, banks)
                spent, waited = core() - used, clock() - began
                self.busy_s += spent - tick
                self.waits.append(waited)
                while len(entries):
                    self.evaluations += len(entries)
                    results = device.decode(entries, self.step).tobytes()  # as the driver has them
                    began, used = clock(), core()
                    entries, ended = turn(0, results)
                    spent, waited = core() - used, clock() - began
                    self.busy_s += spent - tick
                    self.waits.append(waited)
                    self.tokens += len(ended.tokens)
                    self.queries += search.queries
                    for fault in ended.streams["fault"].tolist():
                        if fault:
                            raise failure(fault)
                if self.step % 8 == 0:
                    self.kept += 8 * sum(len(search.kept(stream)) for stream in group.tolist())
            self.step += 1


class _PlainScoring:
    """One stream of the table for the plain search: a slot for each state."""

    def __init__(self, device: TableDevice, stream: int, model: SearchModel, unit: float, k: int) -> None:
        self._device, self._stream, self._blank, self._unit, self._k = device, stream, model.blank, unit, k
        self._scores: Any = checkout.module("sim.decoding").Scores
        self.spent, self.looks = 0.0, 0  # seconds in the table; how often the clock was stopped for it
        self.slot = 0
        self._step = 0

    def start(self) -> tuple[int, int, int]:
        return self._new(2, 0, 0)

    def advance(self, state: tuple[int, int, int], token: int) -> tuple[int, int, int]:
        # Run only when its joint is wanted: the device's answer depends on the step of the token.
        return self._new(1, state[1], token)

    def _new(self, kind: int, source: int, token: int) -> tuple[int, int, int]:
        self.slot = (self.slot + 1) % _PLAIN_SLOTS
        began = time.thread_time()
        self._result = self._ask(kind, source, self.slot, token, self._step)
        self.spent += time.thread_time() - began
        self.looks += 1
        return kind, self.slot, token

    def _ask(self, kind: int, source: int, to: int, token: int, step: int) -> np.ndarray:
        entry = np.frombuffer(
            struct.pack("<4I", self._stream | kind << 21, source | to << 16, token, 0), np.uint8
        ).reshape(1, 16)
        return self._device.decode(entry, step)

    def scores(self, step: int, state: tuple[int, int, int]) -> Any:
        began = time.thread_time()
        self._step = step
        raw = self._ask(0, state[1], state[1], 0, step)[0].tobytes()
        self.spent += time.thread_time() - began
        self.looks += 1
        words = struct.unpack_from(f"<{self._k}I", raw, 16)
        found = {w >> 16: ((w & 0xFFFF) - (w << 1 & 0x10000)) * self._unit for w in words}
        found.setdefault(self._blank, struct.unpack_from("<h", raw, 4)[0] * self._unit)
        return self._scores(found)


class _PlainNgram:
    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def begin(self) -> Any:
        return self._scorer.new_state(begin=True)

    def score(self, state: Any, token: int) -> tuple[float, Any]:
        following = self._scorer.new_state()
        return LN_10 * self._scorer.base_score(state, self._scorer.words[token], following), following


def _plain_searches(language: Language, scorer: Scorer, run: _Run, seed: int, streams: int) -> list[tuple[Any, Any]]:
    """Plain searches of the first streams on a table of their own, each with what answers it."""
    plain: Any = checkout.module("sim.decoding")
    unit = run.search.temperature * 2.0 ** -(_LOGIT_BITS + 14)
    options = plain.BeamOptions(width=run.options.width, ngram_scale=_NGRAM_SCALE)
    found = []
    for stream in range(streams):
        device = TableDevice(language, seed, _PLAIN_SLOTS, run.search.k, run.search.stride, unit)
        scoring = _PlainScoring(device, stream, run.model, unit, run.search.k)
        search = plain.BeamSearch(scoring, run.model.blank, run.model.pieces, options, _PlainNgram(scorer))
        found.append((search, scoring))
    return found


class _Reference:
    """The plain search on a few streams of the same table; clocks stop while the table answers."""

    def __init__(self, language: Language, scorer: Scorer, run: _Run, seed: int) -> None:
        self._searches = _plain_searches(language, scorer, run, seed, _PLAIN_STREAMS)
        self.reset_figures()

    def reset_figures(self) -> None:
        """Begin to count."""
        self.busy_s, self.steps = 0.0, 0

    def measure(self, steps: int) -> None:
        """Run so many steps of all streams, one stream at a time."""
        tick = clock_cost()
        for search, scoring in self._searches:
            scoring.spent, scoring.looks = 0.0, 0
            began = time.thread_time()
            for _ in range(steps):
                search.step()
            self.busy_s += time.thread_time() - began - scoring.spent - (scoring.looks + 1) * tick
        self.steps += steps * len(self._searches)


def _peer(
    language: Language, run: _Run, seed: int, ours: float, note: Callable[[str], object]
) -> dict[str, Any] | None:
    """A search that others publish, on the same table."""
    k, stride = run.search.k, run.search.stride
    unit = run.search.temperature * 2.0 ** -(_LOGIT_BITS + 14)
    return compare(
        lambda slots: TableDevice(language, seed, slots, k, stride, unit),
        blank=run.model.blank,
        width=run.options.width,
        k=k,
        unit=unit,
        ours=ours,
        note=note,
    )
