# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of every version and variant, made from the demo model: the keys, names and types that each has."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from checkpoint_files import demo
from training_files import configuration

from gharial.checkpoint.dims import POST, PRE, PREDICTION

Tree = dict[str, Any]
State = dict[str, torch.Tensor]
UNITS = 64
LAYERS = {PRE: 2, POST: 2, PREDICTION: 1}
SCALE = 0.05
KENLM = b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(range(256)) * 20


@dataclass(frozen=True)
class Version:
    """One row of the table of versions.

    Attributes:
        keys: top level, in order.
        protocol: of the pickle that CAIMAN-ASR wrote then.
        stated: what `version` says.
        melalpha: rate of the normalisation.
        whole: `rnnt_config` is the whole configuration of the training.
        ngram: value of that key.
        prefix_spec: value of that key.
    """

    keys: str
    protocol: int = 2
    stated: str = ""
    melalpha: float = 0.0
    whole: bool = False
    ngram: Any = field(default_factory=dict)
    prefix_spec: Any = None


FIRST = "state_dict epoch step best_wer melmeans melvars melalpha sentpiece_model"
CONFIGURED = f"{FIRST} version rnnt_config"
FUSED = f"{CONFIGURED} ngram"
INSIDE = {"binary": KENLM, "scale_factor": SCALE}
NOTHING = {"binary": None, "scale_factor": None}
APART = {"scale_factor": SCALE}
SPEC = {
    "valid_prefix": "^(?:<pnc>|<nopnc>)(?:<lang_en>|<lang_fr>|<lang_detect>)$",
    "default_prefix": "<pnc><lang_detect>",
}

VERSIONS = {
    "1.0": Version(FIRST, melalpha=0.001),
    "1.4": Version(CONFIGURED, stated="1.4.0", melalpha=0.001, whole=True),
    "1.6": Version(CONFIGURED, stated="1.6.0", melalpha=0.001, whole=True),
    "1.7": Version(CONFIGURED, stated="1.7.0", melalpha=0.001),
    "1.8": Version(CONFIGURED, stated="1.8.0", melalpha=0.001),
    "1.9": Version(CONFIGURED, stated="1.9.0"),
    "1.10": Version(CONFIGURED, stated="1.10.0"),
    "1.10 with the keys of 1.11": Version(FUSED, stated="1.10.0", ngram=INSIDE),
    "1.11": Version(FUSED, stated="1.11.0", ngram=INSIDE),
    "1.11 without n-gram": Version(FUSED, stated="1.11.0", ngram=NOTHING),
    "1.13": Version(FUSED, stated="1.13.0", ngram=INSIDE),
    "1.14": Version(FUSED, protocol=5, stated="1.14.0", ngram=INSIDE),
    "newer": Version(FUSED, protocol=5, stated="1.15.0", ngram=APART),
    "newer, prefixes unknown": Version(f"{FUSED} prefix_spec", 5, "1.15.0", ngram=APART),
    "newer, no prefix": Version(
        f"{FUSED} prefix_spec", 5, "1.16.0", ngram=APART, prefix_spec={"valid_prefix": "^$", "default_prefix": None}
    ),
    "newer, prefixes": Version(f"{FUSED} prefix_spec", 5, "1.16.0", ngram=APART, prefix_spec=SPEC),
}


def of_version(version: Version) -> Tree:
    """The demo model as that version's export would have written it, tensors as torch's."""
    model = demo()
    if version.prefix_spec == SPEC:
        model["sentpiece_model"] = with_symbols(model["sentpiece_model"], SPEC["valid_prefix"])
    inference = {part: dict(model["rnnt_config"][part]) for part in ("input_val", "rnnt", "tokenizer")}
    whole = configuration(model, Path("/datasets"))
    values = model | {
        "melalpha": version.melalpha,
        "version": version.stated,
        "rnnt_config": whole if version.whole else inference,
        "ngram": version.ngram,
        "prefix_spec": version.prefix_spec,
    }
    return {key: values[key] for key in version.keys.split()}


