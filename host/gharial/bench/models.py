# SPDX-License-Identifier: Apache-2.0
"""The two models that `gharial bench wer` compares: a program on a device, and its checkpoint in float."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gharial.bench.bootstrap import RESAMPLES, SEED
from gharial.bench.manifest import read_set
from gharial.bench.wer import hear, hear_greedily, summary
from gharial.checkpoint import Prefixes, load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.decoding import DecoderOptions, Keywords
from gharial.devices.open import DEFAULT, device_config
from gharial.driver import DecodeEntry, DecodeResult, EncodeEntry, Ticket
from gharial.errors import BadInput
from gharial.features import quantise_features
from gharial.floating import Decoded, path_targets
from gharial.floating.path import LatticePath
from gharial.floating.search import LOGIT_BITS, FloatSearch
from gharial.floating.yardstick import TorchRnnt
from gharial.isa.commands import Kind
from gharial.model import compile_model, demo_model, is_program, ngram_of, open_model, vocabulary
from gharial.recognise import Recogniser
from gharial.recognise.decoders import NgramChoice, check_decoder, search_model, search_settings


class DeviceModel:
    """A compiled model on a device, as the bench asks for it.

    Args:
        recogniser: the model; it stays open.
        prefix: tokens that its prediction network hears before everything else.
        keywords: those boosted, where the recogniser's decoder is a beam search.
    """

    def __init__(self, recogniser: Recogniser, prefix: tuple[int, ...] = (), keywords: Keywords | None = None) -> None:
        self._recogniser = recogniser
        self._prefix = prefix
        self._keywords = keywords
        program = recogniser.program
        self._stack = program.header["vectors"]
        self._blank: int = program.manifest["decoding"]["blank"]
        self._max_symbols: int = program.manifest["decoding"]["max_symbols"]

    def greedy(self, features: np.ndarray) -> Decoded:
        """`decode`, of a recogniser whose decoder is the greedy one."""
        return self.decode(features)

    def decode(self, features: np.ndarray) -> Decoded:
        """Decoding of one recording, (T2, F) float32 normalised feature vectors, by the recogniser's decoder."""
        engine = self._recogniser.engine
        session = engine.open(self._prefix, self._keywords)
        try:
            session.put(self._quantised(features))
            session.ended = True
            engine.run()
            if session.error is not None:
                raise session.error
            emitted = [token for result in session.results for token in result.finals]
            emitted += session.alternatives()[0].tokens
        finally:
            engine.close(session)
        return Decoded(
            [item.token for item in emitted], [item.step for item in emitted], [item.confidence for item in emitted]
        )

    def forced(self, features: np.ndarray, path: LatticePath) -> np.ndarray:
        """Best class at each joint evaluation along a path, (Q,) int64.

        The path says beforehand what is asked, so nothing waits for a result before the end.
        """
        vectors = self._quantised(features)
        steps = -(-len(vectors) // self._stack)
        driver = self._recogniser.driver
        (encoder,) = driver.allocate("encoder")
        (prediction,) = driver.allocate("prediction")
        results: list[Ticket[DecodeResult]] = []
        encoded = 0
        kind, token = Kind.START, 0
        try:
            for following in self._prefix:
                driver.decode([DecodeEntry(0, 0, kind, prediction, prediction, token, joint=False)])
                kind, token = Kind.TOKEN, following
            for step, target in path_targets(path, steps, self._blank, self._max_symbols):
                while encoded <= step:
                    part = vectors[encoded * self._stack : (encoded + 1) * self._stack]
                    driver.encode([EncodeEntry(encoder, part, encoded & 1, encoded == 0)])
                    encoded += 1
                results.append(driver.decode([DecodeEntry(encoder, step & 1, kind, prediction, prediction, token)]))
                kind, token = (Kind.NONE, 0) if target == self._blank else (Kind.TOKEN, target)
            return np.array([int(ticket.result().classes[0, 0]) for ticket in results], np.int64)
        finally:
            driver.release("encoder", (encoder,))
            driver.release("prediction", (prediction,))

    def _quantised(self, features: np.ndarray) -> np.ndarray:
        return quantise_features(features, self._recogniser.feature_bits)


def measure_wer(
    set_dir: Path,
    model: str | os.PathLike[str] | None = None,
    device: str = DEFAULT,
    *,
    decoder: str = "greedy",
    options: DecoderOptions | None = None,
    ngram: NgramChoice = None,
    keywords: Mapping[str, float] | None = None,
    keyword_file: str | None = None,
    prefix: str | None = None,
    eos_mode: str = "classic",
    limit: int | None = None,
    weights: str = "int8",
    resamples: int = RESAMPLES,
    seed: int = SEED,
    quiet: bool = False,
    progress: Callable[[int, int], object] | None = None,
    note: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Word errors of a model on a device and of the same model in float, on a set.

    Both are decoded by the same search: the device's greedy decoding against that of the yardstick, or the beam search
    over the device's results against the same over the yardstick's logits (gharial.floating.search).

    Args:
        set_dir: folder of the set.
        model: hardware checkpoint; None for the shipped demo model.
        device: name of the device.
        decoder, options, ngram: as in `Recogniser`.
        keywords: boosts by keyword, for the beam search.
        keyword_file: where they came from, for errors.
        prefix: what both are told before the audio, as in `Recogniser.stream`.
        eos_mode: end-of-sequence tokens are left out of the texts ("classic"), shown in them ("stream"), or end them
            ("terminal").
        limit: only so many utterances from the start of the set.
        weights: type of the program's weights, as in `compile_model`; other programs than of int8 are not cached.
        resamples, seed: of the bootstrap (gharial.bench.bootstrap).
        quiet: no progress bar.
        progress, note: as in `open_model`; `note` also as in `Recogniser`.

    Returns:
        What `gharial.bench.wer.summary` returns, with `device`, `config` and `decoder`; for the beam search also
        `greedy`, `against_greedy`, `beam` (its width), `ngram` (the file or None) and `ngram_scale`.

    Raises:
        BadInput: set, model, prefix, device or settings cannot be used, or PyTorch is not installed.
        GharialError: the device failed.
    """
    check_decoder(decoder, options, ngram)
    path = os.fspath(demo_model() if model is None else model)
    if is_program(path):
        raise BadInput("a program holds no float model", path, expected="a hardware checkpoint (.hw.pt)")
    checkpoint = load_hardware(path)
    told = Prefixes.of(checkpoint).tokens(prefix)
    yardstick = TorchRnnt.from_checkpoint(checkpoint, told)
    config = device_config(device)
    if weights == "int8":
        program = open_model(path, config, progress=progress, note=note)
    else:
        program = compile_model(path, config, progress=progress, weights=weights, allow_error=True)
    words = vocabulary(program)
    utterances = read_set(set_dir)[:limit]

    def text(tokens: Sequence[int]) -> str:
        return words.text(shown(tokens, words.eos, eos_mode))

    # The beam search first: settings that do not fit the model show before anything takes long. One recogniser at a
    # time has the device.
    heard = None
    about: dict[str, Any] = {"decoder": decoder}
    if decoder == "beam":
        settings, scorer = search_settings(program, options, ngram, note)
        if ngram is None and settings.ngram_scale is not None and ngram_of(program) is None:
            what, remedy = "there is no n-gram to weigh", "name one, or leave the scale out"
            raise BadInput(what, "ngram_scale", "none beside the program", "an n-gram", remedy)
        boosted = None if keywords is None else Keywords(keywords, words.spelling, keyword_file or "keywords")
        with Recogniser(program, device, decoder=decoder, options=settings, ngram=ngram, note=None) as recogniser:
            known = search_model(program, words)
            known = replace(known, logit_bits=min(known.logit_bits, LOGIT_BITS))
            search = FloatSearch(yardstick, known, settings, ngram=scorer, keywords=boosted, prefix=told)
            on_device = DeviceModel(recogniser, told, boosted)
            heard = hear(
                utterances,
                lambda vectors: search.decode(vectors).tokens,
                lambda vectors: on_device.decode(vectors).tokens,
                lambda recording: audio_features(recording, recogniser.front_end),
                text,
                quiet=quiet,
                told=f"{set_dir.name}, beam {settings.width}",
            )
        file = None if scorer is None else os.fspath(scorer.file.path)
        about |= {"beam": settings.width, "ngram": file, "ngram_scale": settings.ngram_scale if file else None}
    with Recogniser(program, device) as recogniser:
        greedy, agreement = hear_greedily(
            utterances,
            yardstick,
            DeviceModel(recogniser, told),
            lambda recording: audio_features(recording, recogniser.front_end),
            text,
            quiet=quiet,
            told=set_dir.name,
        )
        about |= {"device": recogniser.device_name, "config": program.config.name}
    name, beside = Path(path).name.removesuffix(".hw.pt"), None if heard is None else greedy
    found = summary(set_dir.resolve().name, name, heard or greedy, agreement, beside, resamples, seed)
    return found | about


def shown(tokens: Sequence[int], eos: int | None, mode: str) -> Sequence[int]:
    """Tokens that are text, by what becomes of the end-of-sequence token."""
    if eos is None or mode == "stream":
        return tokens
    if mode == "terminal" and eos in tokens:
        return tokens[: tokens.index(eos)]
    return [token for token in tokens if token != eos]
