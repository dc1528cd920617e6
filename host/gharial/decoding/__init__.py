# SPDX-License-Identifier: Apache-2.0
"""Beam search on the host over the results of DECODE commands (docs/decoding.md)."""

from gharial.decoding.faults import Fault
from gharial.decoding.keywords import Keywords, read_keywords
from gharial.decoding.options import DecoderOptions, EosStrategy
from gharial.decoding.search import BeamSearch, Hypothesis, NgramScorer, Outcome, SearchModel, Token, asked_for

__all__ = [
    "BeamSearch",
    "DecoderOptions",
    "EosStrategy",
    "Fault",
    "Hypothesis",
    "Keywords",
    "NgramScorer",
    "Outcome",
    "SearchModel",
    "Token",
    "asked_for",
    "read_keywords",
]
