# SPDX-License-Identifier: Apache-2.0
"""`gharial bench server`: what is counted, by hand and on a server; what is written; what is refused."""

from __future__ import annotations

import csv
import json
import socket
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Run
from recordings import FILES, FOLDER, samples
from serving import serving

from gharial.bench import server_csv
from gharial.bench.manifest import Utterance, read_set
from gharial.bench.server import Observed, bench_server, first_replies, read_samples
from gharial.bench.server_load import Load
from gharial.bench.server_words import Endings, SpokenWord, appearances, islands, perceived, read_ctm
from gharial.client import frames, stream_url
from gharial.client.protocol import Reading, Reply
from gharial.errors import BadInput, ServerError


def reply(text: str, provisional: bool) -> Reply:
    return Reply(0.0, 0.06, provisional, (Reading(text, 1.0),))


def test_a_frame_has_one_reply_or_a_final_one_and_a_provisional_one() -> None:
    beam = [(1, True), (2, False), (3, True), (4, True), (5, False), (6, True), (7, False)]
    assert first_replies([(at, reply("", kind)) for at, kind in beam]) == [1, 2, 4, 5, 7]
    assert first_replies([(at, reply("", False)) for at in (1, 2, 3)]) == [1, 2, 3]
    assert first_replies([]) == []


def test_a_word_is_there_from_when_it_is_not_overwritten_any_more() -> None:
    told = [
        (1.0, reply(" on", True)),
        (2.0, reply(" on no", True)),
        (3.0, reply(" on", False)),
        (3.0, reply(" go", True)),
        (4.0, reply("", True)),
        (5.0, reply(" go", True)),
        (6.0, reply(" go left", False)),
    ]
    assert appearances(told) == [("on", 1.0), ("go", 5.0), ("left", 6.0)]
    assert appearances([(1.0, reply(" on", True)), (2.0, reply("", False))]) == []


def test_perceived_latency_is_of_the_words_that_were_heard_right() -> None:
    spoken = [SpokenWord("on", 0.5), SpokenWord("no", 1.5), SpokenWord("go", 2.5)]
    shown = [("on", 100.75), ("up", 101.5), ("go", 103.0)]
    assert perceived(spoken, shown, 100.0) == pytest.approx([0.25, 0.5])


def test_words_end_where_the_sound_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 6))
    sound, ends = [random.normal(0, 20, 4800)], []
    for _ in range(count):
        length = int(random.integers(20, 50)) * 160
        sound += [random.normal(0, 3000, length), random.normal(0, 20, int(random.integers(30, 60)) * 160)]
        ends.append((sum(map(len, sound)) - len(sound[-1])) / 16000)
    audio = np.concatenate(sound).astype(np.int16)
    assert islands(audio, count) == pytest.approx(ends, abs=0.011)
    assert islands(audio, count + 1) == islands(audio, count - 1) == []
    assert islands(audio, 0) == [] and islands(audio[:100], 1) == []


def test_ctm(tmp_path: Path) -> None:
    path = tmp_path / "manifest.ctm"
    path.write_text(";; comment\na.flac 1 0.5 0.25 on\na.flac 1 1 0.5 no 0.9\n\nb 1 0 1 go\n")
    assert read_ctm(path) == {"a.flac": [SpokenWord("on", 0.75), SpokenWord("no", 1.5)], "b": [SpokenWord("go", 1.0)]}
    utterance = Utterance("clips/b.flac", tmp_path / "b.flac", "go", None)
    beside = Endings(tmp_path)
    assert beside.source == "ctm" and beside.words(utterance, np.zeros(1, np.int16)) == [SpokenWord("go", 1.0)]
    assert beside.words(replace(utterance, name="c.flac"), np.zeros(1, np.int16)) == []
    assert Endings(FOLDER).source == "energy" and Endings(FOLDER, path).source == "ctm"
    path.write_text("a 1 0.5 0.25 on\na 1 x 0.25 on\n")
    with pytest.raises(BadInput, match=r"manifest\.ctm:2"):
        read_ctm(path)
    with pytest.raises(BadInput, match="no such file"):
        read_ctm(tmp_path / "other.ctm")


