# SPDX-License-Identifier: Apache-2.0
"""What `bench decode` compares with hears the same table as our search: it says the same where their rules agree."""

from __future__ import annotations

import importlib
import math
import sys

import numpy as np
import pytest
from tests.decoding_device import Answers, FakeDevice, History, Table
from tests.test_decoding_search import run_step

from gharial.bench import decode_peer
from gharial.bench.decode_peer import PeerStream
from gharial.decoding import BeamSearch, DecoderOptions, Hypothesis, SearchModel

CLASSES, BLANK, BITS = 33, 32, 8
STREAM = 5


class Steps:
    """The fake device as the peer asks it."""

    def __init__(self, answers: Answers, seed: int) -> None:
        self._device, self._seed = FakeDevice(answers, range(65536)), seed

    def decode(self, entries: np.ndarray, step: int) -> np.ndarray:
        self._device.encoded[STREAM, 0] = self._seed, step
        return np.frombuffer(self._device.decode(entries), np.uint8).reshape(len(entries), -1)


def both(table: Table, width: int, steps: int, seed: int = 0) -> tuple[list[Hypothesis], list[int], PeerStream]:
    """Hypotheses of ours, tokens of the peer's best, and the peer's stream."""
    pytest.importorskip("torch")
    if importlib.util.find_spec("torchaudio") is None:
        pytest.skip("the peer, torchaudio, is not installed")
    options = DecoderOptions(
        width, temperature=1.0, topk_threshold=-1, score_threshold=-1, final_limit_s=-1, max_symbols=8
    )
    # Letters that make no text in two ways: ours merges texts, the peer sequences of tokens.
    model = SearchModel([*(chr(ord("a") + at) for at in range(BLANK)), ""], BLANK, BITS)
    slots = range(4 * (options.expansions + width))
    search = BeamSearch(model, options, streams=1, slots=slots)
    answers = Answers(table, search.k, search.named, search.temperature, BITS)
    device = FakeDevice(answers, slots)
    peer = PeerStream(Steps(answers, seed), STREAM, BLANK, width, search.k, 2.0**-BITS)
    search.open(0)
    done, finals = {0: 0}, []
    for _ in range(steps):
        finals += run_step(search, device, [0], done, {0: seed})[0]
        peer.step()
    found = [one._replace(tokens=(*finals, *one.tokens)) for one in search.best(0, width)]
    return found, peer.best(), peer


def ids(one: Hypothesis) -> list[int]:
    return [token.id for token in one.tokens]


def test_on_a_table_without_doubt(seed: int) -> None:
    def table(of: int, step: int, history: History) -> np.ndarray:
        rng = np.random.default_rng([of, step, len(history), *history])
        logits = rng.integers(-32000, -31000, CLASSES)
        said = step and rng.random() < 0.3
        logits[int(rng.integers(BLANK)) if said else BLANK] = 0
        return logits

    ours, theirs, peer = both(table, 4, 40, seed)
    assert ids(ours[0]) == theirs
    assert peer.busy_s > 0


def test_where_the_likelier_beginning_is_the_wrong_one() -> None:
    """So that hypotheses have the states and outputs that are theirs."""
    rows = {(): {0: 0.55, 1: 0.45}, (1,): {BLANK: 1.0}}

    def table(of: int, step: int, history: History) -> np.ndarray:
        row = rows.get(history, {BLANK: 0.3, 2: 0.3, 3: 0.4})
        return np.array([round(256 * math.log(row.get(at, 1e-12))) for at in range(CLASSES)])

    for width in (2, 4, 16):
        ours, theirs, _ = both(table, width, 3)
        assert ids(ours[0]) == theirs == [1]
    ours, theirs, _ = both(table, 1, 3)
    assert ids(ours[0])[0] == theirs[0] == 0


def test_probabilities_of_all_that_may_have_been_said(seed: int) -> None:
    """Two tokens, three steps: the beam has room for all 15 texts and more, so each is summed over all its ways."""
    steps, width = 3, 31

    def table(of: int, step: int, history: History) -> np.ndarray:
        logits = np.full(CLASSES, -32768)
        if len(history) > step or not set(history) <= {0, 1}:
            logits[BLANK] = 0
            return logits
        rng = np.random.default_rng([of, step, len(history), *history])
        row = rng.uniform(0.25, 0.4, 3)
        logits[[0, 1, BLANK]] = np.rint(256 * np.log(row / row.sum()))
        return logits

    ours, theirs, peer = both(table, width, steps, seed)
    scores = {tuple(ids(one)): one.score for one in ours if set(ids(one)) <= {0, 1} and len(one.tokens) <= steps}
    assert len(scores) == 2**4 - 1
    assert peer._hypotheses is not None
    others = {tuple(tokens[1:]): score for tokens, _, _, score in peer._hypotheses}
    assert {text: others[text] for text in scores} == pytest.approx(scores, abs=1e-3)
    # The peer divides by the number of tokens and two.
    assert tuple(theirs) == max(scores, key=lambda text: scores[text] / (len(text) + 2))


def test_where_there_is_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told why, and nothing else is missing."""
    pytest.importorskip("torch")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    notes: list[str] = []
    before = set(sys.modules)
    found = decode_peer.compare(
        lambda slots: pytest.fail("no table is wanted"), blank=4, width=2, k=2, unit=1.0, ours=1.0, note=notes.append
    )
    assert found is None and len(notes) == 1 and "pip install gharial[peer]" in notes[0]
    assert set(sys.modules) == before
