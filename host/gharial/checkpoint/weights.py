# SPDX-License-Identifier: Apache-2.0
"""From the `state_dict` of a checkpoint to the complete, checked weights of a model."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from gharial.checkpoint.batchnorm import fold, is_counter, is_norm, norm_shapes, plain_name, variant_of
from gharial.checkpoint.config import Section
from gharial.checkpoint.dims import (
    GROUPS,
    MAX_LAYERS,
    POST,
    PRE,
    PREDICTION,
    Misfit,
    ModelDims,
    Shape,
    compare,
    from_shapes,
)
from gharial.checkpoint.tensors import TensorRef
from gharial.checkpoint.text import listed, shown
from gharial.errors import BadInput

MAX_TENSORS = 4096
MAX_NAME = 256
"""Characters of a tensor's name: names are searched and cut, which on endless ones takes endless time."""

CONFIG_SIZES = {
    "features": "in_feats",
    "hidden": "enc_n_hid",
    "pre_layers": "enc_pre_rnn_layers",
    "post_layers": "enc_post_rnn_layers",
    "stack": "enc_stack_time_factor",
    "pred_hidden": "pred_n_hid",
    "pred_layers": "pred_rnn_layers",
    "joint": "joint_n_hid",
}
"""Size by size, the key of `rnnt_config.rnnt` that states it."""

_FLAGS = {"enc_batch_norm": (PRE, POST), "pred_batch_norm": (PREDICTION,)}
"""Key by key of `rnnt_config.rnnt`, the stacks of layers that it says have batch normalisation."""

_DUPLICATES = {"joint_fc.weight": "joint_net.2.weight", "joint_fc.bias": "joint_net.2.bias"}
"""The output layer under its second name in the training code: the same tensors."""

_EXPORT = "export the checkpoint again, from the training checkpoint and its own configuration"


def size_keys(dims: ModelDims) -> dict[str, int]:
    """`rnnt_config.rnnt` of a model of these sizes."""
    return {key: int(getattr(dims, size)) for size, key in CONFIG_SIZES.items()}


@dataclass(frozen=True)
class WeightRefs:
    """Tensors of a model by their plain names, shapes and types checked, data not yet read.

    Attributes:
        tensors: every tensor of the model.
        norms: tensors of the batch normalisations, empty without them.
        duplicates: tensors that must equal the one in `tensors` that `_DUPLICATES` names.
        dims: sizes of the model.
    """

    tensors: dict[str, TensorRef]
    norms: dict[str, TensorRef]
    duplicates: dict[str, TensorRef]
    dims: ModelDims


@dataclass(frozen=True)
class Weights:
    """Checked weights.

    Attributes:
        state: float32 arrays by name, in the order of `ModelDims.shapes`, contiguous and read-only.
        post_pad: (hidden,) float32, what stands for a missing step of a stack of encoder outputs.
        batch_norm: True if batch normalisation was folded into `state`.
    """

    state: dict[str, np.ndarray]
    post_pad: np.ndarray
    batch_norm: bool