def test_a_set_of_recordings_on_a_server(seed: int) -> None:
    utterances = read_set(FOLDER)[:3]
    sound = [read_samples(utterance) for utterance in utterances]
    assert all(np.array_equal(a, samples(path)) for a, path in zip(sound, FILES[:3], strict=True))
    seen: list[Observed] = []
    with serving() as running:
        url = stream_url(f"ws://localhost:{running.server.port}")
        wrong = ["nothing", *[utterance.transcript for utterance in utterances[1:]]]
        found = bench_server(
            url, lambda: None, utterances, sound, wrong, Endings(FOLDER), streams=3, seconds=0.01, seed=seed,
            observe=seen.append,
        )  # fmt: skip
    assert found["utterances"] == 3 and found["most_streams"] == 3
    assert found["failed"] == found["unanswered"] == 0
    assert found["frames"] == sum(len(audio) // 960 for audio in sound) == len(seen[0].latencies)
    assert found["words"] == sum(len(utterance.transcript.split()) for utterance in utterances)
    assert {"file": FILES[0].name, "offline": "nothing", "served": "on no"} in found["mismatched"]
    assert 0 < found["cl50_ms"] <= found["cl90_ms"] <= found["cl99_ms"] <= found["cl_max_ms"]
    assert found["seconds"] > max(len(audio) for audio in sound) / 16000  # in real time
    assert found["client_cpu_s"] > 0 and found["server_cpu_s"] is None


def test_with_a_server_of_its_own(cli: Run, tmp_path: Path) -> None:
    table, plot = tmp_path / "results.csv", tmp_path / "latency.svg"
    outcome = cli(
        "bench", "server", "--streams", 2, "--set", FOLDER, "--limit", 2, "--seconds", 0.01, "--decoder", "greedy",
        "--json", "--csv", table, "--run-name", "first", "--plot", plot,
    )  # fmt: skip
    assert outcome.code == 0, outcome
    found = json.loads(outcome.out)
    assert found["mismatches"] == found["failed"] == found["unanswered"] == 0
    assert found["server_cpu_s"] > 0 and found["decoder"] == "greedy"
    assert f"seed {found['seed']}" in outcome.err
    keys = "streams cl50_ms cl90_ms cl99_ms upl_p50_ms upl_p90_ms upl_p99_ms wer mismatches client_cpu_s server_cpu_s"
    assert set(keys.split()) <= set(found)
    with table.open() as file:
        (row,) = csv.DictReader(file)
    assert row["Run name"] == "first" and row["Processed utts"] == "2" and row["Total words"] == str(found["words"])
    assert float(row["WER %"]) == pytest.approx(100 * found["wer"], abs=1e-4)
    assert plot.read_text().startswith("<?xml")


def test_a_limit_that_is_not_kept(cli: Run) -> None:
    with serving() as running:
        outcome = cli(
            "bench", "server", "--streams", 1, "--set", FOLDER, "--limit", 1, "--seconds", 0.01, "--no-check",
            "--url", f"localhost:{running.server.port}", "--limit-ms", 1e-3,
        )  # fmt: skip
    assert outcome.code == 1 and "--limit-ms 0.001" in outcome.err
    assert "not compared" in outcome.out and "latency of a word" in outcome.out


def results(**changes: Any) -> dict[str, Any]:
    values = dict.fromkeys(("upl_mean_ms", "upl_p50_ms", "upl_p90_ms", "upl_p99_ms"), 250.0)
    return {
        **values,
        "set_utterances": 9,
        "utterances": 7,
        "failed": 1,
        "wer": 0.125,
        "words": 8,
        "errors": 1,
        **changes,
    }


def test_lines_of_csv_are_added(tmp_path: Path) -> None:
    path, moment = tmp_path / "results.csv", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    server_csv.append(path, results(), "one, with a comma", moment)
    server_csv.append(path, results(wer=None, upl_p99_ms=None), "two", moment)
    with path.open() as file:
        first, second = csv.DictReader(file)
    assert list(first) == list(server_csv.COLUMNS)
    assert first["Run name"] == "one, with a comma" and datetime.fromisoformat(first["Timestamp"]) == moment
    assert (first["99th Percentile Latency"], first["WER %"], first["Processed utts"]) == ("0.25", "12.5", "6")
    assert (second["99th Percentile Latency"], second["WER %"]) == ("", "")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--streams", 0], ["--streams"]),
        (["--seconds", 0], ["--seconds"]),
        (["--limit", 0], ["--limit"]),
        (["--limit-ms", 0], ["--limit-ms"]),
        (["--key", "x"], ["--key", "--url"]),
        (["--url", "wss://localhost"], ["without TLS"]),
        (["--plot", "x.doc"], ["x.doc"]),
        (["--csv", Path(__file__)], ["--csv", "other columns"]),
        (["--ctm", "nothing.ctm"], ["nothing.ctm"]),
        (["--decoder", "greedy", "--beam-width", 2], ["--beam-width"]),
        (["--device", "nothing"], ["nothing"]),
    ],
    ids=range(11),
)
def test_bad_input(cli: Run, words: list[object], parts: list[str]) -> None:
    base = ["bench", "server", "--streams", 1, "--set", FOLDER, "--limit", 1, "--no-check"]
    cli(*base, *words).refused(*parts)


def test_nobody_there() -> None:
    with serving() as ended:
        port = ended.server.port
    load = Load(stream_url(f"localhost:{port}"), {}, [list(frames([samples(FILES[0])]))], 1, 0.01, 1)
    with pytest.raises(ServerError, match="no server answers"):
        load.run()


def test_a_server_that_hangs_up_is_a_failed_stream() -> None:
    """It takes the WebSocket, hears a frame, and closes the connection without a word."""
    from websockets.sync.server import ServerConnection, serve

    def hang_up(connection: ServerConnection) -> None:
        connection.recv()
        connection.socket.shutdown(socket.SHUT_RDWR)

    with serve(hang_up, "localhost", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        utterances = read_set(FOLDER)[:1]
        sound = [samples(FILES[0])]
        found = bench_server(
            stream_url(f"localhost:{port}"), lambda: None, utterances, sound, None, Endings(FOLDER), streams=1,
            seconds=0.01, seed=1,
        )  # fmt: skip
        server.shutdown()
    assert found["failed"] == 1 and found["failures"][0]["code"] == 1006
    assert found["cl50_ms"] is None and found["mismatches"] is None
