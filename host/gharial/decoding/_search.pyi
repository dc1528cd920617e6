# SPDX-License-Identifier: Apache-2.0
"""The C extension of core/: beam search over many streams."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from typing_extensions import Buffer

class Trie:
    def __init__(
        self,
        first: np.ndarray,
        letters: np.ndarray,
        targets: np.ndarray,
        suffix: np.ndarray,
        gain: np.ndarray,
        at_risk: np.ndarray,
        /,
    ) -> None: ...

class Ngram:
    def __init__(
        self,
        data: Buffer,
        trie: bool,
        words: int,
        vocabulary: int,
        places: int,
        unigrams: int,
        stride: int,
        bits: tuple[int, int, int],
        tables: tuple[tuple[int, ...], ...],
        /,
    ) -> None: ...
    def word(self, text: bytes, /) -> int: ...
    def begin(self, word: int, /) -> bytes: ...
    def score(self, state: bytes, word: int, /) -> tuple[float, bytes]: ...

class Search:
    @property
    def queries(self) -> int: ...
    def __init__(
        self,
        settings: tuple[Any, ...],
        streams: int,
        lanes: int,
        max_entries: int,
        slots: np.ndarray,
        letters: np.ndarray,
        ends: np.ndarray,
        scored: np.ndarray,
        ngram: Ngram | None,
        words: np.ndarray,
        ints: Callable[[Any], np.ndarray],
        /,
    ) -> None: ...
    def open(self, stream: int, trie: Trie | None, prefix: np.ndarray, /) -> None: ...
    def close(self, stream: int, /) -> None: ...
    def use(
        self,
        lane: int,
        entries: np.ndarray,
        ended: np.ndarray,
        tokens: np.ndarray,
        of_entries: Mapping[int, Any],
        of_ended: Mapping[int, Any],
        /,
    ) -> None: ...
    def begin(self, lane: int, streams: Any, encoders: Any, banks: Any, /) -> Any: ...
    def turn(self, lane: int, results: Buffer, stride: int | None = ..., /) -> tuple[Any, Any]: ...
    def feed(self, lane: int, results: Buffer, stride: int | None = ..., /) -> int: ...
    def score(
        self,
        lane: int,
        function: Callable[[Any, Any, Any], float],
        states: list[Any],
        words: list[Any],
        unit: float,
        /,
    ) -> None: ...
    def ask(self, lane: int, /) -> Any: ...
    def cancel(self, lane: int, /) -> None: ...
    def outcomes(self, lane: int, /) -> list[tuple[int, int, tuple[tuple[int, int, float], ...]]]: ...
    def ended(self, lane: int, /) -> Any: ...
    def kept(
        self, stream: int, most: int, by_mean: bool, /
    ) -> list[tuple[float, float, int, tuple[tuple[int, int, float], ...]]]: ...
    def grown(self) -> int: ...
    def pools(self) -> tuple[tuple[int, int], ...]: ...
