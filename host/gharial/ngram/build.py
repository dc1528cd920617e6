# SPDX-License-Identifier: Apache-2.0
"""From text to a marked n-gram file: SentencePiece, then KenLM's lmplz and build_binary (docs/ngram.md)."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gharial.errors import BadInput
from gharial.files import write_atomically
from gharial.ngram import arpa as text_form
from gharial.ngram import corpus, tools
from gharial.ngram.checking import NgramFile, read_file
from gharial.ngram.cutting import Cutter
from gharial.ngram.header import MAX_ORDER
from gharial.ngram.inspect import known_share
from gharial.ngram.marking import append_mark

TYPES = ("probing", "trie")
_SMALL = "--discount_fallback"
_MEMORY = re.compile(r"\d+(\.\d+)?[%bkKMGTPEZY]?", re.ASCII)  # as KenLM reads sizes
_LINES = 1000  # cut at a time
_CHUNK = 1 << 20
_UNKNOWN_SHARE = 0.01
_MOST_PRUNED = 1 << 63
_MEMORY_REFUSED = re.compile(r"below the minimum block size|Cannot allocate memory|bad_alloc")


@dataclass(frozen=True)
class Options:
    """How an n-gram is built.

    Attributes:
        order: longest n-gram, 2 to 6.
        type: KenLM's data structure: "probing" is the faster one, "trie" the smaller.
        quantise: bits of a trie's probabilities and back-offs (2 to 25), None for full precision.
        prune: for each order from 1 on the count up to which n-grams are left out; the last holds for the rest.
        lowercase: whether the text is put into small letters.
        memory: of lmplz for sorting, as it takes it ("1G", "50%").
    """

    order: int = 4
    type: str = "probing"
    quantise: int | None = None
    prune: tuple[int, ...] = ()
    lowercase: bool = False
    memory: str = "1G"

    def check(self) -> None:
        """Raise BadInput for options that KenLM would refuse after the work."""
        if not 2 <= self.order <= MAX_ORDER:
            raise BadInput("the order is not supported", "--order", self.order, f"2 to {MAX_ORDER}", "4 is usual")
        if self.type not in TYPES:
            raise BadInput("there is no such type", "--type", self.type, " or ".join(TYPES), "probing is usual")
        if self.quantise is not None and (self.type != "trie" or not 2 <= self.quantise <= 25):
            found, expected = f"{self.quantise}, {self.type}", "2 to 25, trie"
            raise BadInput("only a trie is quantised, in 2 to 25 bits", "--quantise", found, expected, "--type trie")
        falling = any(later < before for before, later in zip(self.prune, self.prune[1:], strict=False))
        if len(self.prune) > self.order or falling or any(not 0 <= count < _MOST_PRUNED for count in self.prune):
            found = ",".join(map(str, self.prune))
            what = "thresholds are counts that must not fall, one an order at most"
            raise BadInput(what, "--prune", found, "0,0,1 say", "0 keeps all n-grams of an order")
        if not _MEMORY.fullmatch(self.memory):
            raise BadInput("this is no amount of memory", "--memory", self.memory, "1G, 512M or 50% say", "1G is usual")


@dataclass(frozen=True)
class Built:
    """What was made.

    Attributes:
        file: the n-gram file.
        sentences: sentences that it was estimated from; 0 where an ARPA file was given.
        pieces: pieces in them.
        unknown: pieces left out because the SentencePiece model does not know them.
        fallback: whether the discounts are fixed ones.
    """

    file: NgramFile
    sentences: int
    pieces: int
    unknown: int
    fallback: bool


def build(
    texts: Sequence[str | os.PathLike[str]],
    sentencepiece: bytes,
    output: str | os.PathLike[str],
    options: Options,
    *,
    arpa: str | os.PathLike[str] | None = None,
    read: corpus.Read = lambda _done, _total: None,
    note: Callable[[str], object] = lambda _text: None,
) -> Built:
    """Build an n-gram file.

    Args:
        texts: text files, manifests and sets; or one ARPA file, which is only made a binary of.
        sentencepiece: bytes of the model's SentencePiece `.model` file.
        output: file to write.
        options: how.
        arpa: where to keep the n-gram as text, None for nowhere.
        read: called with the bytes of text read, and those of all.
        note: called with sentences about what is being done, and what was found.

    Raises:
        BadInput: options, texts or SentencePiece model cannot be used, or KenLM's programs are not there.
        GharialError: one of them failed, or the output cannot be written. Nothing is left behind.
    """
    options.check()
    lmplz, build_binary = (tools.find(tool) for tool in tools.TOOLS)
    files = corpus.corpus_files(texts)
    cutter = Cutter(sentencepiece, options.lowercase)
    target = Path(output).resolve()
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".build", dir=target.parent) as folder:
        work = Path(folder)
        fallback = False
        given = text_form.is_arpa(files[0])
        if given:
            _check_arpa(files, arpa)
            text = files[0]
        else:
            text = work / "arpa"
            fallback = _estimate(lmplz, lambda: _cut(files, cutter, read), text, options, note)
            if not cutter.pieces:
                what, remedy = "there is no text to build from", "check that these are the files that you meant"
                raise BadInput(what, files[0], "no sentences", "text, or transcripts", remedy)
        binary = work / "binary"
        _make_binary(build_binary, text, binary, options, given)
        append_mark(binary, sentencepiece)
        found = read_file(binary)
        _warn(cutter, found, note)
        if arpa is not None:
            write_atomically(arpa, _bytes_of(text))
        binary.replace(target)
    return Built(read_file(output), cutter.sentences, cutter.pieces, cutter.unknown, fallback)


def _cut(files: Sequence[Path], cutter: Cutter, read: corpus.Read) -> Iterator[bytes]:
    """Lines of pieces, joined into blocks."""
    cutter.begin()
    lines = corpus.sentences(files, read)
    while some := list(islice(lines, _LINES)):
        yield cutter.cut(some)


def _estimate(
    lmplz: Path,
    blocks: Callable[[], Iterable[bytes]],
    text: Path,
    options: Options,
    note: Callable[[str], object],
) -> bool:
    """Run lmplz, once more with fixed discounts where the text is too small for its own; whether that was so."""
    command: list[str | Path] = [lmplz, "-o", str(options.order), "-S", options.memory, "-T", text.with_name("sort")]
    command += ["--arpa", text, "--vocab_estimate", "100000"]
    if options.prune:
        command += ["--prune", *map(str, options.prune)]
    code, output = _fed(command, blocks())
    if code and _SMALL in output:
        note(
            "the text is small: n-grams are discounted by fixed amounts, for there are too few rare ones to tell from "
            "(lmplz --discount_fallback)"
        )
        code, output = _fed([*command, _SMALL], blocks())
        if not code:
            return True
    if code and _MEMORY_REFUSED.search(output):
        what, found = "lmplz cannot work with so much memory", f"{options.memory} ({tools.why(output)})"
        raise BadInput(what, "--memory", found, "from 64M to what this machine has free", "1G is usual")
    if code:
        raise tools.failed("lmplz", code, output, text.parent.parent)
    return False


def _fed(command: Sequence[str | Path], blocks: Iterable[bytes]) -> tuple[int, str]:
    """Exit code and error output of a program that is given the blocks on its standard input.

    The output is kept in memory: of a full disk it should tell as well.
    """
    with os.fdopen(os.memfd_create("log"), "r+b") as output:
        with tools.running(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=output) as child:
            pipe = child.stdin
            assert pipe is not None
            with suppress(BrokenPipeError):  # it has ended; its exit code says why
                for block in blocks:
                    pipe.write(block)
            with suppress(BrokenPipeError):
                pipe.close()
            code = child.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


def _make_binary(build_binary: Path, text: Path, binary: Path, options: Options, given: bool) -> None:
    """Run build_binary; what it does not take is the user's fault where the ARPA file is given."""
    plain = text_form.is_plain(text)
    command: list[str | Path] = [build_binary, "-T", binary.with_name("sort"), "-S", options.memory]
    if options.quantise is not None:
        command += ["-q", str(options.quantise)]
    command += [options.type, text if plain else "/dev/stdin", binary]
    code, output = _fed(command, () if plain else text_form.blocks(text))
    if not code and binary.exists():
        if given:
            _check_made(text, binary)
        return
    if given:
        text_form.check(text)
        if code > 0 and tools.refused(output):
            what, expected = "KenLM does not take this ARPA file", "an n-gram as text, whole and consistent"
            raise BadInput(what, text, tools.why(output), expected, "--type probing takes more, or write it again")
    raise tools.failed("build_binary", code, output, binary.parent.parent)


