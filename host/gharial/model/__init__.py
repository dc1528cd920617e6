# SPDX-License-Identifier: Apache-2.0
"""Models as the host sees them: opened from a checkpoint or a program, with front end and vocabulary.

- `open_model(model, config)`: a verified program from whatever file was named; checkpoints are compiled and cached.
- `front_end(program)`: the feature settings that the program's network was trained with.
- `vocabulary(program)`: text of its tokens.
- `prefixes(program)`: what it can be told before the audio.
- `ngram_of(program)`: the n-gram file that lies beside it.
"""

from gharial.model.compiling import compile_model, is_program
from gharial.model.ngram import ngram_of
from gharial.model.opening import demo_model, front_end, open_model, prefixes, vocabulary
from gharial.model.vocabulary import Detokeniser, Vocabulary

__all__ = [
    "Detokeniser",
    "Vocabulary",
    "compile_model",
    "demo_model",
    "front_end",
    "is_program",
    "ngram_of",
    "open_model",
    "prefixes",
    "vocabulary",
]
