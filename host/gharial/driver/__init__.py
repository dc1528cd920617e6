# SPDX-License-Identifier: Apache-2.0
"""The driver: the same for every device behind gharial.devices (docs/driver.md)."""

from gharial.driver.driver import Driver
from gharial.driver.entries import DecodeBatch, DecodeEntry, EncodeBatch, EncodeEntry, GreedyEntry
from gharial.driver.layout import MemoryPlan, Region, plan_memory
from gharial.driver.registers import Counters
from gharial.driver.results import DecodeForm, DecodeResult, GreedyResult, LogitScale
from gharial.driver.session import Recovery
from gharial.driver.slots import SlotImage, SlotPool
from gharial.driver.ticket import Ticket

__all__ = [
    "Counters",
    "DecodeBatch",
    "DecodeEntry",
    "DecodeForm",
    "DecodeResult",
    "Driver",
    "EncodeBatch",
    "EncodeEntry",
    "GreedyEntry",
    "GreedyResult",
    "LogitScale",
    "MemoryPlan",
    "Recovery",
    "Region",
    "SlotImage",
    "SlotPool",
    "Ticket",
    "plan_memory",
]
