# SPDX-License-Identifier: Apache-2.0
"""`bench wer`: sets, word errors, and the comparison of two models."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from checkpoint_files import complete
from hypothesis import given
from hypothesis import strategies as st

from gharial.bench.manifest import read_set
from gharial.bench.wer import bench_wer, hear, hear_greedily, summary
from gharial.bench.words import word_count, word_error_rate, word_errors
from gharial.checkpoint import load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.errors import BadInput, GharialError
from gharial.features import FeatureSpec
from gharial.floating import Decoded
from gharial.floating.yardstick import TorchRnnt

WORDS = ("yes", "no", "up")
BLANK = len(WORDS)


def make_set(folder: Path, transcripts: Sequence[str]) -> Path:
    folder.mkdir()
    entries = []
    for index, transcript in enumerate(transcripts):
        (folder / f"u{index}.flac").write_bytes(b"not read by these tests")
        entries.append({"transcript": transcript, "files": [{"fname": f"u{index}.flac"}], "original_duration": 1.5})
    (folder / "manifest.json").write_text(json.dumps(entries))
    return folder


class Scripted:
    """A model that gives what it was told for each recording; a recording's feature vectors hold its number."""

    def __init__(self, tokens: Sequence[Sequence[int]], best: Sequence[Sequence[int]]) -> None:
        self.tokens = tokens
        self.best = best
        self.paths: list[Any] = []

    def greedy(self, features: np.ndarray) -> Decoded:
        tokens = list(self.tokens[int(features[0, 0])])
        return Decoded(tokens, list(range(len(tokens))), [1.0] * len(tokens))

    def forced(self, features: np.ndarray, path: Any) -> np.ndarray:
        self.paths.append(list(path))
        return np.array(self.best[int(features[0, 0])])


def number(path: Path) -> np.ndarray:
    return np.full((2, 1), float(path.stem.removeprefix("u")), np.float32)


def spell(tokens: Sequence[int]) -> str:
    return " ".join(WORDS[token] for token in tokens)


def test_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_set(tmp_path / "three", ["yes no", "", "up\tup"])
    reference = Scripted([[0, 1], [2], [2, 2]], [[0, 1, BLANK], [2, BLANK], [2, 2, BLANK]])
    device = Scripted([[0], [], [2, 2]], [[0, BLANK, BLANK], [2, BLANK], [2, 2, 1]])
    result = bench_wer(folder, "m", reference, device, number, spell)
    intervals = result.pop("wer_ci")
    assert json.loads(json.dumps(intervals)) == intervals
    assert list(intervals) == ["float", "int", "difference"]
    assert all(low <= 0.25 <= high for low, high in (intervals["float"], intervals["int"]))
    assert intervals["difference"][0] < 0 < intervals["difference"][1]
    assert result == {
        "set": "three",
        "model": "m",
        "utterances": 3,
        "words": 4,
        "errors_float": 1,
        "errors_int": 1,
        "wer_float": 0.25,
        "wer_int": 0.25,
        "changed_utterances": 2,
        "evaluations": 8,
        "token_agreement": 6 / 8,
        "changed": [
            {"file": "u0.flac", "reference": "yes no", "float": "yes no", "int": "yes"},
            {"file": "u1.flac", "reference": "", "float": "up", "int": ""},
        ],
    }
    assert json.loads(json.dumps(result)) == result
    # Both were led along the float model's path, not their own.
    assert reference.paths == device.paths == [[(0, 0), (1, 1)], [(0, 2)], [(0, 2), (1, 2)]]
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""  # no progress bar where there is no terminal


def test_a_missing_evaluation_is_an_error(tmp_path: Path) -> None:
    folder = make_set(tmp_path / "one", ["yes"])
    with pytest.raises(GharialError, match=r"u0\.flac: the models disagree on the number of joint evaluations"):
        bench_wer(folder, "m", Scripted([[0]], [[0, 3]]), Scripted([[0]], [[0]]), number, spell)


