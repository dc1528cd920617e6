# SPDX-License-Identifier: Apache-2.0
"""The beam search over many streams, in rounds of DECODE entries and results; a typed layer over the C core."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gharial.decoding._search import Ngram, Search
from gharial.decoding.faults import Fault, failure
from gharial.decoding.keywords import Keywords
from gharial.decoding.options import DecoderOptions, EosStrategy
from gharial.errors import BadInput, BadRequest, GharialError
from gharial.isa.commands import Mode, decode_result_bytes

ENTRY_BYTES = 16
MAX_LISTED = 33
_MOST_VIEWS = 4096
Ints = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class Token(NamedTuple):
    """A token: id, encoder step, probability when it was chosen."""

    id: int
    step: int
    confidence: float


class Hypothesis(NamedTuple):
    """What a stream may have said.

    Attributes:
        score: natural log.
        mean: score divided by one more than the number of all its tokens.
        slot: the device's prediction slot with the state behind it, -1 before the first step.
        tokens: those that are not final.
    """

    score: float
    mean: float
    slot: int
    tokens: tuple[Token, ...]


class Outcome(NamedTuple):
    """The end of a stream's step.

    Attributes:
        stream: its number.
        finals: tokens that have become final.
        fault, error: why the stream failed, NONE and None if it did not. A stream that failed must be opened anew.
    """

    stream: int
    finals: tuple[Token, ...]
    fault: Fault = Fault.NONE
    error: GharialError | None = None


ENDED = np.dtype([("stream", "<i4"), ("fault", "<i4"), ("first", "<i4"), ("count", "<i4")])
FINAL = np.dtype([("id", "<i4"), ("step", "<i4"), ("confidence", "<f8")])


class Ended(NamedTuple):
    """Outcomes as arrays; views that the lane's next call writes over.

    Attributes:
        streams: of ENDED: number, fault (as Fault), and which tokens are its new finals: `count` from `first` on.
        tokens: of FINAL.
    """

    streams: npt.NDArray[np.void]
    tokens: npt.NDArray[np.void]


class NgramScorer(Protocol):
    """An n-gram as the search asks it (gharial.ngram.NgramModel is one).

    If it has an attribute `native` (gharial.decoding._search.Ngram) that is not None, the core scores from that alone.
    """

    @property
    def words(self) -> Sequence[str | None]:
        """By class: its word, None if it does not score and leaves the state as it is."""

    @property
    def base_score(self) -> Callable[[Any, Any, Any], float]:
        """(state, word, following) -> log10 p(word | state); writes the state behind the word to `following`."""

    def new_state(self, begin: bool = False) -> Any:
        """A state to be written to, or that of a sentence's begin."""


@dataclass(frozen=True)
class SearchModel:
    """What the search has to know of a model.

    Attributes:
        pieces: text of each class with word marks, blank's being "".
        blank: class.
        logit_bits: fraction bits of a logit (the program's).
        eos: end-of-sequence token, None if the model has none.
        user_tokens: those that no n-gram scores.
    """

    pieces: Sequence[str]
    blank: int
    logit_bits: int
    eos: int | None = None
    user_tokens: frozenset[int] = frozenset()


class _Entries(dict[int, Bytes]):
    """A lane's entries, by how many there are: views that are made once."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.whole = np.zeros((most, ENTRY_BYTES), np.uint8)

    def __missing__(self, count: int) -> Bytes:
        self[count] = self.whole[:count]
        return self[count]


class _Outcomes(dict[int, Ended]):
    """A lane's outcomes, by how many streams and tokens there are (streams << 32 | tokens); so too."""

    def __init__(self, streams: int, tokens: int) -> None:
        super().__init__()
        self.streams, self.tokens = np.zeros(streams, ENDED), np.zeros(tokens, FINAL)

    def __missing__(self, counts: int) -> Ended:
        if len(self) == _MOST_VIEWS:
            self.clear()
        self[counts] = Ended(self.streams[: counts >> 32], self.tokens[: counts & 0xFFFFFFFF])
        return self[counts]

    def more(self, count: int) -> Bytes:
        """Room for at least so many tokens: more than ever before."""
        self.clear()
        self.tokens = np.zeros(2 * count, FINAL)
        return self.tokens.view(np.uint8)


def _ints(given: Any) -> Ints:
    return np.asarray(given, np.int32)