def weight_refs(state: Any, config: Section, where: str) -> WeightRefs:
    """Sorts the entries of a `state_dict` and checks every name, shape and type.

    Args:
        state: the dict, tensors as `TensorRef`.
        config: `rnnt_config.rnnt`; sizes it states must be those of the tensors.
        where: file and key, for messages.

    Raises:
        BadInput: missing, unexpected or misshapen tensors, each named; a type that is not float32; sizes that the
            configuration contradicts.
    """
    if not isinstance(state, Mapping) or not 0 < len(state) <= MAX_TENSORS:
        raise BadInput("this must be a dict of tensors", where, shown(state), f"1 to {MAX_TENSORS} tensors", _EXPORT)
    tensors: dict[str, TensorRef] = {}
    normalised: set[str] = set()
    for key, value in state.items():
        if not isinstance(key, str) or not isinstance(value, TensorRef):
            found = shown(value) if isinstance(key, str) else f"{shown(key)} as a name"
            raise BadInput(f"entry {shown(key)} is no tensor", where, found, "a name and a tensor", _EXPORT)
        if len(key) > MAX_NAME:
            raise BadInput(f"the name {shown(key)} is too long", where, len(key), f"at most {MAX_NAME}", _EXPORT)
        name = key
        # Distributed training wraps the model, and each wrapper puts its own prefix in front.
        while name.startswith("module."):
            name = name.removeprefix("module.")
        group = variant_of(name)
        if group is not None:
            normalised.add(group)
        name = plain_name(name)
        if name in tensors:
            what = f"two tensors have the name {shown(name)} without their prefix"
            raise BadInput(what, where, f"{shown(key)} and another", "one of them", _EXPORT)
        if not is_counter(name):
            tensors[name] = value
    duplicates = {name: tensors.pop(name) for name in _DUPLICATES if name in tensors}
    norms = {name: tensors.pop(name) for name in list(tensors) if is_norm(name)}
    dims = _sizes({name: ref.shape for name, ref in tensors.items()}, config, where)
    normalised |= {group for group in GROUPS if any(name.startswith(group) for name in norms)}
    _check_extra(norms, duplicates, dims, normalised, where)
    _check_flags(config, normalised, where)
    _check_types({**tensors, **norms, **duplicates}, where)
    return WeightRefs({name: tensors[name] for name in dims.shapes()}, norms, duplicates, dims)


def finish(
    tensors: Mapping[str, np.ndarray],
    norms: Mapping[str, np.ndarray],
    duplicates: Mapping[str, np.ndarray],
    dims: ModelDims,
    where: str,
) -> Weights:
    """Checks the values of tensors that `weight_refs` has passed, and folds batch normalisation away.

    Raises:
        BadInput: NaN or infinity; a duplicate that differs from its original; a normalisation that cannot be folded.
    """
    for name, array in {**tensors, **norms}.items():
        check_finite(array, name, where)
    for name, array in duplicates.items():
        if not np.array_equal(array, tensors[_DUPLICATES[name]]):
            what = f"{name} differs from {_DUPLICATES[name]}, its second name"
            raise BadInput(what, where, "other values", "equal tensors", _EXPORT)
    state = dict(tensors)
    pad = None
    if norms:
        state, pad = fold(state, norms, dims.stack, where)
        for name, array in state.items():
            check_finite(array, f"{name} with batch normalisation folded in", where)
    post_pad = np.zeros(dims.hidden, np.float32) if pad is None else pad
    check_finite(post_pad, "the pad of the time stack with batch normalisation folded in", where)
    return Weights({name: _owned(array) for name, array in state.items()}, _owned(post_pad), bool(norms))


def check_finite(array: np.ndarray, name: str, where: str) -> None:
    """Raises BadInput if `array` holds NaN or infinity, with their number and the first one's index."""
    finite = np.isfinite(array)
    if not finite.all():
        index = tuple(map(int, np.unravel_index(int(np.argmin(finite)), array.shape)))
        bad = array.size - int(np.count_nonzero(finite))
        raise BadInput(
            f"{name} holds NaN or infinity",
            where,
            f"{bad} of {array.size} values, the first at {index}",
            "finite values",
            "training diverged before this checkpoint was saved: export an earlier one",
        )


def _owned(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array, np.float32)
    array.flags.writeable = False
    return array


