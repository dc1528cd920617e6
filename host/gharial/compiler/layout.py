# SPDX-License-Identifier: Apache-2.0
"""Where everything of a program lies: slots, scratch, and the sections emitted into code (docs/isa.md, section 2)."""

from dataclasses import dataclass
from typing import Any

from gharial.checkpoint.hardware import ModelDims
from gharial.compiler.emit import Images, Place, SectionEmitter, Target
from gharial.compiler.network import Network, pad_to
from gharial.compiler.schedule import Op, SumRoom, Value, schedule
from gharial.compiler.sections import encode_ops, joint_ops, predict_ops
from gharial.errors import BadInput
from gharial.isa.configs import Config
from gharial.isa.header import MAX_VECTORS
from gharial.isa.instructions import SECTION_LIMIT, Post, Space, operand
from gharial.isa.words import Words


@dataclass(frozen=True)
class Laid:
    """A network laid out: code by section, images, and the header's figures."""

    code: dict[str, list[Words]]
    images: Images
    header: dict[str, int]
    trace: list[dict[str, Any]]


class _Slot:
    """Bump allocation of a slot's A part and C part."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.a_units = 0
        self.c_units = 0

    def activation(self, values: int) -> int:
        at = self.a_units
        self.a_units += values // self.config.cols
        return at

    def cells(self, values: int) -> int:
        at = self.c_units
        self.c_units += values // self.config.cell_unit
        return at


class _Layout:
    """Lays one network out."""

    def __init__(self, network: Network, dims: ModelDims, config: Config, joint_shift: int, images: Images) -> None:
        self.network, self.dims, self.config, self.joint_shift = network, dims, config, joint_shift
        self.encoder, self.prediction = _Slot(config), _Slot(config)
        self.images = images
        self.scratch = 0
        self.sources: dict[Value, Place] = {}
        self.targets: dict[str, Target] = {}
        self.old_h: dict[str, int] = {}
        self.feature_units = network.layers["encoder.pre_rnn.0"].parts[0].padded // config.cols

    def _units(self, values: int) -> int:
        return values // self.config.cols

    def _scratch(self, units: int) -> int:
        at = self.scratch
        self.scratch += units
        return at

    def place(self) -> None:
        """Give every value its place: h and c in the slots in the order of the layers, the rest in scratch."""
        layers, dims = self.network.layers, self.dims
        names = [f"encoder.pre_rnn.{i}" for i in range(dims.pre_layers)]
        post = [f"encoder.post_rnn.{i}" for i in range(dims.post_layers)]
        prediction = [f"prediction.{i}" for i in range(dims.pred_layers)]
        self._scratch(dims.stack * self.feature_units)
        for slot, group in ((self.encoder, names + post), (self.prediction, prediction)):
            for name in group:
                layer = layers[name]
                h, c = slot.activation(layer.padded), slot.cells(layer.padded)
                self.old_h[name] = operand(Space.SOURCE, h)
                new = operand(Space.DESTINATION, h)
                fields = {"cell": c, "shift": layer.qc, "qh": layer.qh}
                if name in names:
                    # pre_rnn runs for several vectors: each result has its place, the last is also the new state.
                    units = self._units(layer.padded)
                    place = Place(operand(Space.SCRATCH, self._scratch(dims.stack * units)), units)
                    self.targets[name] = Target(Post.CELL, place, second=new, **fields)
                else:
                    place = Place(new)
                    self.targets[name] = Target(Post.CELL, place, **fields)
                for v in range(dims.stack if name in names else 1):
                    self.sources[name, v] = Place(place.operand + v * place.stride, place.stride)
        for name in ("joint_enc", "joint_pred"):
            self.targets[name] = Target(Post.I16, Place(0))
        self.targets["logits"] = Target(Post.LOGIT, Place(0))

    def source(self, op: Op) -> Place:
        """Where an op's first vector reads its input."""
        part = self.network.layers[op.layer].parts[op.part]
        if part.input == "h" and not op.reads:
            return Place(self.old_h[op.layer])
        if not op.reads:
            return Place(operand(Space.SCRATCH, op.vectors[0] * self.feature_units), self.feature_units)
        return self.sources[op.reads[0]]

    def emit(self, name: str, ops: list[Op], room: SumRoom, emitter: SectionEmitter) -> list[Words]:
        """Schedule and emit a section."""
        order = schedule(ops, room)
        if order is None:
            raise BadInput(
                "the model's layers are too wide for this configuration",
                where=self.config.name,
                found=f"section {name} needs more sum groups",
                expected=f"{self.config.sum_groups} sum groups of {self.config.rows} rows",
                remedy="compile for a larger configuration",
            )
        for op, start in order:
            emitter.matvec(op, start, self.source(op), self.targets[op.layer])
        if len(emitter.code) > SECTION_LIMIT:
            raise BadInput(
                "the model has too many layers", found=f"{len(emitter.code)} instructions", expected=f"{SECTION_LIMIT}"
            )
        return emitter.code

    def run(self) -> Laid:
        """Lay out, schedule and emit all sections."""
        network, dims, config = self.network, self.dims, self.config
        if not 1 <= dims.stack <= MAX_VECTORS:
            raise BadInput("stack-time factor not supported", found=dims.stack, expected=f"1 to {MAX_VECTORS}")
        self.place()
        emitters = {
            n: SectionEmitter(n, self.images, network.layers, dims.stack) for n in ("encode", "predict", "joint")
        }
        code: dict[str, list[Words]] = {}
        tokens, width = network.embedding.shape

        last_pre = f"encoder.pre_rnn.{dims.pre_layers - 1}"
        for v in range(1, dims.stack):
            destination = self.sources[last_pre, v].operand
            units = self._units(network.layers[last_pre].padded)
            emitters["encode"].lookup((last_pre, v), tokens * self._units(width), units, destination, True, at_most=v)
        decode_peak = self._decode_peak()
        room = SumRoom(config.sum_groups - decode_peak)
        ops = encode_ops(network, dims, config, shared=True)
        if schedule(list(ops), SumRoom(room.capacity)) is None:
            ops = encode_ops(network, dims, config, shared=False)
        code["encode"] = self.emit("encode", ops, room, emitters["encode"])

        embedded = operand(Space.SCRATCH, self._scratch(self._units(width)))
        self.sources["embedding", 0] = Place(embedded)
        emitters["predict"].lookup(("embedding", 0), 0, self._units(width), embedded, False)
        decode_room = SumRoom(config.sum_groups - room.peak, base=room.peak)
        code["predict"] = self.emit("predict", predict_ops(network, dims, config), decode_room, emitters["predict"])

        joint = network.layers["joint_enc"].padded
        joint_units = joint // config.cell_unit
        z = operand(Space.SCRATCH, self._scratch(self._units(pad_to(joint, config.cols))))
        self.sources["joint", 0] = Place(z)
        emitters["joint"].joint(joint_units, z, self.joint_shift)
        code["joint"] = self.emit("joint", joint_ops(network, config), decode_room, emitters["joint"])

        bank = self.encoder.cells(2 * joint)
        stored = self.prediction.cells(joint)
        header = {
            "feature_bytes": self.feature_units * config.cols,
            "vectors": dims.stack,
            "feature_unit": 0,
            "scratch_units": self.scratch,
            "enc_a_units": self.encoder.a_units,
            "enc_c_units": self.encoder.c_units,
            "pred_a_units": self.prediction.a_units,
            "pred_c_units": self.prediction.c_units,
            "joint_enc_unit": bank,
            "joint_enc_units": joint_units,
            "joint_pred_unit": stored,
            "joint_pred_units": joint_units,
            "sum_groups": max(room.peak, decode_room.peak),
            "tokens": tokens,
        }
        trace = [entry for name in ("encode", "predict", "joint") for entry in emitters[name].trace]
        return Laid(code, self.images, header, trace)

    def _decode_peak(self) -> int:
        """Fewest sum groups that predict and joint need, in plain order."""
        ops = predict_ops(self.network, self.dims, self.config)
        return max((op.groups for op in ops if op.keeps_sums), default=0)


def lay_out(network: Network, dims: ModelDims, config: Config, joint_shift: int, images: Images | None = None) -> Laid:
    """Lay a network out for a configuration.

    Args:
        network: the quantised layers.
        dims: sizes.
        config: the configuration.
        joint_shift: zs.
        images: what the matrices are put into; None for new ones.

    Raises:
        BadInput: its sections do not fit in the sums or the instruction count (the caller checks the spaces).
    """
    return _Layout(network, dims, config, joint_shift, Images(config) if images is None else images).run()