class BeamSearch:
    """Search over `streams` streams; docs/decoding.md, section 8, has the protocol.

    Args:
        model: the model.
        options: settings, the same for all streams.
        streams: how many there can be; their numbers are 0 to streams - 1.
        slots: the device's prediction slots that the search may use, each number once.
        lanes: rounds that can be on their way at once.
        max_entries: entries of one command.
        mode: what DECODE is asked to list.
        ngram: an n-gram over the pieces, or None.

    Attributes:
        mode, k, named, temperature: what a DECODE command of this search has in these fields.
        stride: bytes of a result.

    Raises:
        BadInput: options that do not fit the model.
    """

    def __init__(
        self,
        model: SearchModel,
        options: DecoderOptions,
        *,
        streams: int,
        slots: Sequence[int] | Ints,
        lanes: int = 1,
        max_entries: int = 64,
        mode: Mode = Mode.TOP_K,
        ngram: NgramScorer | None = None,
    ) -> None:
        classes = len(model.pieces)
        if len(set(map(int, slots))) != len(slots):
            raise BadRequest("a prediction slot is named twice")
        self.options, self.mode, self.temperature = options, mode, options.inverse_temperature
        self.k, self.named = asked_for(model, options, mode)
        self.stride = decode_result_bytes(mode, self.k, classes)
        native: Ngram | None = getattr(ngram, "native", None)
        self._ngram, self._states = ngram if native is None else None, list[Any]()
        self._words = [] if ngram is None else list(ngram.words)
        scored = [word is not None for word in self._words] if ngram else [False] * classes
        settings = (
            *(options.width, options.max_symbols, options.expansions),
            *(options.topk_threshold, options.score_threshold, options.final_limit_s),
            *(options.blank_penalty, options.ngram_scale or 0.0, ngram is not None, options.merge_lone_marks),
            *(list(EosStrategy).index(options.eos), options.eos_alpha),
            math.log(options.eos_beta) if options.eos_beta > 0 else -math.inf,
            *(classes, model.blank, -1 if len(self.named) == 1 else self.named[1]),
            *(self.temperature, model.logit_bits, int(mode), self.k),
        )
        self._core = Search(
            settings,
            streams,
            lanes,
            max_entries,
            np.asarray(slots, np.int32),
            np.array([ord(letter) for letter in "".join(model.pieces)], np.uint32),
            np.cumsum([len(piece) for piece in model.pieces]).astype(np.int32),
            np.array([scored[at] and at not in model.user_tokens for at in range(classes)], np.uint8),
            native,
            # Its words' numbers, once and for all.
            np.array([native.word(word.encode()) if word else 0 for word in self._words] if native else [], np.uint32),
            _ints,
        )
        self._entries = [_Entries(max_entries) for _ in range(lanes)]
        self._ended = [_Outcomes(streams, 4 * min(streams, 1024)) for _ in range(lanes)]
        for lane in range(lanes):
            # The arrays that the core writes to.
            entries, ended = self._entries[lane], self._ended[lane]
            written = entries.whole, ended.streams.view(np.uint8), ended.tokens.view(np.uint8)
            self._core.use(lane, *written, entries, ended)
        self._grow()
        # What every round calls is the core's own where it can be: a function of Python's in between costs a fifteenth.
        self.__dict__["begin"] = self._core.begin
        if self._ngram is None:
            self.__dict__["turn"] = self._core.turn

    def open(self, stream: int, keywords: Keywords | None = None, prefix: Sequence[int] = ()) -> None:
        """Begin a stream, or begin it anew; results on their way for what it was are then nobody's.

        Args:
            stream: its number.
            keywords: those boosted in it.
            prefix: tokens that the prediction network hears before the first step.
        """
        self._core.open(stream, keywords.trie if keywords else None, np.array(prefix, np.int32))

    def close(self, stream: int) -> None:
        """End a stream: it holds nothing any more but the slots of results on their way."""
        self._core.close(stream)

    def begin(
        self, lane: int, streams: Sequence[int] | Ints, encoders: Sequence[int] | Ints, banks: Sequence[int] | Ints
    ) -> Bytes:
        """Begin a step of streams on a lane that is free.

        Args:
            lane: its number.
            streams: numbers of streams between two steps.
            encoders, banks: where each one's output of joint_enc lies.

        Returns:
            Entries of a DECODE command, (n, 16) bytes; a view that the lane's next call writes over.
        """
        return self._core.begin(lane, streams, encoders, banks)

    def feed(self, lane: int, results: Any, stride: int | None = None) -> Bytes:
        """Take the results of a lane's entries, in their order, as the device wrote them.

        Args:
            lane: its number.
            results: bytes.
            stride: from one result to the next; None: they follow one another.

        Returns:
            As `begin`: the next entries; none if the steps of all its streams have ended.
        """
        core, ngram = self._core, self._ngram
        if core.feed(lane, results, stride) and ngram is not None:
            self._grow()
            try:
                core.score(lane, ngram.base_score, self._states, self._words, math.log(10.0))
            except BaseException:
                core.cancel(lane)
                raise
        return core.ask(lane)

    def turn(self, lane: int, results: Any, stride: int | None = None) -> tuple[Bytes, Ended]:
        """`feed`, and `ended` after it, in one call."""
        if self._ngram is None:
            return self._core.turn(lane, results, stride)
        return self.feed(lane, results, stride), self.ended(lane)

    def ended(self, lane: int) -> Ended:
        """What `outcomes` tells, without an object for each stream and token."""
        return self._core.ended(lane)

    def outcomes(self, lane: int) -> list[Outcome]:
        """Streams whose step ended, or that failed, in the lane's last `begin` or `feed`."""
        return [
            Outcome(stream, tuple(map(Token._make, finals)), Fault(fault), failure(fault) if fault else None)
            if finals or fault
            else Outcome(stream, ())
            for stream, fault, finals in self._core.outcomes(lane)
        ]

    def cancel(self, lane: int) -> None:
        """Give up a lane whose command failed: its streams fail and must be opened anew."""
        self._core.cancel(lane)

    def best(self, stream: int, alternatives: int = 1) -> list[Hypothesis]:
        """The best hypotheses of a stream between two steps, by their means; the first one's tokens are the partial."""
        return [_hypothesis(one) for one in self._core.kept(stream, alternatives, True)]

    def kept(self, stream: int) -> list[Hypothesis]:
        """All of them, in the order in which the next step begins with them."""
        return [_hypothesis(one) for one in self._core.kept(stream, MAX_LISTED, False)]

    @property
    def queries(self) -> int:
        """Scores that the last `feed` asked the n-gram for."""
        return self._core.queries

    @property
    def grown(self) -> int:
        """How often the search has taken memory since it was made; prefixes of streams apart."""
        return self._core.grown()

    @property
    def free_slots(self) -> int:
        """Prediction slots that nobody holds."""
        return self._core.pools()[0][0]

    @property
    def pools(self) -> dict[str, tuple[int, int]]:
        """(free, all) of what the search keeps in pools."""
        return dict(zip(("slots", "hypotheses", "evaluations", "tokens", "ngrams"), self._core.pools(), strict=True))

    def _grow(self) -> None:
        """A state object for each of the core's n-gram states; the first is the sentence's begin."""
        if self._ngram is None:
            return
        wanted = self._core.pools()[4][1]
        while len(self._states) < wanted:
            self._states.append(self._ngram.new_state(begin=not self._states))


