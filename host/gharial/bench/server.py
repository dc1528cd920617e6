# SPDX-License-Identifier: Apache-2.0
"""A server under real-time streams: latencies, transcripts, word errors, CPU time of either side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gharial.audio import open_audio, read_all
from gharial.bench.manifest import Utterance
from gharial.bench.server_load import Heard, Load
from gharial.bench.server_process import CpuSeconds
from gharial.bench.server_words import Endings, appearances, perceived
from gharial.bench.words import word_count, word_error_rate, word_errors
from gharial.client.pace import FRAME_BYTES, frames, pcm
from gharial.client.protocol import Caption, Reply
from gharial.errors import GharialError

PARTS = (0.5, 0.9, 0.99)
_MS = 1e3
_SHOWN = 5  # transcripts that differ, listed
_NORMAL = 1000


@dataclass
class Observed:
    """What a run saw, for pictures.

    Attributes:
        sent: (n,) seconds from the begin of the run at which each answered frame was sent, rising.
        latencies: (n,) seconds from then to its reply.
        perceived: (m,) seconds from each word's end to its being on the screen.
    """

    sent: np.ndarray = field(default_factory=lambda: np.empty(0))
    latencies: np.ndarray = field(default_factory=lambda: np.empty(0))
    perceived: np.ndarray = field(default_factory=lambda: np.empty(0))


def read_samples(utterance: Utterance) -> np.ndarray:
    """A recording as a client sends it: (n,) int16 at 16 kHz."""
    with open_audio(utterance.path) as source:
        return np.frombuffer(pcm(read_all(source)), "<i2").astype(np.int16)


def bench_server(
    url: str,
    cpu: CpuSeconds,
    utterances: Sequence[Utterance],
    samples: Sequence[np.ndarray],
    offline: Sequence[str] | None,
    endings: Endings,
    *,
    streams: int,
    seconds: float,
    seed: int,
    headers: dict[str, str] | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
    observe: Callable[[Observed], object] = lambda observed: None,
) -> dict[str, Any]:
    """Stream a set's utterances to a server in real time, many at a time.

    Args:
        url: address of a stream.
        cpu: tells the server's CPU time.
        utterances, samples: of the set.
        offline: each utterance's transcript without a server, with the same options; None not to compare.
        endings: of spoken words.
        streams, seconds, seed: as of `Load`.
        headers: of each request.
        progress: called with the seconds done and in all.
        observe: called with what pictures are drawn of.

    Returns:
        streams, most_streams (open at the same time), frames, cl50_ms, cl90_ms, cl99_ms, cl_max_ms; upl_p50_ms,
        upl_p90_ms, upl_p99_ms, upl_mean_ms, upl_words, upl_source; words, errors, wer (a fraction); utterances
        (streamed), set_utterances, mismatches, mismatched (some of them), unanswered (frames without a reply), failed
        (streams that did not end well), failures (some of them);
        seconds, client_cpu_s, server_cpu_s, client_late_ms (99 % of frames were sent no later than that after their
        time), seed. Quantities that there are no data for are None.

    Raises:
        ServerError: the server does not answer, refuses connections or falls silent.
    """
    load = Load(url, headers or {}, [list(frames([sound])) for sound in samples], streams, seconds, seed)
    server_before, client_before, begun = cpu(), time.process_time(), time.perf_counter()
    heard = load.run(progress)
    took, client = time.perf_counter() - begun, time.process_time() - client_before
    server_after = cpu()
    server = None if server_before is None or server_after is None else server_after - server_before
    sums = _Sums(utterances, samples, offline, endings)
    for one in heard:
        sums.add(one)
    if sums.unreadable:
        raise GharialError(f"a reply that is none of this interface: {sums.unreadable}")
    observed = sums.observed(begun)
    observe(observed)
    words, errors = sums.words, sums.errors
    return {
        "streams": streams,
        "most_streams": load.most,
        "frames": len(observed.latencies),
        **_quantiles("cl{}_ms", observed.latencies),
        "cl_max_ms": _ms(observed.latencies.max()) if len(observed.latencies) else None,
        **_quantiles("upl_p{}_ms", observed.perceived),
        "upl_mean_ms": _ms(observed.perceived.mean()) if len(observed.perceived) else None,
        "upl_words": len(observed.perceived),
        "upl_source": endings.source,
        "words": words,
        "errors": errors,
        "wer": word_error_rate(errors, words),
        "utterances": len(heard),
        "set_utterances": len(utterances),
        "mismatches": None if offline is None else len(sums.mismatched),
        "mismatched": sums.mismatched[:_SHOWN],
        "unanswered": sums.unanswered,
        "failed": len(sums.failures),
        "failures": sums.failures[:_SHOWN],
        "seconds": round(took, 3),
        "client_cpu_s": round(client, 3),
        "server_cpu_s": None if server is None else round(server, 3),
        "client_late_ms": _ms(np.quantile(load.late, PARTS[-1], method="inverted_cdf")) if load.late else None,
        "seed": seed,
    }


class _Sums:
    """What the streams of a run come to."""

    def __init__(
        self,
        utterances: Sequence[Utterance],
        samples: Sequence[np.ndarray],
        offline: Sequence[str] | None,
        endings: Endings,
    ) -> None:
        self._utterances, self._samples, self._offline, self._endings = utterances, samples, offline, endings
        self._spoken: dict[int, list[Any]] = {}
        self._sent: list[float] = []
        self._latencies: list[float] = []
        self._perceived: list[float] = []
        self.words = self.errors = self.unanswered = 0
        self.mismatched: list[dict[str, str]] = []
        self.failures: list[dict[str, Any]] = []
        self.unreadable = ""

    def add(self, heard: Heard) -> None:
        utterance = self._utterances[heard.utterance]
        try:
            replies = [(at, Reply.parse(message)) for at, message in heard.replies]
        except GharialError as error:
            self.unreadable = str(error)
            return
        whole = len(self._samples[heard.utterance]) * 2 // FRAME_BYTES
        answered = first_replies(replies)
        sent = heard.sent[:whole]
        for begun, got in zip(sent, answered, strict=False):
            self._sent.append(begun)
            self._latencies.append(got - begun)
        if heard.code != _NORMAL:
            self.failures.append({"file": utterance.name, "code": heard.code, "reason": heard.reason})
            return
        self.unanswered += max(0, len(sent) - len(answered))
        caption = Caption()
        for _, reply in replies:
            caption.take(reply)
        text = " ".join(caption.final.split())
        self.words += word_count(utterance.transcript)
        self.errors += word_errors(utterance.transcript, text)
        if self._offline is not None and text != self._offline[heard.utterance]:
            wanted = self._offline[heard.utterance]
            self.mismatched.append({"file": utterance.name, "offline": wanted, "served": text})
        if heard.utterance not in self._spoken:
            self._spoken[heard.utterance] = self._endings.words(utterance, self._samples[heard.utterance])
        self._perceived += perceived(self._spoken[heard.utterance], appearances(replies), heard.begun)

    def observed(self, begun: float) -> Observed:
        sent, latencies = np.array(self._sent), np.array(self._latencies)
        order = np.argsort(sent, kind="stable")
        return Observed(sent[order] - begun, latencies[order], np.array(self._perceived))


def first_replies(replies: Sequence[tuple[float, Reply]]) -> list[float]:
    """When the first reply to each frame came.

    A frame has one reply, or a final one and a provisional one behind it. What only sends final ones (a greedy
    decoder) sends one a frame.
    """
    if not any(reply.provisional for _, reply in replies):
        return [at for at, _ in replies]
    found: list[float] = []
    first: float | None = None
    for at, reply in replies:
        first = at if first is None else first
        if reply.provisional:
            found.append(first)
            first = None
    return found if first is None else [*found, first]


def _quantiles(name: str, values: np.ndarray) -> dict[str, float | None]:
    return {
        name.format(round(100 * part)): _ms(np.quantile(values, part, method="inverted_cdf")) if len(values) else None
        for part in PARTS
    }


def _ms(seconds: float) -> float:
    return round(float(seconds) * _MS, 3)
