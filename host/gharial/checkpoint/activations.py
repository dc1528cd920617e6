# SPDX-License-Identifier: Apache-2.0
"""Whether a configuration asks for hard activations, which change what every LSTM computes; never passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gharial.checkpoint.config import Section
from gharial.checkpoint.text import shown
from gharial.errors import BadInput

FLAG, KERNEL = "hard_activation_functions", "custom_lstm"


def hard_activations(configuration: Any, where: str) -> bool:
    """Whether the LSTMs were trained with hard activations.

    The flag of early configurations took effect only with `custom_lstm`; configurations of 1.8 and later cannot state
    either.

    Args:
        configuration: `rnnt_config`, or the training's own; None for none.
        where: file and key, for messages.

    Raises:
        BadInput: a flag that is neither True nor False, or one outside `rnnt`, where it is not known what it means.
    """
    root = Section(configuration, where)
    network = root.section("rnnt")
    for section, value in _elsewhere(configuration or {}):
        if value not in (None, False):
            at = FLAG if section is None else f"{shown(section)}.{FLAG}"
            what = f"{FLAG} outside the section rnnt is not understood"
            remedy = "move it to the section rnnt, where configurations of CAIMAN-ASR have it, and export again"
            raise BadInput(what, f"{where}: {at}", shown(value), "none there, or False", remedy)
    return network.flag(FLAG) and network.flag(KERNEL, True)


def _elsewhere(configuration: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Name of the section (None at the top) and value of every such flag but rnnt's own."""
    seen: set[int] = set()
    left: list[tuple[Any, Mapping[Any, Any]]] = [(None, configuration)]
    while left:
        name, section = left.pop()
        # Once each: a section of YAML may hold itself, one of a pickle may stand in many places.
        if id(section) in seen:
            continue
        seen.add(id(section))
        if FLAG in section and section is not configuration.get("rnnt"):
            yield name, section[FLAG]
        left += [(key, value) for key, value in section.items() if isinstance(value, Mapping)]
