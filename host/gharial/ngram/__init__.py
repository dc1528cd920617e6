# SPDX-License-Identifier: Apache-2.0
"""N-grams over the pieces of a SentencePiece model: KenLM binaries with a mark of whom they are for (docs/ngram.md).

- `read_file(path)`: what a file is. `check_file(path, sentencepiece)`: the same for use with a model; another model's
  is refused.
- `NgramModel(path, sentencepiece)`: scores, from the file mapped into memory.
- `append_mark(path, sentencepiece)`: say whom a file is for.
"""

from gharial.ngram.checking import NgramFile, check_file, read_file, unmarked
from gharial.ngram.header import BinaryHeader
from gharial.ngram.marking import append_mark
from gharial.ngram.model import NgramModel
from gharial.ngram.trailer import Mark

__all__ = ["BinaryHeader", "Mark", "NgramFile", "NgramModel", "append_mark", "check_file", "read_file", "unmarked"]