def _check_made(text: Path, binary: Path) -> None:
    """Find what KenLM took although its binary cannot be used, in the text."""
    try:
        usable = not read_file(binary).foreign  # else a word has a zero byte, with which KenLM ends words
    except BadInput:
        usable = False
    if not usable:
        text_form.check(text)


def _check_arpa(files: Sequence[Path], arpa: object) -> None:
    if len(files) > 1:
        what, remedy = "an ARPA file is built from by itself", "give the ARPA file alone, or the texts alone"
        raise BadInput(what, files[0], f"{len(files)} files", "one", remedy)
    text_form.check_counts(files[0])
    if arpa is not None:
        raise BadInput("an ARPA file was given, so none is written", "--arpa", arpa, "no such option", "leave it out")


def _warn(cutter: Cutter, file: NgramFile, note: Callable[[str], object]) -> None:
    if cutter.unknown > _UNKNOWN_SHARE * (cutter.pieces + cutter.unknown):
        share = 100 * cutter.unknown / (cutter.pieces + cutter.unknown)
        note(
            f"{share:.1f} % of the text's pieces are not known to the SentencePiece model, and were left out: is it "
            "written as the model's transcripts are?"
        )
    share_of_words = known_share(file, cutter.texts)
    if share_of_words is not None and share_of_words[0] < share_of_words[1]:
        known, words = share_of_words
        note(f"{words - known:,} of the n-gram's {words:,} words are no pieces of the SentencePiece model")


def _bytes_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            yield data
