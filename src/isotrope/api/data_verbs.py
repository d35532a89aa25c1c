"""Verbs that check or make data: check, leaks, links, paraphrase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.answers import (
    ParaphrasedFile,
)
from isotrope.api.arguments import Place, places, tsv_target
from isotrope.api.encoder_verbs import load
from isotrope.catalogue import usable_record_types
from isotrope.data.sentence_files import sentences_of
from isotrope.data.tables import check_file, check_readable
from isotrope.errors import InputError, check_between, check_seed
from isotrope.files import check_overwrite
from isotrope.progress import bar, say

if TYPE_CHECKING:
    from isotrope.data.checking.text_check import TextCheck
    from isotrope.data.leaks import LeakReport
    from isotrope.data.link_extraction import ExtractedLinks
    from isotrope.encoders.encoder import Encoder


def check(
    data: Place | Sequence[Place],
    model: Place | Encoder = "builtin-base",
    *,
    max_length: int = 64,
    batch_size: int = 64,
    data_dir: Place | None = None,
    columns: Sequence[str] | None = None,
    record_type: str | None = None,
    sample: int = 200_000,
) -> TextCheck:
    """Look at a text before training: what it holds, what is wrong with it, and what to do about it.

    ``data``: a file, or a folder of documents, or several that are read as one text. ``model`` brings the tokenizer
    that lengths are counted with. ``record_type``: read it so, where the columns leave it open; by default as the first
    type that fits. Leaks are looked for where ``data_dir`` (or ISOTROPE_DATA) names a folder of test sets. Counts are
    exact but for near-duplicates, tokens and languages, which are those of ``sample`` records, drawn at random from
    longer texts.
    """
    from isotrope.data.checking.text_check import Reader, check_files, check_numbers, check_text, choose_type

    files = check_files(data)
    check_numbers(max_length, batch_size, sample)
    choose_type(files, columns, record_type)
    from isotrope.data.leaks import protect
    from isotrope.evaluation.benchmark_files import has_data, protected_files

    with bar("reading the test sets", None):
        tests = protect(protected_files(data_dir)) if has_data(data_dir) else None
    from isotrope.encoders.encoder import Encoder

    encoder = model if isinstance(model, Encoder) else load(model, device="cpu")
    if max_length > encoder.max_length:
        say(f"max_length {max_length:,} is more than the model reads; lengths are held against {encoder.max_length:,}.")
        max_length = encoder.max_length
    name = "the encoder" if isinstance(model, Encoder) else str(model)
    reader = Reader(name, encoder.text_tokenizer, encoder.tokenizer.unk_token_id, encoder.max_length)
    return check_text(
        files,
        reader,
        tests,
        usable_record_types(),
        max_length=max_length,
        batch_size=batch_size,
        sample=sample,
        columns=columns,
        record_type=record_type,
        data_dir=None if data_dir is None else str(data_dir),
    )


def leaks(
    text: Place | Sequence[Place],
    against: Place | Sequence[Place] | None = None,
    data_dir: Place | None = None,
    output: Place | None = None,
    match: str = "sentence",
    tests_only: bool = False,
) -> LeakReport:
    """The lines of a training text that hold a sentence of the files ``against``.

    By default the STS, SICK and transfer sets of ``data_dir`` (or ISOTROPE_DATA) are protected; with ``tests_only``
    their test splits alone. With ``output`` each text is written into that folder without its leaking lines.
    ``match="pair"`` is for scored pairs that choose among encoders: a row leaks when it is a protected pair, in either
    order.
    """
    for given in map(Path, places(text)):
        if output is not None and given.is_dir() and Path(output).resolve().is_relative_to(given.resolve()):
            raise InputError(
                f"{output}: the clean copy would be one of the documents of {given}; choose a folder outside."
            )
    texts, files = [check_file(file) for file in places(text)], places(against)
    for file in files:
        check_file(file)
    from isotrope.data.leaks import MATCHES, check_copies, find_leaks, protect, protect_pairs
    from isotrope.data.protected_pairs import holds_pairs

    if match not in MATCHES:
        raise InputError(f"Unknown match '{match}'; choose {' or '.join(MATCHES)}.", setting="match")
    if output is not None:
        check_copies(texts, files, output)
    if data_dir is not None or not files:
        from isotrope.evaluation.benchmark_files import protected_files

        found = protected_files(data_dir, tests_only)
        files += [file for file in found if match == "sentence" or holds_pairs(file)]
    return find_leaks(texts, (protect if match == "sentence" else protect_pairs)(files), output)


def links(
    wiki: Place | Sequence[Place], output: Place, types: Place | None = None, min_links: int = 10
) -> ExtractedLinks:
    """Write the hyperlinks of a wiki as data for EASE: a sentence, the entity it links to, its page (.tsv).

    ``wiki``: MediaWiki XML dumps or wikiextractor's JSON lines with links. Entities with fewer than ``min_links`` links
    are left out. ``types``: a table with the columns entity and entity_type; without it the infobox of an entity's page
    is its type, where the dump has one.
    """
    target = tsv_target(output, "links")
    check_between("min_links", min_links, 1, 1_000_000_000)
    sources = places(wiki)
    for source in sources:
        check_readable(source)
    check_overwrite(target, types, *sources)
    if types is not None:
        check_file(types)
    from isotrope.data.link_extraction import extract_links

    return extract_links(sources, target, types, min_links)


def paraphrase(
    text: Place,
    output: Place,
    model: Encoder | Place = "builtin-base",
    share: float = 0.15,
    seed: int = 42,
    columns: Sequence[str] | None = None,
    *,
    round_trip: Sequence[Place] | None = None,
    second_round_trip: Sequence[Place] | None = None,
    beams: int = 4,
    temperature: float = 0.0,
) -> ParaphrasedFile:
    """Write pairs for CERT: each sentence of a file, and a paraphrase of it.

    Either ``model`` (with its masked-language head) replaces a ``share`` of the words. Or the sentence goes on a
    ``round_trip`` over two translation models, there and back; with a ``second_round_trip`` the pair is what came back
    from the two, as in the paper. ``beams`` and ``temperature`` (0: beam search, above: sampling) belong to the round
    trips. What came back unchanged, empty or was too long is left out and counted.
    """
    target = tsv_target(output, "pairs")
    check_file(text)
    check_seed(seed)
    check_overwrite(target, text, model)
    if round_trip is None:
        if second_round_trip is not None or (beams, temperature) != (4, 0.0):
            raise InputError("second_round_trip, beams and temperature need a round_trip.", setting="round_trip")
        return _replace_words(text, target, model, share, seed, columns)
    if (model, share) != ("builtin-base", 0.15):
        raise InputError("model and share are for replaced words; a round_trip has models of its own.")
    texts = sentences_of(text, columns)
    from isotrope.data.pair_writer import write_pairs
    from isotrope.encoders.translation import Decoding, RoundTrip

    first: Iterable[str | None] = texts
    second = RoundTrip.between(round_trip, Decoding(beams, temperature, seed)).texts(texts)
    if second_round_trip is not None:
        other = RoundTrip.between(second_round_trip, Decoding(beams, temperature, seed + 1))
        first, second = second, other.texts(texts)
    pairs = zip(first, second, strict=True)
    counts = write_pairs(target, pairs, len(texts), "translating", f"{text}: no sentence came back as another one")
    return ParaphrasedFile(
        target,
        counts["pairs"],
        len(texts) - counts["pairs"],
        {"unchanged": counts["unchanged"], "empty": counts["empty"], "too_long": counts["missing"]},
    )


def _replace_words(
    text: Place, target: Path, model: Encoder | Place, share: float, seed: int, columns: Sequence[str] | None
) -> ParaphrasedFile:
    texts = sentences_of(text, columns)
    from isotrope.data.pair_writer import write_pairs
    from isotrope.encoders.encoder import Encoder
    from isotrope.encoders.paraphrase import Paraphraser

    encoder = model if isinstance(model, Encoder) else load(model, language_head=True)
    pairs, nothing = Paraphraser(encoder, share, seed).pairs(texts), f"{text}: no sentence with a word to replace"
    counts = write_pairs(target, pairs, len(texts), "paraphrasing", nothing)
    return ParaphrasedFile(target, counts["pairs"], len(texts) - counts["pairs"])
