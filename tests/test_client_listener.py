# SPDX-License-Identifier: Apache-2.0
"""A listener on connections that are lost: what is sent again, what is not, and when it gives up."""

from __future__ import annotations

import queue
import random
from collections.abc import Callable, Iterator

import pytest

from gharial.client.listener import KEPT_S, MARGIN_S, Found, Heard, Listener, Lost
from gharial.client.pace import FRAME_BYTES, FRAME_S
from gharial.client.protocol import Reading, Reply
from gharial.errors import GharialError, ServerError


def frame(number: int) -> bytes:
    return number.to_bytes(2, "little") * (FRAME_BYTES // 2)


class Link:
    """A connection: `answer` makes of each frame its replies or an error that ends it, `rest` is told at the end."""

    def __init__(
        self, answer: Callable[[int], list[Reply] | ServerError], rest: Callable[[], list[Reply]] = list
    ) -> None:
        self.answer, self.rest = answer, rest
        self.heard: list[int] = []
        self.closed = False
        self._replies: queue.SimpleQueue[Reply | ServerError | None] = queue.SimpleQueue()

    def send(self, samples: bytes) -> None:
        self.heard.append(int.from_bytes(samples[:2], "little"))
        found = self.answer(len(self.heard) - 1)
        for reply in [found] if isinstance(found, ServerError) else found:
            self._replies.put(reply)

    def end(self) -> None:
        for reply in self.rest():
            self._replies.put(reply)
        self._replies.put(None)

    def __iter__(self) -> Iterator[Reply]:
        while (reply := self._replies.get()) is not None:
            if isinstance(reply, ServerError):
                raise reply
            yield reply

    def close(self) -> None:
        self.closed = True


def reply(step: int, text: str, provisional: bool = False) -> Reply:
    return Reply(step * FRAME_S, (step + 1) * FRAME_S, provisional, (Reading(text, 1.0),))


LOST = ServerError("the connection was lost", again=True)


class Clock:
    """Time that goes by a wait and more at every look, so that waiting takes none."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 6.0
        return self.now


def test_nothing_lost_every_frame_is_sent_once() -> None:
    links = [Link(lambda at: [reply(at, f" {at}")])]
    listener = Listener(map(frame, range(50)), lambda: links[-1])  # type: ignore[arg-type,return-value]
    events = list(listener)
    assert [event.reply.text for event in events if isinstance(event, Heard)] == [f" {at}" for at in range(50)]
    assert links[0].heard == list(range(50)) and links[0].closed
    assert listener.audio_s == pytest.approx(50 * FRAME_S)


def test_a_new_stream_begins_behind_the_last_final_text() -> None:
    """Ten frames are final, five more were shown: the next stream hears those five and all that follows."""

    def first(at: int) -> list[Reply] | ServerError:
        return LOST if at == 15 else [reply(at, f" {at}", at >= 10)]

    links: list[Link] = []

    def connect() -> Link:
        links.append(Link(first if not links else lambda at: [reply(at, " again")]))
        return links[-1]

    listener = Listener(map(frame, range(40)), connect, clock=Clock())  # type: ignore[arg-type]
    events = list(listener)
    assert [type(event) for event in events if not isinstance(event, Heard)] == [Lost, Found]
    (found,) = [event for event in events if isinstance(event, Found)]
    assert found.start_s == pytest.approx(10 * FRAME_S) and found.dropped_s == 0
    assert links[1].heard == list(range(10, 40))
    later = [event.reply for event in events if isinstance(event, Heard)][15:]
    assert later[0].start == pytest.approx(10 * FRAME_S)
    assert later[-1].end == pytest.approx(40 * FRAME_S)


def test_silence_is_heard_again_for_a_while() -> None:
    def first(at: int) -> list[Reply] | ServerError:
        return LOST if at == 99 else [reply(at, "", True)]

    links: list[Link] = []

    def connect() -> Link:
        links.append(Link(first if not links else lambda at: []))
        return links[-1]

    list(Listener(map(frame, range(120)), connect, clock=Clock()))  # type: ignore[arg-type]
    assert links[1].heard == list(range(99 - round(MARGIN_S / FRAME_S), 120))


def test_any_losses_no_final_text_twice_and_none_left_out(seed: int) -> None:
    """Each frame is a word. A server knows a word for sure some frames later, and may go at any time."""
    source = random.Random(seed)
    count, links = source.randint(20, 200), list[Link]()
    delay = source.randint(0, 6)

    def sure(link: Link, at: int) -> list[Reply]:
        text = f" {link.heard[at]}"
        return [Reply(at * FRAME_S, (at + 1) * FRAME_S, False, (Reading(text, 1.0),))]

    def words(link: Link, at: int) -> list[Reply]:
        shown = "".join(f" {word}" for word in link.heard[max(0, at - delay + 1) :])
        return (sure(link, at - delay) if at >= delay else []) + [reply(at, shown, True)]

    def rest(link: Link) -> list[Reply]:
        count = len(link.heard)
        return [told for at in range(max(0, count - delay), count) for told in sure(link, at)]

    def connect() -> Link:
        last = source.randint(1, 60) if len(links) < 5 else 10**6
        link = Link(lambda at: LOST if at == last else words(link, at), lambda: rest(link))
        links.append(link)
        return link

    events = list(Listener(map(frame, range(count)), connect, clock=Clock()))  # type: ignore[arg-type]
    final = "".join(event.reply.text for event in events if isinstance(event, Heard) and not event.reply.provisional)
    assert final.split() == [str(word) for word in range(count)]


def test_more_than_is_kept_is_lost_and_told() -> None:
    frames = round(KEPT_S / FRAME_S) + 100
    links: list[Link] = []
    source: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    for number in range(10):
        source.put(frame(number))

    def connect() -> Link:
        if not links:
            links.append(Link(lambda at: LOST if at == 9 else [reply(at, " x")]))
        else:
            links.append(Link(lambda at: []))
        return links[-1]

    class Later(Clock):
        """While the listener waits, much is spoken."""

        def __call__(self) -> float:
            if links and links[0].closed and self.now < 1e6:
                for number in range(10, frames):
                    source.put(frame(number))
                source.put(None)
                self.now = 1e6
                self.looks = 0
            if self.now >= 1e6:  # until all of it was taken
                self.looks += 1
                return self.now + (1e3 if self.looks > frames + 5 else 0)
            return self.now

    listener = Listener(iter(source.get, None), connect, retry_s=1e9, clock=Later())  # type: ignore[arg-type]
    (found,) = [event for event in listener if isinstance(event, Found)]
    kept = round(KEPT_S / FRAME_S)
    assert links[1].heard == list(range(frames - kept, frames))
    assert found.dropped_s == pytest.approx((frames - kept - 9) * FRAME_S)


def test_it_gives_up_in_time() -> None:
    links = [Link(lambda at: LOST)]

    def connect() -> Link:
        if len(links) < 2:
            links.append(links[0])
            return links[0]
        raise ServerError("no server answers there", again=True)

    events = []
    with pytest.raises(ServerError, match="no server answers"):
        for event in Listener(map(frame, range(9)), connect, retry_s=90.0, clock=Clock()):  # type: ignore[arg-type]
            events.append(event)  # noqa: PERF402 - those before the error
    waits = [event.wait_s for event in events if isinstance(event, Lost)]
    assert waits[:3] == [0.5, 1.0, 2.0] and len(waits) < 12


@pytest.mark.parametrize("error", [ServerError("no such model", code=400), LOST], ids=["refused", "lost"])
def test_what_is_not_tried_again(error: ServerError) -> None:
    link = Link(lambda at: error)
    with pytest.raises(ServerError) as raised:
        list(Listener(map(frame, range(9)), lambda: link, retry_s=0.0))  # type: ignore[arg-type,return-value]
    assert raised.value is error


def test_a_server_that_is_not_there_is_an_error_at_once() -> None:
    def connect() -> Link:
        raise LOST

    with pytest.raises(ServerError):
        list(Listener(map(frame, range(9)), connect, retry_s=1e9))  # type: ignore[arg-type]


def test_a_source_that_fails_is_told_behind_what_was_heard() -> None:
    def source() -> Iterator[bytes]:
        yield frame(0)
        raise GharialError("unplugged")

    link = Link(lambda at: [reply(at, " word")])
    events = []
    with pytest.raises(GharialError, match="unplugged"):
        for event in Listener(source(), lambda: link):  # type: ignore[arg-type,return-value]
            events.append(event)  # noqa: PERF402 - those before the error
    assert len(events) == 1


def test_stop_ends_the_audio_and_waits_for_the_rest() -> None:
    def source() -> Iterator[bytes]:
        yield frame(0)
        listener.stop()
        yield frame(1)

    link = Link(lambda at: [reply(at, " word")])
    listener = Listener(source(), lambda: link)  # type: ignore[arg-type,return-value]
    assert len(list(listener)) == 1
    assert link.heard == [0]
