# SPDX-License-Identifier: Apache-2.0
"""The integer model as the bench asks for it, and the bench on the shipped recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command import Run
from recordings import FILES, FOLDER, SHORT

from gharial.bench.models import DeviceModel, measure_wer, shown
from gharial.compiler.calibrate import audio_features
from gharial.decoding import DecoderOptions
from gharial.errors import BadInput
from gharial.floating import path_targets
from gharial.model import demo_model
from gharial.recognise import Recogniser, load

NGRAM = demo_model().with_name("commands.ngram")


@pytest.fixture(scope="module")
def recogniser() -> Iterator[Recogniser]:
    with load() as opened:
        yield opened
        assert opened.free_streams == 8


@pytest.mark.parametrize("path", FILES[:4], ids=lambda path: path.stem)
def test_greedy_is_what_transcribe_gives(recogniser: Recogniser, path: Path) -> None:
    decoded = DeviceModel(recogniser).greedy(audio_features(path, recogniser.front_end))
    tokens = recogniser.transcribe(path).tokens
    assert list(zip(decoded.tokens, decoded.steps, decoded.confidences, strict=True)) == [
        (token.id, token.step, token.confidence) for token in tokens
    ]


def test_its_own_path_is_the_one_it_takes(recogniser: Recogniser) -> None:
    model = DeviceModel(recogniser)
    for cut in (None, -1):  # an even and an odd number of vectors
        features = audio_features(FILES[4], recogniser.front_end)[:cut]
        decoded = model.greedy(features)
        best = model.forced(features, decoded.path)
        targets = path_targets(decoded.path, -(-len(features) // 2), 255, 30)
        assert decoded.tokens
        assert best.tolist() == [target for _, target in targets]


def test_another_path_is_followed(recogniser: Recogniser, seed: int) -> None:
    """Along a random path, up to the limit of symbols, against the reference model on its own device."""
    random = np.random.default_rng(seed)
    features = audio_features(SHORT, recogniser.front_end)[:13]
    path = [(2, int(token)) for token in random.integers(0, 255, 30)]
    path += [(5, int(token)) for token in random.integers(0, 255, 3)]
    best = DeviceModel(recogniser).forced(features, path)
    assert len(best) == len(path) + 7 - 1  # step 2 ends without another evaluation
    with load(device="reference") as reference:
        assert np.array_equal(DeviceModel(reference).forced(features, path), best)


def test_no_audio(recogniser: Recogniser) -> None:
    nothing = np.zeros((0, 240), np.float32)
    assert DeviceModel(recogniser).greedy(nothing).tokens == []
    assert DeviceModel(recogniser).forced(nothing, []).shape == (0,)


def test_a_path_that_does_not_fit_leaves_nothing_taken(recogniser: Recogniser) -> None:
    with pytest.raises(BadInput):
        DeviceModel(recogniser).forced(np.zeros((4, 240), np.float32), [(9, 3)])
    assert recogniser.free_streams == 8


def test_on_the_command_line(cli: Run) -> None:
    outcome = cli("bench", "wer", "--set", FOLDER, "--limit", 4, "--json")
    found = json.loads(outcome.out)
    keys = ["set", "model", "utterances", "words", "errors_float", "errors_int", "wer_float", "wer_int"]
    assert list(found)[:9] == [*keys, "changed_utterances"]
    assert (found["set"], found["model"], found["utterances"], found["words"]) == ("recordings", "demo-small", 4, 13)
    assert (found["device"], found["config"]) == ("emulator:ecp5-85f", "ecp5-85f")
    assert (found["errors_float"], found["wer_float"]) == (0, 0.0)
    assert 0.98 < found["token_agreement"] <= 1
    text = cli("bench", "wer", "--set", FOLDER, "--limit", 4).out
    assert "4 utterances" in text and "0 of 13 words, 0.00 %" in text


def test_beam_search_is_what_transcribe_gives() -> None:
    with load(decoder="beam", options=DecoderOptions(ngram_scale=0.2), ngram=NGRAM) as recogniser:
        keywords = recogniser.keywords({"stop": 0.4, "go left": -0.3})
        model, boosted = DeviceModel(recogniser), DeviceModel(recogniser, keywords=keywords)
        for path in FILES[:3]:
            features = audio_features(path, recogniser.front_end)
            tokens = recogniser.transcribe(path).tokens
            assert [(token.step, token.id) for token in tokens] == model.decode(features).path
            assert len(boosted.decode(features).tokens) > 0


def test_beam_search_on_the_command_line(cli: Run) -> None:
    """Errors are the beam search's, greedy ones are told beside; the float model is searched with the same settings."""
    words = ("bench", "wer", "--set", FOLDER, "--limit", 4, "--decoder", "beam", "--ngram", NGRAM)
    found = json.loads(cli(*words, "--ngram-scale", 0.1, "--beam-width", 2, "--json").out)
    assert (found["decoder"], found["beam"], found["ngram"], found["ngram_scale"]) == ("beam", 2, str(NGRAM), 0.1)
    assert (found["words"], found["errors_float"], found["greedy"]["errors_float"]) == (13, 0, 0)
    assert found["errors_int"] <= 1 and found["changed_utterances"] <= 1
    assert found["against_greedy"]["float"]["by_chance"]
    outcome = cli(*words)
    assert f"beam 4, {NGRAM} times 0.05" in outcome.out and "greedy 0, 0.00 %" in outcome.out
    assert "states no scale" in outcome.err
    plain = json.loads(cli(*words[:-2], "--ngram", "none", "--json").out)
    assert (plain["ngram"], plain["ngram_scale"]) == (None, None)


def test_settings_that_do_not_fit_show_at_once(cli: Run, tmp_path: Path) -> None:
    words = ("bench", "wer", "--set", FOLDER, "--decoder", "beam")
    cli(*words, "--eos-strategy", "ignore").refused("--eos-strategy", "no end-of-sequence token")
    cli(*words, "--ngram", tmp_path / "none").refused("--ngram")
    (tmp_path / "k.json").write_text('{"keywords": {"\u4e2d": 1}}')
    cli(*words, "--keywords", tmp_path / "k.json").refused("--keywords")
    cli(*words, "--ngram-scale", 0.1).refused("--ngram-scale", "no n-gram to weigh")
    cli(*words[:-2], "--ngram", NGRAM).refused("--ngram", "--decoder beam")
    for option in ("--silence", "--alternatives"):
        assert cli(*words, option, "2").code == 2


@pytest.mark.parametrize(("mode", "wanted"), [("classic", [4, 5, 6]), ("stream", [4, 9, 5, 9, 6]), ("terminal", [4])])
def test_end_of_sequence_tokens(mode: str, wanted: list[int]) -> None:
    assert list(shown([4, 9, 5, 9, 6], 9, mode)) == wanted
    assert list(shown([4, 5], 9, mode)) == list(shown([4, 5], None, mode)) == [4, 5]


@pytest.mark.parametrize(
    ("model", "name"), [("demo-small", "sc_speakers"), ("demo-medium", "sc_speakers"), ("demo-medium", "fsdd_takes")]
)
def test_quantising_costs_next_to_nothing(data_dir: Path, model: str, name: str) -> None:
    """The first utterances of the larger sets; docs/accuracy.md has the whole."""
    found = measure_wer(data_dir / "sets" / name, data_dir / "models" / f"{model}.hw.pt", limit=60, quiet=True)
    assert found["utterances"] == 60
    assert found["errors_int"] <= found["errors_float"] + 2, found["changed"]
    assert found["token_agreement"] >= 0.995
