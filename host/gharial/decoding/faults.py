# SPDX-License-Identifier: Apache-2.0
"""Why a stream of the beam search can fail (docs/decoding.md, section 8)."""

from __future__ import annotations

from enum import IntEnum

from gharial.errors import DeviceError, GharialError


class Fault(IntEnum):
    """Why a stream failed."""

    NONE = 0
    COUNT = 1
    CLASS = 2
    ORDER = 3
    NAMED = 4
    LSE = 5
    SLOTS = 6
    MEMORY = 7
    LOST = 8
    NGRAM = 9


_OF_DEVICE = {
    Fault.COUNT: "a result lists another number of classes than was asked for",
    Fault.CLASS: "a result lists a class that the model does not have, or one twice",
    Fault.ORDER: "a result's logits do not fall",
    Fault.NAMED: "a named class' logit contradicts the result's list",
    Fault.LSE: "a result's log-sum-exp cannot be that of its logits",
    Fault.LOST: "the command of the stream's step failed",
}
_OF_HOST = {
    Fault.SLOTS: "there is no free prediction slot for the stream's step: take a smaller beam or a larger device",
    Fault.MEMORY: "out of memory",
    Fault.NGRAM: "the n-gram's score is no finite number: its file is damaged, or was built from such numbers",
}


def failure(fault: int) -> GharialError:
    """What to raise for a fault that is not NONE."""
    known = Fault(fault)
    if known in _OF_DEVICE:
        return DeviceError(_OF_DEVICE[known], unit="decode results")
    return GharialError(_OF_HOST[known])