def with_symbols(model: bytes, pattern: str) -> bytes:
    """A SentencePiece model whose last pieces are the user-defined symbols, in angle brackets, of a pattern."""
    symbols = [f"<{part.split('>')[0]}>".encode() for part in pattern.split("<")[1:]]
    fields, at = [], 0
    while at < len(model):
        # Each field's tag and length take a byte, or two where it is longer: the training parameters at the end.
        head = 2 if model[at + 1] < 128 else 3
        size = model[at + 1] if head == 2 else (model[at + 1] & 127) + 128 * model[at + 2]
        fields.append(model[at : at + head + size])
        at += head + size
    pieces = [n for n, part in enumerate(fields) if part[0] == 0x0A]
    for n, symbol in zip(pieces[-len(symbols) :], symbols, strict=True):
        body = b"\x0a" + bytes([len(symbol)]) + symbol + b"\x15\0\0\0\0" + b"\x18\4"  # text, score 0, user-defined
        fields[n] = b"\x0a" + bytes([len(body)]) + body
    return b"".join(fields)


def prefixed(tree: Tree) -> None:
    """Names as two wrappers of distributed training leave them."""
    tree["state_dict"] = OrderedDict((f"module.module.{name}", value) for name, value in tree["state_dict"].items())


def duplicated(tree: Tree) -> None:
    """The output layer under its second name too, sharing the storage."""
    state = tree["state_dict"]
    last = next(name for name in state if name.endswith("joint_net.2.weight")).removesuffix("joint_net.2.weight")
    for part in ("weight", "bias"):
        state[f"{last}joint_fc.{part}"] = state[f"{last}joint_net.2.{part}"]


def parameters(tree: Tree) -> None:
    """torch parameters in place of tensors, in a plain dict."""
    tree["state_dict"] = {name: torch.nn.Parameter(value) for name, value in tree["state_dict"].items()}


def strided(tree: Tree) -> None:
    """Matrices as views on larger storages, transposed, as a model that ties or slices weights saves them."""
    for name, value in tree["state_dict"].items():
        if value.ndim == 2:
            store = torch.zeros(value.shape[1] + 3, value.shape[0] + 2)
            store[1:-2, 2:] = value.T
            tree["state_dict"][name] = store[1:-2, 2:].T


VARIANTS: dict[str, Callable[[Tree], None]] = {
    "module.": prefixed,
    "joint_fc": duplicated,
    "parameters": parameters,
    "strided": strided,
}
"""Ways to write the same model; any number of them after one another."""


def normalised(state: State, groups: tuple[str, ...], random: np.random.Generator) -> State:
    """The demo's weights as the batch-norm variant names them, with norms drawn at random."""
    result: State = {}
    for name, tensor in state.items():
        group = next((g for g in groups if name.startswith(f"{g}.lstm.")), None)
        if group is None:
            result[name] = tensor
        else:
            part, layer = name.removeprefix(f"{group}.lstm.").rsplit("_l", 1)
            result[f"{group}.lstms.{layer}.{part}_l0"] = tensor
    for group in groups:
        for k in range(LAYERS[group]):
            head = f"{group}.batch_norms.{k}"
            sign = random.choice([-1.0, 1.0], UNITS)
            result[f"{head}.weight"] = torch.tensor(sign * random.uniform(0.3, 2.0, UNITS), dtype=torch.float32)
            result[f"{head}.bias"] = torch.tensor(random.normal(0, 0.5, UNITS), dtype=torch.float32)
            result[f"{head}.running_mean"] = torch.tensor(random.normal(0, 0.3, UNITS), dtype=torch.float32)
            result[f"{head}.running_var"] = torch.tensor(random.uniform(0.01, 2.0, UNITS), dtype=torch.float32)
            result[f"{head}.num_batches_tracked"] = torch.tensor(1234)
    return result
