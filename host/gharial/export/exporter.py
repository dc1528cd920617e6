# SPDX-License-Identifier: Apache-2.0
"""From a training checkpoint and its configuration to a hardware checkpoint."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from gharial.checkpoint.activations import FLAG, KERNEL
from gharial.checkpoint.config import Section
from gharial.checkpoint.features import feature_settings
from gharial.checkpoint.text import shown
from gharial.checkpoint.weights import CONFIG_SIZES
from gharial.errors import BadInput
from gharial.export.configuration import TrainingConfig, read_config
from gharial.export.ngram_file import find_ngram, named_files
from gharial.export.prefixes import prefix_spec
from gharial.export.sources import mel_statistics, sentencepiece_model
from gharial.export.training import TrainingCheckpoint, check_norm_weight, read_training
from gharial.export.zipping import checkpoint_pieces
from gharial.files import check_not_read, write_atomically
from gharial.model.vocabulary import END_OF_SEQUENCE
from gharial.ngram import check_file

VERSION = "1.15.0"
"""Version that the file states: the first after 1.14, where the n-gram went out of the file. For display only."""

NGRAM_SCALE = 0.05
"""Weight of an n-gram in decoding where the configuration states none."""


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        path: the hardware checkpoint.
        ngram_path: the n-gram that belongs to it, absolute, checked; None if it was left out.
        ngram_scale: its weight in decoding, None if it was left out.
        notes: sentences about what the user may want to know.
    """

    path: str
    ngram_path: str | None
    ngram_scale: float | None
    notes: tuple[str, ...]


def export_checkpoint(
    checkpoint: str | os.PathLike[str],
    config: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    skip_ngram: bool = False,
    override_ngram_path: str | os.PathLike[str] | None = None,
    sentencepiece: str | os.PathLike[str] | None = None,
    melmeans: str | os.PathLike[str] | None = None,
    melvars: str | os.PathLike[str] | None = None,
    melalpha: float | None = None,
    valid_prefix: str | None = None,
    default_prefix: str | None = None,
    hard_activations: bool | None = None,
) -> Exported:
    """Write the hardware checkpoint (.hw.pt) of a training checkpoint; the same input gives the same bytes.

    Args:
        checkpoint: training checkpoint of CAIMAN-ASR (.pt); not trusted.
        config: the YAML file that it was trained with; the paths in it are followed.
        output: file to write, whole or not at all.
        skip_ngram: leave the n-gram out.
        override_ngram_path: n-gram in place of the configuration's.
        sentencepiece: SentencePiece model in place of the checkpoint's or configuration's.
        melmeans: file of the mel bins' means in place of the checkpoint's or configuration's.
        melvars: file of their variances.
        melalpha: rate of the streaming normalisation, for checkpoints from before 1.9 alone.
        valid_prefix: regular expression of the prefixes seen in training, where neither file states them.
        default_prefix: the prefix used when none is asked for.
        hard_activations: whether the model was trained with the hard activations that the configuration asks for; None
            where that is known (checkpoints from before 1.9: it was).

    Raises:
        BadInput: something is missing, damaged, or contradicts something else; nothing is written.
        GharialError: the output cannot be written; nothing is left behind.
    """
    settings = read_config(config)
    scale = None
    ngram_path = None
    notes: list[str] = []
    if skip_ngram and override_ngram_path is not None:
        found = f"--override-ngram-path {_name(override_ngram_path)} as well"
        raise BadInput(
            "the n-gram is both left out and given", "--skip-ngram", found, "one of the two", "leave one out"
        )
    if not skip_ngram:
        ngram_path = find_ngram(settings, _name(override_ngram_path))
        scale = settings.ngram_scale
        if scale is None:
            scale = NGRAM_SCALE
            notes.append(f"{settings.path}: ngram.scale_factor is not stated; {scale:g} is taken")
    trained = read_training(checkpoint)
    alpha = check_norm_weight(trained, melalpha)
    check_sizes(trained, settings)
    inference = _inference(trained, settings, hard_activations)
    model, model_from = sentencepiece_model(trained, settings, _name(sentencepiece))
    if trained.sentencepiece_path not in (None, settings.sentencepiece_path):
        notes.append(f"the SentencePiece model had another name in training; the one taken is {model_from}")
    if ngram_path is not None:
        check_file(ngram_path, model, notes.append)
    means, variances = mel_statistics(trained, settings, _name(melmeans), _name(melvars))
    prefixes = prefix_spec(trained, settings, model, valid_prefix, default_prefix)
    if prefixes is None and trained.prefix_map:
        notes.append(
            f"{trained.path}: raw_prefix_token_map is there, but how it states the prefixes is not known here: "
            "give them with --valid-prefix and --default-prefix"
        )
    if settings.end_of_sequence not in (None, END_OF_SEQUENCE):
        notes.append(
            f"{settings.path}: user_tokens.eos is {shown(settings.end_of_sequence)}; only a token {END_OF_SEQUENCE} is "
            "taken for the end of a sequence, so it will stand in transcripts as text"
        )
    tree: dict[str, Any] = {
        "state_dict": OrderedDict(trained.state),
        "epoch": trained.epoch,
        "step": trained.step,
        "best_wer": trained.best_wer,
        "melmeans": means,
        "melvars": variances,
        "melalpha": alpha,
        "sentpiece_model": model,
        "ngram": {"scale_factor": scale},
        "version": VERSION,
        "rnnt_config": inference,
    }
    if prefixes is not None:
        tree["prefix_spec"] = prefixes
    name = os.fspath(output)
    given = [path for path in (ngram_path, sentencepiece, melmeans, melvars) if path is not None]
    check_not_read(name, checkpoint, config, *given, *named_files(settings))
    write_atomically(name, checkpoint_pieces(tree, name))
    return Exported(name, None if ngram_path is None else str(ngram_path), scale, tuple(notes))