def asked_for(model: SearchModel, options: DecoderOptions, mode: Mode) -> tuple[int, tuple[int, ...]]:
    """(k, named classes) of a search's DECODE commands.

    Raises:
        BadInput: options that do not fit the model.
    """
    strategy = options.eos != EosStrategy.NONE
    if strategy and model.eos is None:
        raise BadInput("the model has no end-of-sequence token", "eos", options.eos, EosStrategy.NONE)
    # A class may be moved out of the list by the penalty or the strategy; blank and end of sequence are named.
    spare = (options.blank_penalty != 0) + strategy
    most = len(model.pieces) // 8 if mode == Mode.FUZZY else len(model.pieces)
    if min(options.width + spare, most) > MAX_LISTED:
        raise BadInput(
            "a result has no room for so many candidates with a blank penalty and an end-of-sequence strategy",
            "width",
            options.width,
            f"{MAX_LISTED - spare} at most",
            "take a smaller width, or leave out one of the two",
        )
    named = (model.blank,) if not strategy or model.eos is None else (model.blank, model.eos)
    return max(1, min(options.width + spare, MAX_LISTED, most)), named


def _hypothesis(one: tuple[float, float, int, tuple[tuple[int, int, float], ...]]) -> Hypothesis:
    score, mean, slot, tokens = one
    return Hypothesis(score, mean, slot, tuple(map(Token._make, tokens)))