def _sizes(shapes: dict[str, Shape], config: Section, where: str) -> ModelDims:
    """The sizes that all tensors and the configuration agree on."""
    derived = from_shapes(shapes)
    stated = {
        size: config.maybe_integer(key, int(size != "post_layers"), 1 << 20) for size, key in CONFIG_SIZES.items()
    }
    classes = shapes.get("joint_net.2.weight", (0,))[:1] or (0,)
    candidates = [] if derived is None else [derived]
    layers = [stated[size] or 0 for size in ("pre_layers", "post_layers", "pred_layers")]
    if None not in stated.values() and max(layers) <= MAX_LAYERS and classes[0] > 1:
        # First, so that of two equally good fits the one that the file states is taken.
        candidates.insert(0, ModelDims(classes=classes[0], **{k: v for k, v in stated.items() if v is not None}))
    if not candidates:
        raise BadInput(
            "there are no weights of an RNN-T in it",
            where,
            listed(f"{shown(name)} {shape}" for name, shape in shapes.items()) if shapes else "no tensors",
            "encoder.pre_rnn, encoder.post_rnn, prediction, joint_enc, joint_pred and joint_net tensors",
            _EXPORT,
        )
    dims, misfit = min(((dims, compare(shapes, dims)) for dims in candidates), key=lambda pair: pair[1].count)
    if misfit.count:
        raise _misfit_error(misfit, where)
    for size, key in CONFIG_SIZES.items():
        if stated[size] not in (None, getattr(dims, size)):
            raise BadInput(
                f"rnnt_config.rnnt.{key} contradicts the tensors", where, stated[size], getattr(dims, size), _EXPORT
            )
    return dims


def _misfit_error(misfit: Misfit, where: str) -> BadInput:
    parts = []
    if misfit.missing:
        parts.append("missing: " + listed(name for name, _ in misfit.missing))
    if misfit.unexpected:
        parts.append("unexpected: " + listed(shown(name) for name, _ in misfit.unexpected))
    if misfit.misshapen:
        parts.append("misshapen: " + listed(name for name, _, _ in misfit.misshapen))
    found = [(shown(name), shape) for name, shape in misfit.unexpected]
    found += [(name, shape) for name, shape, _ in misfit.misshapen]
    expected = [*misfit.missing, *((name, shape) for name, _, shape in misfit.misshapen)]
    return BadInput(
        "tensors do not fit the model: " + "; ".join(parts),
        where,
        listed(f"{name} {shape}" for name, shape in found) or "no such tensor",
        listed(f"{name} {shape}" for name, shape in expected) or "no such tensor",
        _EXPORT,
    )


def _check_extra(
    norms: Mapping[str, TensorRef],
    duplicates: Mapping[str, TensorRef],
    dims: ModelDims,
    normalised: Set[str],
    where: str,
) -> None:
    """Names and shapes of duplicates, and of the batch normalisations of the stacks of layers that have them."""
    expected: dict[str, Shape] = {name: dims.shapes()[_DUPLICATES[name]] for name in duplicates}
    for group in GROUPS:
        if group in normalised:
            layers, _, units = dims.lstm(group)
            expected |= norm_shapes(group, layers, units)
    found = {name: ref.shape for name, ref in {**norms, **duplicates}.items()}
    misfit = Misfit(
        tuple((name, shape) for name, shape in expected.items() if name not in found),
        tuple((name, shape) for name, shape in found.items() if name not in expected),
        tuple((name, found[name], shape) for name, shape in expected.items() if found.get(name, shape) != shape),
    )
    if misfit.count:
        raise _misfit_error(misfit, where)


def _check_flags(config: Section, normalised: Set[str], where: str) -> None:
    """What a configuration says of batch normalisation against the tensors."""
    for key, groups in _FLAGS.items():
        stated, real = config.maybe_flag(key), not normalised.isdisjoint(groups)
        if stated is not None and stated != real:
            expected = f"{real}, as batch_norms are {'there' if real else 'not'}"
            raise BadInput(f"rnnt_config.rnnt.{key} contradicts the tensors", where, stated, expected, _EXPORT)


def _check_types(tensors: Mapping[str, TensorRef], where: str) -> None:
    # bfloat16 is let through because every value of it is a float32 value.
    wrong = [(name, ref.dtype_name) for name, ref in tensors.items() if ref.dtype_name not in ("float32", "bfloat16")]
    if wrong:
        raise BadInput(
            "tensors are not float32: " + listed(name for name, _ in wrong),
            where,
            listed(f"{name} {kind}" for name, kind in wrong),
            "float32 (or bfloat16)",
            _EXPORT,
        )
