# SPDX-License-Identifier: Apache-2.0
"""Prefixes of one model: which it takes, and the tokens that go through the prediction network for them.

docs/prefixes.md says what each kind of model takes, and why.
"""

from __future__ import annotations

from functools import cached_property

from gharial.checkpoint.hardware import HardwareCheckpoint
from gharial.checkpoint.prefix_spec import PrefixSpec
from gharial.checkpoint.sentencepiece_model import PieceKind, read_pieces
from gharial.checkpoint.text import listed, shown
from gharial.errors import BadInput

_LISTED = 8  # prefixes or symbols that an error names


class Prefixes:
    """The prefixes of one model.

    Args:
        spec: what the model says about them, None if nothing.
        sentencepiece: bytes of its SentencePiece model.
        where: name of the model, for errors.
    """

    def __init__(self, spec: PrefixSpec | None, sentencepiece: bytes, where: str) -> None:
        self._spec = spec
        self._sentencepiece = sentencepiece
        self._where = where

    @classmethod
    def of(cls, checkpoint: HardwareCheckpoint) -> Prefixes:
        """Those of a checkpoint."""
        return cls(checkpoint.prefix_spec, checkpoint.sentencepiece, checkpoint.path)

    @property
    def valid(self) -> tuple[str, ...] | None:
        """Every prefix that the model takes, sorted; None where that is not known. `("",)`: it takes none."""
        return None if self._spec is None else self._spec.prefixes

    @property
    def default(self) -> str | None:
        """The prefix that is used where none is asked for; None where the model names none."""
        return None if self._spec is None else self._spec.default

    @cached_property
    def symbols(self) -> dict[str, int]:
        """Token ids of the vocabulary's user-defined symbols, by their text."""
        pieces = read_pieces(self._sentencepiece, f"{self._where}: sentencepiece")
        return {piece.text: token for token, piece in enumerate(pieces) if piece.kind == PieceKind.USER_DEFINED}

    def tokens(self, prefix: str | None = None) -> tuple[int, ...]:
        """The tokens of a prefix, () for no prefix.

        Args:
            prefix: the prefix, "" for none; None for the model's own choice: its default prefix, or none.

        Raises:
            BadInput: the model does not take the prefix, or does not do without one; it is not known which prefixes
                the model takes; or the prefix is not made of the vocabulary's user-defined symbols alone.
        """
        if prefix is None and self.default is not None:
            return self._tokenised(self.default, "default_prefix")
        asked = prefix or ""
        if self.valid is None:
            # Nothing can be said against no prefix, where nothing is known.
            if asked and asked != self.default:
                raise self._unknown(asked)
        elif asked not in self.valid:
            raise self._invalid(asked)
        return self._tokenised(asked, "prefix")

    def usual(self) -> tuple[int, ...]:
        """The tokens that recordings are measured with: those of the default prefix, else of the first that is valid.

        Raises:
            BadInput: they are not made of the vocabulary's user-defined symbols.
        """
        if self.default is None and self.valid and "" not in self.valid:
            return self.tokens(self.valid[0])
        return self.tokens()

    def _tokenised(self, prefix: str, what: str) -> tuple[int, ...]:
        """Token ids, the longest symbol first at each place, as SentencePiece does it."""
        if not prefix:
            return ()
        tokens, at = [], 0
        longest = max(map(len, self.symbols), default=0)
        while at < len(prefix):
            sizes = range(min(longest, len(prefix) - at), 0, -1)
            size = next((size for size in sizes if prefix[at : at + size] in self.symbols), 0)
            if not size:
                raise BadInput(
                    "the prefix is not made of the vocabulary's user-defined symbols",
                    f"{self._where}: {what}",
                    f"{shown(prefix)}, which goes on with {shown(prefix[at:], 24)} where a symbol should begin",
                    self._shown_symbols(),
                    "give a prefix of these symbols, or the model another SentencePiece model",
                )
            tokens.append(self.symbols[prefix[at : at + size]])
            at += size
        return tuple(tokens)

    def _unknown(self, prefix: str) -> BadInput:
        where = f"{self._where}: prefix"
        if self._spec is None:
            return BadInput(
                "the prefix cannot be checked, for the model does not say which it takes",
                where,
                shown(prefix),
                f"none (of the vocabulary's user-defined symbols, {self._shown_symbols()}, any might be one)",
                "leave the prefix out, or export the model with its prefix_spec",
            )
        default = "" if self.default is None else f", or the default, {_quoted(self.default)}"
        return BadInput(
            "the prefix cannot be checked, for the model's valid_prefix is no list that can be written out",
            where,
            shown(prefix),
            f"none{default}; valid_prefix is {shown(self._spec.pattern)}",
            "export the model with a valid_prefix of literals, groups, '|' and '?' alone",
        )

    def _invalid(self, prefix: str) -> BadInput:
        assert self.valid is not None
        where = f"{self._where}: prefix"
        if self.valid == ("",):
            return BadInput("the model takes no prefix", where, shown(prefix), "none", "leave the prefix out")
        what = "the model does not take this prefix" if prefix else "the model needs a prefix, and names no default"
        if not prefix and self.default is not None:
            what = "the model needs a prefix"
        expected = listed(map(_quoted, self.valid), _LISTED)
        return BadInput(what, where, _quoted(prefix), expected, "give one of these as the prefix")

    def _shown_symbols(self) -> str:
        return listed(map(shown, self.symbols), _LISTED) or "none"


def _quoted(prefix: str) -> str:
    """A prefix for a person; the empty one is seen too."""
    return shown(prefix) or "''"
