# SPDX-License-Identifier: Apache-2.0
"""Header of a program's code space (docs/isa.md, section 4) and the space numbers (section 2)."""

from collections.abc import Mapping
from enum import IntEnum

from gharial.isa.words import Field, Record

MAGIC = 0x50524847
INTERFACE_VERSION = 0x00010001
INTERFACE_TEXT = "1.1"


class ProgramSpace(IntEnum):
    """Spaces that LOAD fills."""

    CODE = 0
    WEIGHTS = 1
    SCALES = 2
    BIASES = 3
    TABLES = 4
    EMBEDDING = 5


TABLE_ENTRIES = {"sigmoid": 512, "tanh": 512, "exp": 64, "log": 64}
TABLE_BYTES = 8 * sum(TABLE_ENTRIES.values())
MAX_VECTORS = 4
MAX_COLUMNS = 65536
LOGIT_BITS = range(4, 13)

HEADER = Record(
    "header",
    64,
    {
        "magic": Field(0),
        "version": Field(1),
        "config_id": Field(2),
        "program_id": Field(3),
        "code_bytes": Field(4),
        "weight_bytes": Field(5),
        "scale_bytes": Field(6),
        "bias_bytes": Field(7),
        "table_bytes": Field(8),
        "embed_bytes": Field(9),
        "predict_first": Field(10, 0, 16),
        "predict_count": Field(10, 16, 16),
        "encode_first": Field(11, 0, 16),
        "encode_count": Field(11, 16, 16),
        "joint_first": Field(12, 0, 16),
        "joint_count": Field(12, 16, 16),
        "feature_bytes": Field(13, 0, 16),
        "vectors": Field(13, 16, 8),
        "feature_unit": Field(14, 0, 16),
        "scratch_units": Field(14, 16, 16),
        "enc_a_units": Field(15, 0, 16),
        "enc_c_units": Field(15, 16, 16),
        "pred_a_units": Field(16, 0, 16),
        "pred_c_units": Field(16, 16, 16),
        "joint_enc_unit": Field(17, 0, 16),
        "joint_enc_units": Field(17, 16, 16),
        "joint_pred_unit": Field(18, 0, 16),
        "joint_pred_units": Field(18, 16, 16),
        "classes": Field(19, 0, 16),
        "blank": Field(19, 16, 16),
        "logit_bits": Field(20, 0, 8),
        "sum_groups": Field(21, 0, 16),
        "tokens": Field(21, 16, 16),
        "crc": Field(63),
    },
)


def tokens_needed(header: Mapping[str, int]) -> int:
    """Rows that the embedding of a program must have: GREEDY feeds every class but blank back into the network."""
    return header["classes"] - (header["blank"] == header["classes"] - 1)
