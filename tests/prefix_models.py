# SPDX-License-Identifier: Apache-2.0
"""Checkpoints whose vocabulary has user-defined symbols, with random weights, for tests of prefixes."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from checkpoint_files import saved

from gharial.checkpoint import ModelDims

SYMBOLS = ("<pnc>", "<nopnc>", "<lang_en>", "<lang_fr>", "<EOS>")
PATTERN = "^(?:<pnc>|<nopnc>)(?:<lang_en>|<lang_fr>)$"
VALID = ("<nopnc><lang_en>", "<nopnc><lang_fr>", "<pnc><lang_en>", "<pnc><lang_fr>")
DEFAULT = "<pnc><lang_en>"
ANY = "^(?:(?:<pnc>|<nopnc>)(?:<lang_en>|<lang_fr>)?)?$"
"""Prefixes of two symbols, of one, and of none."""
TOKENS = {symbol: number for number, symbol in enumerate(SYMBOLS, 1)}  # 0 is <unk>

VOCABULARY = 48
DIMS = ModelDims(240, 24, 2, 2, 2, 20, 1, 24, VOCABULARY + 1)


def tokens_of(prefix: str) -> tuple[int, ...]:
    """Token ids of a prefix made of `SYMBOLS`."""
    return tuple(TOKENS[f"{part}>"] for part in prefix.split(">")[:-1])


@cache
def vocabulary(symbols: tuple[str, ...] = SYMBOLS) -> bytes:
    """A SentencePiece model of `VOCABULARY` pieces with these user-defined symbols."""
    words = ["up", "down", "left", "right", "yes", "no", "on", "off", "stop", "go", "one", "two", "three", "four"]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(words[i:] + words[:i]) for i in range(len(words))] * 4),
        model_writer=model,
        vocab_size=VOCABULARY,
        model_type="bpe",
        user_defined_symbols=list(symbols),
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        minloglevel=2,
    )
    return model.getvalue()


def checkpoint(folder: Path, seed: int, spec: Any = "usual", blank: float = 0.0) -> Path:
    """A checkpoint file; `spec` is its prefix_spec, None for one that has none, `blank` is added to blank's logit."""
    if spec == "usual":
        spec = {"valid_prefix": PATTERN, "default_prefix": DEFAULT}

    def change(top: dict[str, Any]) -> dict[str, Any]:
        torch.manual_seed(seed)
        state = {}
        for name, shape in DIMS.shapes().items():
            spread = 0.5 if len(shape) == 1 else 2.0 / shape[1] ** 0.5
            state[name] = spread * torch.randn(shape)
        state["joint_net.2.bias"][-1] += blank
        top["state_dict"] = state
        top["sentpiece_model"] = vocabulary()
        top["rnnt_config"].pop("rnnt", None)
        if spec is not None:
            top["prefix_spec"] = spec
        return top

    return saved(folder, change)