def test_silence_alone(tmp_path: Path) -> None:
    folder = make_set(tmp_path / "quiet", [""])
    quiet, talker = Scripted([[]], [[BLANK]]), Scripted([[1]], [[BLANK]])
    result = bench_wer(folder, "m", quiet, talker, number, spell, quiet=True)
    assert (result["words"], result["wer_float"], result["wer_int"], result["errors_int"]) == (0, 0.0, None, 1)
    assert result["wer_ci"] == {"float": None, "int": None, "difference": None}


def test_another_decoder_beside_greedy(tmp_path: Path) -> None:
    """Its errors take the usual places; greedy ones and the difference are told beside them."""
    texts = ["yes no up", "yes", "no no"] * 4
    folder = make_set(tmp_path / "twelve", texts)
    utterances = read_set(folder)

    def all_say(*words: int) -> list[Sequence[int]]:
        return [words] * 12

    def decoder(tokens: Sequence[Sequence[int]]) -> Any:
        return lambda features: tokens[int(features[0, 0])]

    greedy = Scripted(all_say(0), all_say(0, BLANK))
    heard, agreement = hear_greedily(utterances, greedy, greedy, number, spell, quiet=True)
    right = [[WORDS.index(word) for word in text.split()] for text in texts]
    beam = hear(utterances, decoder(right), decoder([*right[:-1], [1]]), number, spell, quiet=True)
    result = summary("twelve", "m", beam, agreement, heard)
    assert json.loads(json.dumps(result)) == result
    assert (result["words"], result["errors_float"], result["errors_int"]) == (24, 0, 1)
    assert (result["greedy"]["errors_float"], result["greedy"]["errors_int"]) == (16, 16)
    assert result["greedy"]["wer_float"] == 16 / 24 and result["wer_int"] == 1 / 24
    assert result["changed_utterances"] == 1 and result["changed"][0]["int"] == "no"
    assert (result["evaluations"], result["token_agreement"]) == (24, 1.0)
    against = result["against_greedy"]
    assert against["float"]["rate"] == pytest.approx(-16 / 24) and against["int"]["rate"] == pytest.approx(-15 / 24)
    for one in against.values():
        assert one["ci"][0] <= one["rate"] <= one["ci"][1] < 0 and one["better"] == 1.0 and not one["by_chance"]


def test_real_recordings(data_dir: Path) -> None:
    """Float32 against float64: the published count from both, and not one class in which they differ."""
    checkpoint = load_hardware(data_dir / "models" / "demo-medium.hw.pt")
    spec = FeatureSpec.from_checkpoint(checkpoint)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.sentencepiece)
    result = bench_wer(
        data_dir / "sets" / "fsdd_takes",
        "demo-medium",
        TorchRnnt(checkpoint),
        TorchRnnt(checkpoint, "float64"),
        lambda path: audio_features(path, spec),
        lambda tokens: pieces.decode(list(tokens)),
    )
    assert (result["utterances"], result["words"], result["errors_float"], result["errors_int"]) == (150, 488, 25, 25)
    assert (result["changed_utterances"], result["changed"], result["token_agreement"]) == (0, [], 1.0)
    assert result["evaluations"] == 7844


@pytest.mark.parametrize(
    ("reference", "hypothesis", "errors"),
    [
        ("", "", 0),
        ("", "a b", 2),
        ("a b c", "", 3),
        ("  ", "\n", 0),
        ("a  b\tc\nd", "a b c d", 0),
        ("a b c", "a c", 1),
        ("a b", "b a", 2),
        ("A", "a", 1),
        ("a.b", "a b", 2),
    ],
)
def test_word_errors(reference: str, hypothesis: str, errors: int) -> None:
    assert word_errors(reference, hypothesis) == errors


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        above, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (left != right))
    return row[-1]


TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "c"]), max_size=8)


@given(TEXTS, TEXTS)
def test_word_errors_are_the_edit_distance(said: list[str], heard: list[str]) -> None:
    assert word_errors(" ".join(said), " ".join(heard)) == edit_distance(said, heard)
    assert word_count("\t".join(said)) == len(said)


def test_word_error_rate() -> None:
    assert word_error_rate(3, 2) == 1.5
    assert word_error_rate(0, 0) == 0.0
    assert word_error_rate(1, 0) is None


