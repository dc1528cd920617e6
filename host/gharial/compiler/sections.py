# SPDX-License-Identifier: Apache-2.0
"""The three sections of a program as parts in plain order: encode, predict, joint (docs/isa.md, section 4)."""

from collections.abc import Iterable

from gharial.checkpoint.hardware import ModelDims
from gharial.compiler.network import Layer, Network
from gharial.compiler.schedule import Op, Value
from gharial.isa.configs import Config


def _part(layer: Layer, name: str) -> list[int]:
    return [index for index, part in enumerate(layer.parts) if part.input == name]


class _Section:
    """Collects ops of a section."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.ops: list[Op] = []

    def add(
        self,
        layer: Layer,
        part: int,
        vectors: Iterable[int],
        first: Iterable[int],
        last: Iterable[int],
        reads: Iterable[Value],
        region: tuple[str, int],
    ) -> None:
        """Append one op; region is (name, feature vectors whose sums it holds)."""
        where = tuple(vectors)
        groups = len(layer.bias) // self.config.rows
        cost = groups * (layer.parts[part].padded // self.config.cols) * len(where)
        firsts, lasts = frozenset(first), frozenset(last)
        self.ops.append(Op(layer.name, part, where, firsts, lasts, tuple(reads), cost, region[0], groups * region[1]))

    def recurrent(self, layer: Layer, x_reads: list[list[Value]]) -> None:
        """An LSTM layer over one vector: h part, then the x parts; x_reads lists what each x part reads."""
        (h_part,) = _part(layer, "h")
        x_parts = _part(layer, "x")
        region = (layer.name, 1)
        self.add(layer, h_part, [0], [0], [], [], region)
        for index, reads in zip(x_parts, x_reads, strict=True):
            self.add(layer, index, [0], [], [0] if index == x_parts[-1] else [], reads, region)

    def linear(self, layer: Layer, x_reads: list[list[Value]]) -> None:
        """A dense layer over one vector; x_reads lists what each part reads."""
        parts = list(zip(_part(layer, "x"), x_reads, strict=True))
        for index, reads in parts:
            first, last = [0] if index == parts[0][0] else [], [0] if index == parts[-1][0] else []
            self.add(layer, index, [0], first, last, reads, (layer.name, int(len(parts) > 1)))


def encode_ops(network: Network, dims: ModelDims, config: Config, shared: bool) -> list[Op]:
    """Section encode.

    Args:
        network: the quantised layers.
        dims: sizes.
        config: the configuration.
        shared: one weight pass of pre_rnn's x parts for all vectors of a step; needs sums for all of them.
    """
    section = _Section(config)
    vectors = list(range(dims.stack))
    below: str | None = None
    for index in range(dims.pre_layers):
        layer = network.layers[f"encoder.pre_rnn.{index}"]
        (x_part,), (h_part,) = _part(layer, "x"), _part(layer, "h")
        # The first layer's x is known beforehand. With one vector a step its h would be written where it is still read.
        x_first = index == 0 and dims.stack > 1

        def x_reads(vs: list[int], source: str | None = below) -> list[Value]:
            return [(source, v) for v in vs] if source else []

        def h_reads(v: int, name: str = layer.name) -> list[Value]:
            return [(name, v - 1)] if v else []

        if shared:
            region = (layer.name, len(vectors))
            if x_first and not config.in_memory:
                # On chip a tile costs nothing to read again: a later vector's x fills the wait for the h before it.
                for v in vectors:
                    section.add(layer, x_part, [v], [v], [], x_reads([v]), region)
                    section.add(layer, h_part, [v], [], [v], h_reads(v), region)
                below = layer.name
                continue
            if x_first:
                section.add(layer, x_part, vectors, vectors, [], x_reads(vectors), region)
                rest = vectors
            else:
                section.add(layer, h_part, [0], [0], [], [], region)
                section.add(layer, x_part, vectors, vectors[1:], [0], x_reads(vectors), region)
                rest = vectors[1:]
            for v in rest:
                section.add(layer, h_part, [v], [], [v], h_reads(v), region)
        else:
            for v in vectors:
                region = (f"{layer.name}@{v}", 1)
                parts = [(x_part, x_reads([v])), (h_part, h_reads(v))]
                if index:
                    parts.reverse()
                section.add(layer, parts[0][0], [v], [v], [], parts[0][1], region)
                section.add(layer, parts[1][0], [v], [], [v], parts[1][1], region)
        below = layer.name
    assert below is not None
    x_lists: list[list[Value]] = [[(below, v)] for v in vectors]
    for index in range(dims.post_layers):
        layer = network.layers[f"encoder.post_rnn.{index}"]
        section.recurrent(layer, x_lists)
        x_lists = [[(layer.name, 0)]]
    section.linear(network.layers["joint_enc"], x_lists)
    return section.ops


def predict_ops(network: Network, dims: ModelDims, config: Config) -> list[Op]:
    """Section predict; the embedding row is value ("embedding", 0)."""
    section = _Section(config)
    x_lists: list[list[Value]] = [[("embedding", 0)]]
    for index in range(dims.pred_layers):
        layer = network.layers[f"prediction.{index}"]
        section.recurrent(layer, x_lists)
        x_lists = [[(layer.name, 0)]]
    section.linear(network.layers["joint_pred"], x_lists)
    return section.ops


def joint_ops(network: Network, config: Config) -> list[Op]:
    """Section joint after its JOINT instruction, whose result is value ("joint", 0)."""
    section = _Section(config)
    section.linear(network.layers["logits"], [[("joint", 0)]])
    return section.ops
