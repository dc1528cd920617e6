# SPDX-License-Identifier: Apache-2.0
"""The options of decoding, the same for every command that recognises speech (docs/decoding.md).

A command adds them with `add_decoding`, has them checked with `decoding` before a model is opened, and opens the model
under `Decoding.named`: so every error names the option that caused it. Imports nothing heavy.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gharial.errors import BadInput

if TYPE_CHECKING:
    from gharial.decoding import DecoderOptions
    from gharial.recognise import Recogniser, StreamOptions

DECODERS = ("greedy", "beam")
EOS_MODES = ("classic", "stream", "terminal")
_EOS_STRATEGIES = ("none", "ignore", "blank", "predict")
NO_NGRAM = "none"
_MOST_SILENCE = 1e9  # seconds; the same as of StreamOptions, which is not imported for it

_FIELDS = {
    "beam_width": "width",
    "temperature": "temperature",
    "max_symbols": "max_symbols",
    "max_expansions": "max_expansions",
    "topk_threshold": "topk_threshold",
    "score_threshold": "score_threshold",
    "final_limit": "final_limit_s",
    "blank_penalty": "blank_penalty",
    "ngram_scale": "ngram_scale",
    "eos_strategy": "eos",
    "eos_alpha": "eos_alpha",
    "eos_beta": "eos_beta",
    "merge_lone_marks": "merge_lone_marks",
}
"""Fields of DecoderOptions by the name of their option."""

_BEAM_ONLY = ("ngram", "keywords", *_FIELDS)


@dataclass(frozen=True)
class Decoding:
    """How to decode, as the command line says it, checked as far as it can be without a model.

    Attributes:
        decoder: "greedy" or "beam".
        options: settings of the beam search, None for greedy.
        ngram: the file; False for no n-gram; None for the one that belongs to the model, if there is one.
        prefix: what the model is told before the audio, None for its default.
        keywords: boosts by keyword.
        keyword_file: where they came from.
        eos_mode: what becomes of an end-of-sequence token.
        state_resets: whether the network begins anew now and then.
        silence_s: seconds without a token that end a stream, None for none.
        alternatives: readings asked for.
    """

    decoder: str
    options: DecoderOptions | None
    ngram: str | Literal[False] | None
    prefix: str | None = None
    keywords: Mapping[str, float] | None = None
    keyword_file: str | None = None
    eos_mode: str = EOS_MODES[0]
    state_resets: bool = False
    silence_s: float | None = None
    alternatives: int = 1

    @contextmanager
    def named(self) -> Iterator[None]:
        """Have errors about a setting, the n-gram or the keywords name the option that brought them."""
        with _named(_FIELDS | {"eos_mode": "eos_mode"}, {"ngram": self.ngram, "keywords": self.keyword_file}):
            yield

    def streams(self, recogniser: Recogniser) -> StreamOptions:
        """Options of a stream, held against the open model.

        Raises:
            BadInput: the model cannot do what is asked, or a keyword is none that it can spell.
        """
        from gharial.model import ngram_of
        from gharial.recognise import EosMode, StateResets, StreamOptions

        with self.named():
            scale = self.options and self.options.ngram_scale
            if scale is not None and self.ngram is None and ngram_of(recogniser.program) is None:
                raise BadInput(
                    "there is no n-gram to weigh",
                    "ngram_scale",
                    "none beside the program",
                    "an n-gram",
                    "add --ngram F, or leave the scale out",
                )
            options = StreamOptions(
                prefix=self.prefix,
                keywords=None if self.keyword_file is None else recogniser.keywords(self.keyword_file),
                eos_mode=EosMode(self.eos_mode),
                state_resets=StateResets() if self.state_resets else None,
                silence_s=self.silence_s,
                alternatives=self.alternatives,
            )
            return recogniser.checked(options)


def add_decoding(
    parser: argparse.ArgumentParser, *, decoder: str = "greedy", resets: bool = False, without: Collection[str] = ()
) -> None:
    """Add the options to a command's parser, in groups of their own.

    Args:
        parser: the command's.
        decoder: the command's default.
        resets: whether the state is reset where nothing is said about it.
        without: names of options that the command does not have ("alternatives").
    """
    groups: dict[str, Any] = {}

    def add(group: str, flag: str, **how: Any) -> None:
        if flag.removeprefix("--").replace("-", "_") not in without:
            if group not in groups:
                groups[group] = parser.add_argument_group(group)
            groups[group].add_argument(flag, **how)

    every, beam, fine = "decoding", "beam search (--decoder beam)", "beam search, fine settings (docs/decoding.md)"
    add(every, "--decoder", choices=DECODERS, default=decoder, help=f"how the text is looked for ({decoder})")
    add(every, "--prefix", metavar="P", help="what the model is told before the audio; default: its own default prefix")
    add(every, "--eos-mode", choices=EOS_MODES, help="end-of-sequence tokens: hidden, shown, or they end the stream")
    add(every, "--silence", metavar="S", type=float, help="end a stream when nothing was said for S seconds")
    resets_help = f"begin anew every 12 s, for long audio ({'on' if resets else 'off'})"
    add(every, "--state-resets", action=argparse.BooleanOptionalAction, help=resets_help)
    add(beam, "--beam-width", metavar="N", type=int, help="hypotheses kept, 1 to 32 (4)")
    add(beam, "--alternatives", metavar="N", type=int, help="readings to print, up to the beam's width (1)")
    add(beam, "--ngram", metavar="F", help="n-gram file, or none; default: the one beside the program, if there is one")
    add(beam, "--ngram-scale", metavar="X", type=float, help="weight of the n-gram; default: the model's, or 0.05")
    add(beam, "--keywords", metavar="F", help='JSON file {"keywords": {text: boost}}; boosts of -1 to 1 as a rule')
    add(fine, "--temperature", metavar="T", type=float, help="logits are divided by it (1.4)")
    add(fine, "--blank-penalty", metavar="X", type=float, help="taken off the logit of blank (0)")
    add(fine, "--max-symbols", metavar="N", type=int, help="tokens of a hypothesis in a step of 60 ms, 1 to 255 (8)")
    add(fine, "--max-expansions", metavar="N", type=int, help="evaluations in a step (4 times the width + max-symbols)")
    add(fine, "--topk-threshold", metavar="X", type=float, help="how far a token may be below the best; -1: any (1.5)")
    add(fine, "--score-threshold", metavar="X", type=float, help="the same of hypotheses (0.4)")
    add(fine, "--final-limit", metavar="S", type=float, help="seconds until text must be final; -1: no limit (1.25)")
    strategies = "end of sequence: a token as any other, never, as blank, or weighed (none)"
    add(fine, "--eos-strategy", choices=_EOS_STRATEGIES, help=strategies)
    add(fine, "--eos-alpha", metavar="X", type=float, help="with predict: factor of its log-probability (1)")
    add(fine, "--eos-beta", metavar="P", type=float, help="with predict: its least probability (0)")
    lone = "a lone word mark at the start is no text, as CAIMAN-ASR's decoder has it"
    add(fine, "--merge-lone-marks", action="store_const", const=True, help=lone)
    parser.set_defaults(**dict.fromkeys(without))
    parser.set_defaults(state_resets=resets)


def decoding(args: argparse.Namespace) -> Decoding:
    """What the options say.

    Raises:
        BadInput: an option is out of its range, contradicts another, or names a file that cannot be used; it names it.
    """
    given = [name for name in _BEAM_ONLY if getattr(args, name) is not None]
    beam = args.decoder == "beam"
    for name in given:
        if not beam and not (name == "ngram" and args.ngram == NO_NGRAM):
            raise BadInput(
                "this is a setting of the beam search",
                _flag(name),
                f"--decoder {args.decoder}",
                "--decoder beam",
                "add it (with --beam-width 1 it is a greedy search on the host), or leave the setting out",
            )
    options = _options({name: getattr(args, name) for name in given if name in _FIELDS}) if beam else None
    _check_company(args)
    silence = args.silence
    if silence is not None and not (0 < silence <= _MOST_SILENCE):
        expected = f"seconds, above 0, {_MOST_SILENCE:g} at most"
        raise BadInput("this is no span of time", "--silence", silence, expected, "leave it out for no limit")
    alternatives = 1 if args.alternatives is None else args.alternatives
    most = options.width if options else 1
    if not 1 <= alternatives <= most:
        remedy = "give a larger --beam-width, or fewer" if beam else "add --decoder beam"
        expected = f"1 to the beam's width, {most}" if beam else "1 of a greedy decoder"
        raise BadInput("so many readings there are not", "--alternatives", alternatives, expected, remedy)
    ngram: str | Literal[False] | None = False if args.ngram == NO_NGRAM else args.ngram
    keywords = None
    with _named({}, {"ngram": ngram, "keywords": args.keywords}):
        if isinstance(ngram, str):
            from gharial.ngram import read_file

            read_file(ngram)  # whose it is shows when the model is open
        if args.keywords is not None:
            from gharial.decoding import read_keywords

            keywords = read_keywords(args.keywords)
    return Decoding(
        args.decoder,
        options,
        ngram,
        prefix=args.prefix,
        keywords=keywords,
        keyword_file=args.keywords,
        eos_mode=args.eos_mode or EOS_MODES[0],
        state_resets=bool(args.state_resets),
        silence_s=silence,
        alternatives=alternatives,
    )


def _options(given: Mapping[str, Any]) -> DecoderOptions:
    from gharial.decoding import DecoderOptions

    with _named(_FIELDS, {}):
        return DecoderOptions(**{_FIELDS[name]: value for name, value in given.items()})


def _check_company(args: argparse.Namespace) -> None:
    """Options that say nothing without another."""
    for name in ("eos_alpha", "eos_beta"):
        if getattr(args, name) is not None and args.eos_strategy != "predict":
            raise BadInput(
                "this is a setting of the strategy predict",
                _flag(name),
                f"--eos-strategy {args.eos_strategy or 'none'}",
                "--eos-strategy predict",
                "add it, or leave the setting out",
            )
    if args.ngram == NO_NGRAM and args.ngram_scale is not None:
        raise BadInput(
            "there is no n-gram to weigh", "--ngram-scale", "--ngram none", "an n-gram", "leave one of them out"
        )


@contextmanager
def _named(fields: Mapping[str, str], files: Mapping[str, object]) -> Iterator[None]:
    """Put the option in front of errors about a field, or about a file, that came by it.

    Args:
        fields: names of fields by option.
        files: names of files by option; those that are no text are passed over.
    """
    try:
        yield
    except BadInput as error:
        where = "" if error.where is None else str(error.where)
        for option, name in fields.items():
            if where == name or where.startswith(f"{name} "):
                raise _moved(error, _flag(option) + where.removeprefix(name)) from None
        for option, path in files.items():
            if isinstance(path, str) and (where == path or where.startswith(f"{path}: ")):
                raise _moved(error, " ".join((_flag(option), where or "''"))) from None
        raise


def _moved(error: BadInput, where: str) -> BadInput:
    return BadInput(error.what, where, error.found, error.expected, error.remedy)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