def write(folder: Path, manifest: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.flac").touch()
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (folder / "manifest.json").write_text(text)
    return folder


def entry(**change: Any) -> list[dict[str, Any]]:
    good = {"transcript": "a", "files": [{"fname": "a.flac"}], "original_duration": 1.0}
    return [{key: value for key, value in (good | change).items() if value != "absent"}]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("[{]", "not JSON"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "Git LFS pointer"),
        ("[" * 100_000, "not JSON"),
        ([], "no utterances"),
        ({"transcript": "a"}, "no utterances"),
        (["a.flac"], "utterance 0: this must be an object"),
        (entry(transcript="absent"), "utterance 0: transcript is missing"),
        (entry(transcript=None), "transcript is missing"),
        (entry(files="absent"), "files is missing"),
        (entry(files=[]), "files is missing"),
        (entry(files=["a.flac"]), "files is missing"),
        (entry(files=[{"name": "a.flac"}]), "fname is missing"),
        (entry(files=[{"fname": 3}]), "fname is missing"),
        (entry(files=[{"fname": ""}]), "fname is missing"),
        (entry(files=[{"fname": "a\0.flac"}]), "fname is missing"),
        (entry(files=[{"fname": "a.flac", "speed": 0.9}]), "no file is at the original speed"),
        (entry(files=[{"fname": "b.flac"}]), "the recording is not there"),
        (entry(files=[{"fname": "."}]), "the recording is not there"),
        (entry(files=[{"fname": "x" * 5000}]), "cannot be resolved"),
        (entry(files=[{"fname": "\ud800.flac"}]), "cannot be resolved"),
        (entry(original_duration="1"), "original_duration is not a time"),
        (entry(original_duration=True), "original_duration is not a time"),
        (entry(original_duration=-1), "original_duration is not a time"),
        (entry(original_duration=float("nan")), "original_duration is not a time"),
        (entry(original_duration=10**400), "original_duration is not a time"),
    ],
)
def test_bad_manifests_are_refused(tmp_path: Path, manifest: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        read_set(write(tmp_path / "set", manifest))
    complete(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "name", ["../outside.flac", "sub/../../outside.flac", "{tmp}/outside.flac", "link.flac", "out/outside.flac"]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.flac").touch()
    folder = write(tmp_path / "set", entry(files=[{"fname": name.format(tmp=tmp_path)}]))
    (folder / "link.flac").symlink_to(tmp_path / "outside.flac")
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(BadInput, match="out of the set's folder") as caught:
        read_set(folder)
    complete(caught.value)


def test_names_and_links_inside_the_folder_are_good(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "set",
        entry(files=[{"fname": "fast.flac", "speed": 1.1}, {"fname": "sub/b.flac", "speed": 1}])
        + entry(files=[{"fname": "link.flac"}], transcript="", original_duration="absent"),
    )
    (folder / "sub").mkdir()
    (folder / "sub" / "b.flac").touch()
    (folder / "link.flac").symlink_to("a.flac")
    (tmp_path / "alias").symlink_to(folder)
    first, second = read_set(tmp_path / "alias")
    assert (first.name, first.transcript, first.duration_s) == ("sub/b.flac", "a", 1.0)
    assert first.path == (folder / "sub" / "b.flac").resolve()
    assert (second.name, second.transcript, second.duration_s) == ("link.flac", "", None)


def test_a_folder_that_is_no_set(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"

    def refused(folder: Path, what: str) -> None:
        with pytest.raises(BadInput, match=what) as caught:
            read_set(folder)
        complete(caught.value)

    refused(tmp_path / "none", "no such folder")
    refused(tmp_path, "the set has no manifest")
    manifest.write_bytes(b"\xff\xfe\xff")
    refused(manifest, "no such folder")
    refused(tmp_path, "not JSON")
    manifest.unlink()
    os.mkfifo(manifest)  # nobody writes: waiting for it would hang
    refused(tmp_path, "is not a plain file")
    manifest.unlink()
    manifest.mkdir()
    refused(tmp_path, "is a directory")
    manifest.rmdir()
    with manifest.open("wb") as file:
        file.truncate(1 << 40)
    refused(tmp_path, "the manifest is too large")
