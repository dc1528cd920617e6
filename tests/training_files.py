# SPDX-License-Identifier: Apache-2.0
"""What training leaves behind, made from the shipped demo model: checkpoint, configuration, and the files it names."""

from __future__ import annotations

import enum
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ngram_files
import torch
import yaml
from checkpoint_files import demo

from gharial.ngram import append_mark

Change = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Training:
    """A folder as a training run leaves it.

    Attributes:
        checkpoint: TRAIN.pt.
        config: CONFIG.yaml, whose paths are absolute.
        folder: of both, of stats/, ngrams/ and spm.model.
    """

    checkpoint: Path
    config: Path
    folder: Path

    def words(self, output: Path, *more: object) -> list[object]:
        """The command line of an export."""
        return ["export", "--ckpt", self.checkpoint, "--config", self.config, "-o", output, *more]


def training(
    folder: Path,
    checkpoint: Change | None = None,
    config: Change | None = None,
    source: dict[str, Any] | None = None,
    protocol: int = 5,
) -> Training:
    """Write a training run.

    Args:
        folder: where to; it must exist.
        checkpoint: edits the checkpoint in place, or returns another object.
        config: the same for the configuration.
        source: hardware checkpoint, as torch reads it, that the weights come from; the demo model.
        protocol: of the checkpoint's pickle.
    """
    model = demo() if source is None else source
    (folder / "spm.model").write_bytes(model["sentpiece_model"])
    (folder / "stats").mkdir()
    for name in ("melmeans", "melvars"):
        torch.save(model[name], folder / "stats" / f"{name}.pt")
    (folder / "ngrams").mkdir()
    append_mark(ngram_files.copy(folder / "ngrams", name="ngram.binary"), model["sentpiece_model"])
    paths = Training(folder / "TRAIN.pt", folder / "CONFIG.yaml", folder)
    with enumeration() as unk_handling:
        trained = training_state(model, unk_handling.FAIL)
        changed = checkpoint(trained) if checkpoint is not None else None
        torch.save(trained if changed is None else changed, paths.checkpoint, pickle_protocol=protocol)
    settings = configuration(model, folder)
    changed = config(settings) if config is not None else None
    text = changed if isinstance(changed, str) else yaml.safe_dump(settings if changed is None else changed)
    paths.config.write_text(text, encoding="utf-8")
    return paths


def training_state(model: dict[str, Any], unk_handling: Any) -> dict[str, Any]:
    """A checkpoint as CAIMAN-ASR 1.14 saves it in the middle of distributed training, fused LAMB and all."""
    averaged = {f"module.{name}": tensor for name, tensor in model["state_dict"].items()}
    averaged |= {f"module.joint_fc.{part}": averaged[f"module.joint_net.2.{part}"] for part in ("weight", "bias")}
    # Raw weights are other ones, so that taking them shows.
    raw = {name: 0.5 * tensor + 0.01 for name, tensor in averaged.items()}
    moments = {n: {"exp_avg": 0.1 * t, "exp_avg_sq": t * t} for n, t in enumerate(raw.values())}
    group = {"lr": 4e-3, "betas": (0.9, 0.999), "eps": 1e-9, "weight_decay": 1e-3, "step": 1147, "amsgrad": False}
    return {
        "epoch": 7,
        "step": 1147,
        "best_wer": 0.1739,
        "state_dict": raw,
        "ema_state_dict": averaged,
        "optimizer": {"state": moments, "param_groups": [group | {"params": list(moments)}]},
        "tokenizer_kw": {
            "sentpiece_model": "/datasets/sentencepieces/spm.model",
            "labels": list(model["rnnt_config"]["tokenizer"]["labels"]),
            "sampling": 0.05,
            "unk_handling": unk_handling,
        },
        "logmel_norm_weight": 1.0,
    }


def configuration(model: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The whole YAML of a training run, with all that inference has no use for."""
    kept = model["rnnt_config"]
    dataset = {"sample_rate": 16000, "trim_silence": False, "normalize_transcripts": "lowercase", "replacements": None}
    bank = kept["input_val"]["filterbank_features"] | {"stats_path": str(folder / "stats")}
    splicing = kept["input_val"]["frame_splicing"]
    rnnt = kept["rnnt"] | {"enc_dropout": 0.1, "enc_batch_norm": False, "pred_batch_norm": False, "custom_lstm": True}
    return {
        "user_tokens": {"eos": "<EOS>"},
        "tokenizer": kept["tokenizer"] | {"sentpiece_model": str(folder / "spm.model"), "sampling": 0.05},
        "input_val": {"audio_dataset": dataset, "filterbank_features": bank, "frame_splicing": splicing},
        "input_train": {
            "audio_dataset": dataset | {"max_duration": 20.0},
            "filterbank_features": bank,
            "frame_splicing": splicing,
            "spec_augment": {"freq_masks": 2},
        },
        "rnnt": rnnt | {"forget_gate_bias": 1.0, "joint_apex_transducer": "pack", "quantize": False},
        "grad_noise_scheduler": {"noise_level": 0.0, "decay_const": 0.55, "start_step": 2000},
        "ngram": {"ngram_path": str(folder / "ngrams"), "scale_factor": 0.05},
    }


@contextmanager
def enumeration() -> Iterator[Any]:
    """The enumeration that CAIMAN-ASR's training keeps in its checkpoints, under its name while it is pickled."""
    name = "caiman_asr_train.data.unk_handling"
    unk_handling = enum.Enum("UnkHandling", {"FAIL": "FAIL", "WARN": "WARN"}, module=name)
    modules = {part: types.ModuleType(part) for part in ("caiman_asr_train", "caiman_asr_train.data", name)}
    modules[name].UnkHandling = unk_handling  # type: ignore[attr-defined]
    sys.modules.update(modules)
    try:
        assert b"unk_handling" in pickle.dumps(unk_handling.FAIL)
        yield unk_handling
    finally:
        for part in modules:
            del sys.modules[part]
