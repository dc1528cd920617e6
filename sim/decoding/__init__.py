# SPDX-License-Identifier: Apache-2.0
"""Beam search as docs/decoding.md says it: plain and slow, the specification that a fast search is held against."""

from sim.decoding.eos import Eos, EosStrategy
from sim.decoding.keywords import Keywords, Threads
from sim.decoding.search import BeamOptions, BeamSearch, Hypothesis, Scores, Scoring, Token

__all__ = [
    "BeamOptions",
    "BeamSearch",
    "Eos",
    "EosStrategy",
    "Hypothesis",
    "Keywords",
    "Scores",
    "Scoring",
    "Threads",
    "Token",
]
