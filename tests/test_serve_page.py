# SPDX-License-Identifier: Apache-2.0
"""The page at `/`: how it is sent, and what it does in a browser."""

from __future__ import annotations

import random
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from chromium import chromium, until
from operating import operated
from recordings import FILES, SHORT, samples
from serving import Running

from gharial.bench.server import first_replies
from gharial.client import Reading, Reply
from gharial.recognise import StateResets, StreamOptions, load
from gharial.serve import ModelSettings
from gharial.serve.keys import new_key
from gharial.serve.page import HEADERS, routes

SPOKEN = FILES[2]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with operated() as server:
        yield server


@pytest.fixture(scope="module")
def address(running: Running) -> str:
    return f"http://localhost:{running.server.port}/"


def offline(path: Path) -> str:
    with load(device="emulator:u50", decoder="beam") as recogniser:
        return recogniser.transcribe(path, StreamOptions(state_resets=StateResets())).text


def fetched(url: str) -> tuple[Any, str]:
    with urllib.request.urlopen(url) as answer:
        return answer.headers, answer.read().decode()


# --- As it is sent -------------------------------------------------------------------------------------------------


def test_every_part_is_there_and_allows_nothing_from_elsewhere(address: str) -> None:
    for path in routes():
        headers, text = fetched(address.rstrip("/") + path)
        policy = headers["Content-Security-Policy"]
        assert policy == HEADERS["Content-Security-Policy"] and "default-src 'none'" in policy
        assert "unsafe" not in policy and "*" not in policy and "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        for link in re.findall(r'(?:src|href|from)\s*[= ]\s*"([^"]+)"', text):
            name = link.removeprefix("./").removeprefix("page/")
            assert link.startswith("#") or f"/page/{name}" in routes(), (path, link)
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+\.\S+", text), path


def test_all_files_of_the_folder_are_sent() -> None:
    folder = Path(__file__).resolve().parent.parent / "host/gharial/serve/page"
    there = {path.name for path in folder.iterdir() if path.suffix not in (".py", "") and path.is_file()}
    assert there == {path.rsplit("/", 1)[-1] or "index.html" for path in routes()}


def test_no_inline_script_or_style(address: str) -> None:
    _, text = fetched(address)
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", text)


def test_what_can_be_operated_has_a_name(address: str) -> None:
    """Buttons have text, fields a label, the live region is one, and pictures have an alternative."""
    _, text = fetched(address)
    for button in re.findall(r"<button[^>]*>(.*?)</button>", text, re.DOTALL):
        assert re.sub(r"<svg.*?</svg>", "", button, flags=re.DOTALL).strip()
    for name in re.findall(r'<(?:input|select) id="(\w+)"', text):
        labelled = f'for="{name}"' in text or re.search(rf'<label[^>]*>[^<]*<select id="{name}"', text)
        assert labelled or re.search(rf'id="{name}"[^>]*aria-label=', text), name
    assert re.search(r'id="final"[^>]*aria-live="polite"', text) and re.search(r'id="partial"[^>]*aria-hidden', text)
    assert all("alt=" in image for image in re.findall(r"<img[^>]*>", text))
    assert '<html lang="en">' in text


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(address: str, scheme: int) -> None:
    """Text against its ground 4.5 to 1, edges of what can be operated 3 to 1 (WCAG 2.2, AA)."""
    _, text = fetched(f"{address}page/page.css")
    block = re.findall(r":root \{(.*?)\}", text, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))

    def ratio(one: str, other: str) -> float:
        high, low = sorted((luminance(colours[one]), luminance(colours[other])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for ground in ("ground", "card"):
        assert all(ratio(ink, ground) >= 4.5 for ink in ("ink", "soft", "accent", "bad"))
        assert all(ratio(edge, ground) >= 3.0 for edge in ("edge", "good", "late"))
    assert ratio("on-accent", "accent") >= 4.5 and ratio("bad", "bad-ground") >= 4.5


# --- In a browser --------------------------------------------------------------------------------------------------


def state(page: Any) -> str:
    return str(page.find_element("tag name", "body").get_attribute("data-state"))


def text(page: Any, name: str) -> str:
    return str(page.find_element("id", name).get_property("textContent")).strip()


def complaints(page: Any) -> list[str]:
    """What the browser has to say against the page: errors of scripts, and what its policy does not allow."""
    return [entry["message"] for entry in page.get_log("browser") if entry["level"] == "SEVERE"]


def shown(page: Any, name: str) -> Any:
    """An element, once it is displayed."""
    element = page.find_element("id", name)
    return element if element.is_displayed() else None


def choose(page: Any, path: Path) -> None:
    """A recording, as if the dialogue had given it."""
    page.find_element("id", "file").send_keys(str(path))


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shipped recording as a microphone hears it: some silence behind it."""
    path = tmp_path_factory.mktemp("microphone") / "spoken.wav"
    soundfile.write(path, np.concatenate([samples(SPOKEN), np.zeros(16000, np.int16)]), 16000)
    return path


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten minutes of speech, which no test hears to the end, however slow the browser."""
    path = tmp_path_factory.mktemp("recording") / "endless.wav"
    soundfile.write(path, np.tile(samples(SPOKEN), 200), 16000)
    return path


def test_a_microphone_is_transcribed(address: str, spoken: Path) -> None:
    """What is on the page are the recording's words; a browser that stutters on a busy machine may try again."""
    wanted = offline(SPOKEN)
    for _ in range(4):
        with chromium(spoken) as page:
            page.get(address)
            page.find_element("id", "microphone").click()
            until(page, lambda page: len(text(page, "final").split()) >= len(wanted.split()) or state(page) == "error")
            assert state(page) == "live", text(page, "error")
            assert int(text(page, "replies")) > 30
            page.find_element("id", "stop").click()
            until(page, lambda page: state(page) == "idle")
            heard = text(page, "final")
            assert complaints(page) == []
        # What comes behind it is a fake microphone's that has run dry, which stutters.
        if heard.split()[: len(wanted.split())] == wanted.split():
            return
    assert heard == wanted


def test_a_recording_by_keyboard_alone(address: str, endless: Path) -> None:
    """Tab to the button, Enter, a file; Escape stops it. Then a whole one: the transcript is as without a server."""
    from selenium.webdriver.common.keys import Keys

    with chromium() as page:
        page.get(address)
        body = page.find_element("tag name", "body")
        until(page, lambda page: page.find_elements("css selector", "#devices li"))
        assert text(page, "streams").startswith("0 of ")
        order = []
        for _ in range(3):
            page.switch_to.active_element.send_keys(Keys.TAB)
            order.append(page.switch_to.active_element.get_attribute("id") or "skip")
        assert order == ["skip", "microphone", "choose"]
        page.execute_script("document.getElementById('file').click = () => { window.asked = true; }")
        page.switch_to.active_element.send_keys(Keys.ENTER)
        assert page.execute_script("return window.asked")
        choose(page, endless)
        until(page, lambda page: state(page) == "error" or int(text(page, "replies")) > 3)
        assert state(page) == "live" and page.switch_to.active_element.get_attribute("id") == "stop"
        body.send_keys(Keys.ESCAPE)
        until(page, lambda page: state(page) == "idle")
        assert page.switch_to.active_element.get_attribute("id") == "choose"
        page.execute_script("document.getElementById('clear').disabled = false")  # whether it had a word already
        page.find_element("id", "clear").click()
        assert page.find_element("id", "hint").is_displayed()
        assert text(page, "final") == "" and text(page, "replies") == "0"

        choose(page, SHORT)
        until(page, lambda page: state(page) == "error" or (state(page) == "idle" and text(page, "final")))
        assert text(page, "error") == "" and text(page, "final") == offline(SHORT)
        assert int(text(page, "replies")) >= len(samples(SHORT)) // 960
        assert text(page, "median").endswith("ms")
        assert "replies" in page.find_element("id", "strip").get_attribute("aria-label")
        assert complaints(page) == []


PAIR = """
    const [kinds, done] = arguments;
    import("/page/speech.js").then(({ Pairing }) => {
        const pairing = new Pairing();
        kinds.forEach((_, frame) => pairing.frame(1000 * frame));
        done(kinds.map((provisional, at) => pairing.reply(provisional, at)));
    }, (error) => done(String(error)));
"""


def test_a_reply_is_that_of_its_frame(address: str, seed: int) -> None:
    """The page counts frames off as `gharial bench server` does, though it does not know what comes next."""
    source = random.Random(seed)
    with chromium() as page:
        page.get(address)
        for _ in range(20):
            beam = source.random() < 0.7
            steps = [source.random() < 0.3 for _ in range(source.randint(1, 30))]
            kinds = [kind for final in steps for kind in ([False, True] if final else [True])] if beam else [False] * 9
            if beam and source.random() < 0.5:
                kinds.append(False)  # a stream's last step has no provisional one
            told = page.execute_async_script(PAIR, kinds)
            latencies = [latency for latency in told if latency is not None]
            empty = (Reading("", 1.0),)
            wanted = first_replies([(at, Reply(0.0, 0.06, kind, empty)) for at, kind in enumerate(kinds)])
            assert [latency + 1000 * frame for frame, latency in enumerate(latencies)] == wanted, kinds


RESAMPLE = """
    const [rate, hertz, done] = arguments;
    globalThis.sampleRate = rate;
    globalThis.AudioWorkletProcessor = class {
        port = { postMessage: (frame) => frames.push(...new Int16Array(frame)) };
    };
    globalThis.registerProcessor = (name, kind) => {
        const capture = new kind();
        const blocks = Math.floor(rate / 128);
        for (let block = 0; block < blocks; block += 1) {
            const sound = Float32Array.from({ length: 128 }, (_, index) =>
                0.5 * Math.sin((2 * Math.PI * hertz * (128 * block + index)) / rate));
            capture.process([[sound]]);
        }
        done(frames);
    };
    const frames = [];
    import(`/page/capture.js?${rate},${hertz}`).catch((error) => done(String(error)));
"""


def test_a_microphone_at_another_rate_is_resampled() -> None:
    """The audio thread's resampling, for browsers without: tones below 7 kHz stay, none above 9 kHz comes through."""
    with operated() as server, chromium() as page:
        page.get(f"http://localhost:{server.server.port}/")
        for rate, hertz in ((48000, 440), (48000, 6500), (44100, 3000), (44100, 10000), (48000, 12000), (16000, 5000)):
            frames = page.execute_async_script(RESAMPLE, rate, hertz)
            assert isinstance(frames, list), frames
            heard = np.array(frames) / 32768
            assert len(heard) % 960 == 0 and len(heard) > 14000
            wanted = 0.5 * np.sin(2 * np.pi * hertz * np.arange(len(heard)) / 16000) if hertz < 8000 else 0.0
            error = np.abs(heard - wanted)[200:].max()
            assert error < 0.01, (rate, hertz, error)


def test_what_the_browser_cannot_decode(address: str, tmp_path: Path) -> None:
    path = tmp_path / "letter.wav"
    path.write_text("no sound")
    with chromium() as page:
        page.get(address)
        choose(page, path)
        until(page, lambda page: state(page) == "error")
        assert "letter.wav" in text(page, "error") and "cannot decode" in text(page, "error")
        choose(page, SHORT)  # and goes on
        until(page, lambda page: state(page) == "idle" and text(page, "final"))
        assert not page.find_element("id", "error").is_displayed()


def test_a_server_that_is_full_and_one_that_is_gone(endless: Path) -> None:
    with operated(max_connections=1, drain_s=0.0) as server, chromium() as page:
        page.get(f"http://localhost:{server.server.port}/")
        taken = server.connect()
        choose(page, SHORT)
        until(page, lambda page: state(page) == "error")
        assert "The server is full" in text(page, "error")
        taken.close()
        until(page, lambda page: not server.server.clients)
        choose(page, endless)
        until(page, lambda page: state(page) == "live" and int(text(page, "replies")) > 3)
        server.do(server.server.stop())
        until(page, lambda page: state(page) == "error")
        assert "server" in text(page, "error")
        choose(page, SHORT)
        until(page, lambda page: "The server is gone" in text(page, "error"))


def test_a_server_that_asks_for_a_key(tmp_path: Path) -> None:
    key, line = new_key("page")
    keys = tmp_path / "keys"
    keys.write_text(line + "\n")
    with operated(api_keys=str(keys)) as server, chromium() as page:
        page.get(f"http://localhost:{server.server.port}/")
        field = until(page, lambda page: shown(page, "key"))
        choose(page, SHORT)
        until(page, lambda page: state(page) == "error")
        assert "key" in text(page, "error")
        field.send_keys("wrong\n")
        choose(page, SHORT)
        until(page, lambda page: "does not know this key" in text(page, "error"))
        field.clear()
        field.send_keys(f"{key}\n")
        choose(page, SHORT)
        until(page, lambda page: state(page) == "idle" and text(page, "final"))
        until(page, lambda page: page.find_elements("css selector", "#devices li"))
        page.refresh()  # it is remembered for the tab
        until(page, lambda page: page.find_elements("css selector", "#devices li"))


def test_a_choice_of_models() -> None:
    models = (ModelSettings(version="1"), ModelSettings(version="2"), ModelSettings(name="other"))
    with operated(models=models) as server, chromium() as page:
        page.get(f"http://localhost:{server.server.port}/")
        choice = until(page, lambda page: shown(page, "model"))
        assert [option.text for option in choice.find_elements("tag name", "option")] == [
            "general 1",
            "general 2",
            "other",
        ]
        choice.send_keys("other")
        opened = []
        server.server.watcher.opened = lambda stream: opened.append(stream.model.name)  # type: ignore[method-assign]
        choose(page, SHORT)
        until(page, lambda page: state(page) == "idle" and text(page, "final"))
        assert opened == ["other/1"]