def check_sizes(trained: TrainingCheckpoint, settings: TrainingConfig) -> None:
    """Compare what a configuration says of the model with its tensors.

    Raises:
        BadInput: a size, batch normalisation or feature setting that contradicts them; one that is not supported.
    """
    remedy = "give the configuration that the model was trained with"
    stated = settings.inference["rnnt"]
    for size, key in CONFIG_SIZES.items():
        found, real = stated[key], getattr(trained.dims, size)
        if found != real:
            what = f"rnnt.{key} contradicts the tensors of {trained.path}"
            raise BadInput(what, settings.path, found, real, remedy)
    for key, flag, real in zip(
        ("enc_batch_norm", "pred_batch_norm"), settings.batch_norm, trained.batch_norm, strict=True
    ):
        if flag is not None and flag != real:
            what = f"rnnt.{key} contradicts the tensors of {trained.path}"
            raise BadInput(
                what, settings.path, flag, f"{real}, as batch_norms are {'there' if real else 'not'}", remedy
            )
    feature_settings(Section(settings.inference, settings.path), trained.dims, settings.path)


def _inference(trained: TrainingCheckpoint, settings: TrainingConfig, hard: bool | None) -> dict[str, Any]:
    """`rnnt_config`, with hard activations if the model was trained with them; `hard` is what the user says."""
    where = f"{settings.path}: rnnt.{FLAG}"
    if not settings.hard_activations:
        if hard:
            what, remedy = "the configuration does not ask for hard activations", "leave --hard-activations out"
            raise BadInput(what, where, "none", "true", remedy)
        return settings.inference
    if hard is None and trained.norm_weight is not None:
        # From 1.6 on training takes the key and does not follow it; logmel_norm_weight is there from 1.9 on.
        what = "CAIMAN-ASR follows this up to 1.5 alone, and the checkpoint is of 1.9 or later"
        remedy = "--no-hard-activations; --hard-activations if your training did follow it"
        raise BadInput(what, where, "true", "false, or word of how it was trained", remedy)
    if hard is False:
        return settings.inference
    return settings.inference | {"rnnt": settings.inference["rnnt"] | {FLAG: True, KERNEL: True}}


def _name(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)
