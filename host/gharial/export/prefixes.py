# SPDX-License-Identifier: Apache-2.0
"""`prefix_spec` of the hardware checkpoint: which prefixes the model was trained with.

How CAIMAN-ASR's training keeps them is not public beyond the two values that the hardware checkpoint ends up with, so
they are taken from wherever the user's side states them, in this order, and two statements must be the same:

1. the options --valid-prefix and --default-prefix;
2. the training checkpoint: `prefix_spec`, or the same or `valid_prefix` and `default_prefix` among its `args`;
3. the configuration: a section `prefix_spec`.

With none the key stays away, which says that the prefixes are unknown.
"""

from __future__ import annotations

from typing import Any

from gharial.checkpoint.prefix_spec import PrefixSpec, parse_prefix_spec
from gharial.checkpoint.prefixes import Prefixes
from gharial.checkpoint.text import shown
from gharial.errors import BadInput
from gharial.export.configuration import TrainingConfig
from gharial.export.training import TrainingCheckpoint


def prefix_spec(
    checkpoint: TrainingCheckpoint,
    config: TrainingConfig,
    sentencepiece: bytes,
    valid_prefix: str | None,
    default_prefix: str | None,
) -> dict[str, str | None] | None:
    """`{valid_prefix, default_prefix}`, or None where the prefixes are unknown.

    Args:
        checkpoint: the training checkpoint.
        config: the configuration.
        sentencepiece: the tokeniser's model, whose user-defined symbols prefixes are made of.
        valid_prefix: what the option says.
        default_prefix: the same.

    Raises:
        BadInput: a statement that is none, or two that differ; a default without prefixes, or not among them; a prefix
            that is not made of the model's symbols.
    """
    if valid_prefix is None and default_prefix is not None:
        raise BadInput(
            "a default prefix without the prefixes",
            "--default-prefix",
            shown(default_prefix) or "''",
            "--valid-prefix with it",
            "give --valid-prefix too, the regular expression of all prefixes",
        )
    options = None if valid_prefix is None else {"valid_prefix": valid_prefix, "default_prefix": default_prefix}
    statements = (
        ("--valid-prefix", options),
        (f"{checkpoint.path}: prefix_spec", checkpoint.prefix_spec),
        (f"{config.path}: prefix_spec", config.prefix_spec),
    )
    found: tuple[str, dict[str, str | None]] | None = None
    for where, value in statements:
        parsed = parse_prefix_spec(value, where)
        if parsed is None:
            continue
        spec = {"valid_prefix": parsed.pattern, "default_prefix": parsed.default}
        if found is not None and found[1] != spec:
            raise BadInput(
                f"the prefixes contradict {found[0]}",
                where,
                _told(spec),
                _told(found[1]),
                "give the checkpoint, the configuration and the options of one training",
            )
        if found is None:
            found = where, spec
            _check_symbols(parsed, sentencepiece, where)
    return None if found is None else found[1]


def _check_symbols(spec: PrefixSpec, sentencepiece: bytes, where: str) -> None:
    prefixes = Prefixes(spec, sentencepiece, where)
    for prefix in spec.prefixes or ():
        prefixes.tokens(prefix)
    if spec.default is not None:
        prefixes.tokens(spec.default)


def _told(spec: dict[str, Any]) -> str:
    return f"{shown(spec['valid_prefix'])} (default {shown(spec['default_prefix'])})"
