"""One look at a text: counts known beforehand, the expected false negatives against drawn batches, planted leaks."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.cli import main
from isotrope.data.checking.batch_collisions import expected_pairs, pairs_in, pairs_sharing
from isotrope.data.checking.check_advice import FEW_LABELS
from isotrope.data.checking.check_rows import histogram
from isotrope.data.checking.language_guess import guess_language
from isotrope.data.checking.text_check import TextCheck
from isotrope.data.compared_words import words_of
from isotrope.errors import InputError
from isotrope.training.loop_settings import LoopSettings

Write = Callable[[str, str], Path]
LONG = "the old harbour master writes every ship that comes in or goes out into a large brown book with his own hand"
TEXT = f"""A man plays the guitar.
A man plays the guitar.
A MAN plays the guitar!
{LONG} today
{LONG} again

Two words
The second document begins with this sentence.
"""


@pytest.fixture
def checked(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TextCheck]:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    return lambda data, **options: isotrope.check(data, tiny, **options)


def test_a_small_text_counted_by_hand(checked: Callable[..., TextCheck], written: Write) -> None:
    found = checked(written("a.txt", TEXT), batch_size=4)
    assert (found.records, found.empty, found.documents, found.short, found.long) == (7, 1, 2, 1, 0)
    assert (found.duplicates.exact, found.duplicates.same_words, found.duplicates.near) == (1, 1, 1)
    assert (found.format, found.columns, found.record_type) == ("txt", [], "sentences")
    assert found.record_types == ["sentences", "documents", "dialogues"]
    assert found.languages["English"] > 0.8
    (example,) = found.duplicates.examples
    assert example["record"].endswith("a.txt:5")
    assert example["near"].endswith("a.txt:4")
    assert found.false_negatives is not None
    # One pair of copies; two more of the same words, and one near: of 21 pairs, 6 in a batch of 4.
    assert found.false_negatives.copies == pytest.approx(1 * 6 / 21)
    assert found.false_negatives.near == pytest.approx(3 * 6 / 21)
    assert found.false_negatives.same_class is None
    assert found.leaks is None
    assert {"simcse", "sop"} <= set(found.methods)
    assert "supcon" not in found.methods


def test_lengths_and_cuts_are_those_of_the_tokenizer(
    checked: Callable[..., TextCheck], tiny: Path, written: Write, topics: list[str]
) -> None:
    path = written("a.txt", "\n".join(topics[:100]))
    found = checked(path, max_length=24).lengths
    tokenizer = isotrope.load(tiny).tokenizer
    lengths = np.array([len(tokenizer(text)["input_ids"]) for text in topics[:100]])
    assert found.median == np.sort(lengths)[50]
    assert (found.longest, sum(found.histogram.values())) == (lengths.max(), 100)
    assert found.percentile_95 == np.percentile(lengths, 95, method="higher")
    assert found.cut_records == pytest.approx((lengths > 24).mean())
    assert found.lost_tokens == pytest.approx(np.maximum(lengths - 24, 0).sum() / lengths.sum())
    assert found.histogram["32"] == ((lengths > 16) & (lengths <= 32)).sum()


def test_a_model_that_knows_none_of_the_words(written: Write) -> None:
    """A table of word vectors has no token for unknown words: every length is 0, and nothing is lost."""
    lengths = isotrope.check(
        written("a.txt", "only one line\n"), written("glove.txt", "the 0.1 0.2\ncat 0.3 0.1\n")
    ).lengths
    assert (lengths.longest, lengths.lost_tokens, lengths.cut_records) == (0, 0.0, 0.0)


def test_defaults_are_those_of_training() -> None:
    import inspect

    defaults = inspect.signature(isotrope.check).parameters
    assert defaults["max_length"].default == LoopSettings().max_length
    assert defaults["batch_size"].default == LoopSettings().batch_size


def test_the_expected_number_of_pairs_is_that_of_drawn_batches() -> None:
    groups = np.array([0] * 5 + [1] * 3 + [2] * 2 + list(range(3, 33)))
    rng = np.random.default_rng(0)
    drawn = [pairs_in(rng.permutation(groups)[:12]) for _ in range(20_000)]
    expected = expected_pairs(pairs_in(groups), len(groups), 12)
    assert expected == pytest.approx(14 * 12 * 11 / (40 * 39))
    assert np.mean(drawn) == pytest.approx(expected, abs=4 * np.std(drawn) / np.sqrt(len(drawn)))


def test_a_batch_of_everything_holds_all_pairs() -> None:
    assert expected_pairs(14, 40, 40) == expected_pairs(14, 40, 1000) == 14
    assert expected_pairs(0, 1, 64) == 0.0


def test_pairs_that_share_a_text_are_counted_once() -> None:
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 6, size=(40, 2))
    naive = sum(bool((groups[a] == groups[b]).any()) for a, b in combinations(range(40), 2))
    assert pairs_sharing(groups) == naive
    assert pairs_sharing(groups[:, :1]) == pairs_in(groups[:, 0])


def test_labels_scores_and_dialogues(checked: Callable[..., TextCheck], samples: dict[str, Path]) -> None:
    labelled = checked(samples["labelled"], batch_size=16)
    assert labelled.record_types[0] == labelled.record_type == "labelled"
    assert labelled.columns == ["text", "label"]
    assert labelled.classes is not None
    assert labelled.false_negatives is not None
    assert labelled.classes.largest == {"entailment": 80, "neutral": 80, "contradiction": 80}
    assert labelled.false_negatives.same_class == pytest.approx(3 * (80 * 79 / 2) * (16 * 15) / (240 * 239))
    assert labelled.methods["supcon"] == "labelled"
    assert labelled.methods["simcse"] == "sentences"
    assert any("supcon" in sentence for sentence in labelled.advice)
    scored = checked(samples["scored-pairs"])
    assert scored.scores is not None
    assert (scored.scores.lowest, scored.scores.highest, scored.scores.mean) == (0.0, 5.0, 2.5)
    assert sum(scored.scores.histogram.values()) == scored.records == 240
    assert scored.false_negatives is None
    dialogues = checked(samples["dialogues"], record_type="dialogues")
    assert (dialogues.documents, dialogues.records) == (60, 480)
    assert any(row["what"] == "dialogues" for row in dialogues.rows())


def test_few_labels_are_the_case_for_a_head(
    checked: Callable[..., TextCheck], samples: dict[str, Path], written: Write
) -> None:
    def advised(path: Path, **options: str) -> bool:
        return any("`isotrope train head`" in sentence for sentence in checked(path, **options).advice)

    assert advised(samples["labelled"])
    assert not advised(samples["labelled"], record_type="sentences")
    assert not advised(samples["labelled-pairs"])  # a head reads one text
    assert not advised(samples["emoji"], record_type="emoji")
    rows = [f"the ship number {number} comes in" for number in range(FEW_LABELS)]
    assert not advised(written("one.tsv", "text\tlabel\n" + "".join(f"{row}\tsame\n" for row in rows[:40])))
    many = "".join(f"{row}\t{number % 2}\n" for number, row in enumerate(rows))
    assert not advised(written("many.tsv", "text\tlabel\n" + many))


@pytest.mark.parametrize("record_type", ["pairs", "triples", "labelled-pairs", "linked", "relations", "emoji"])
def test_every_record_type_is_checked(
    record_type: str, checked: Callable[..., TextCheck], samples: dict[str, Path]
) -> None:
    found = checked(samples[record_type], record_type=record_type)
    assert found.record_type == record_type
    assert record_type in found.methods.values()
    assert found.rows()
    json.dumps(found.to_dict())


def test_the_table_has_a_row_for_each_bar(
    tiny: Path, samples: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["check", str(samples["labelled"]), "--model", str(tiny)])
    printed = capsys.readouterr().out
    assert "\\n" not in printed
    bars = [line for line in printed.splitlines() if "█" in line]
    assert len(bars) > 2  # several classes, several lengths
    assert all(line.count("█ ") <= 1 for line in bars)


def test_a_text_with_two_labels_is_named(checked: Callable[..., TextCheck], written: Write) -> None:
    path = written("a.tsv", "text\tlabel\nall is well here\tgood\nAll is well here.\tbad\nnot so fine today\tbad\n")
    found = checked(path)
    assert (found.duplicates.conflicting, found.duplicates.same_words) == (1, 1)
    assert any(sentence.startswith("One text carries more than one label") for sentence in found.advice)


def test_a_sample_is_said_and_its_estimate_is_unbiased(checked: Callable[..., TextCheck], written: Write) -> None:
    """Half of 2,000 texts have a near copy; any sample should expect as many near pairs in a batch as the whole."""
    rng = random.Random(3)
    texts = [" ".join(f"w{rng.randrange(5000)}" for _ in range(20)) for _ in range(1000)]
    path = written("a.txt", "\n".join(text for one in texts for text in (f"{one} first", f"{one} second")))
    whole, part = checked(path), checked(path, sample=1000)
    assert (whole.sample, part.sample, part.records) == (2000, 1000, 2000)
    assert whole.duplicates.near == 1000
    assert whole.false_negatives is not None
    assert part.false_negatives is not None
    exact = expected_pairs(1000, 2000, 64)
    assert whole.false_negatives.near == pytest.approx(exact)
    assert part.false_negatives.near == pytest.approx(exact, rel=0.2)  # 250 pairs are expected in the sample
    assert any(row["what"] == "sample" for row in part.rows())
    assert not any(row["what"] == "sample" for row in whole.rows())


@pytest.fixture
def test_sets(tmp_path: Path) -> Path:
    folder = tmp_path / "tests"
    (folder / "sts").mkdir(parents=True)
    with gzip.open(folder / "sts" / "stsb.test.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(f"sentence1\tsentence2\tscore\n{LONG} today\tA dog sleeps near the red door.\t1.0\n")
    return folder


def test_planted_leaks_are_found_by_set(
    checked: Callable[..., TextCheck], written: Write, test_sets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written("a.txt", f"{LONG.upper()} TODAY!\n{LONG} again\na dog sleeps , near the red door\nnothing of it\n")
    found = checked(path, data_dir=test_sets).leaks
    assert found is not None
    assert (found.exact, found.near) == (2, 1)
    assert found.sets["stsb.test"].__dict__ == {"sentences": 2, "exact": 2, "near": 1}
    monkeypatch.setenv("ISOTROPE_DATA", str(test_sets))
    by_variable = isotrope.check(path, "builtin-base")
    assert by_variable.leaks == found
    assert by_variable.advice[0].startswith(
        "2 records hold a sentence of stsb.test, and 1 are near one; `isotrope leaks"
    )


def test_advice_on_what_is_wrong(checked: Callable[..., TextCheck], written: Write, topics: list[str]) -> None:
    lines = [*topics[:600], *topics[:600]]
    path = written("my text.txt", "\n".join(lines))
    said = checked(path, max_length=8).advice
    assert any(f"awk '!NF || !seen[$0]++' '{path}' > unique.txt" in sentence for sentence in said)
    assert any("are cut at max_length 8" in sentence and "raise max_length to" in sentence for sentence in said)
    clean = checked(written("b.txt", "\n".join(topics[:1200])))
    assert not any("cut at" in sentence or "repeat an earlier" in sentence for sentence in clean.advice)


def test_columns_that_are_not_read_are_named_and_keep_lines_apart(
    checked: Callable[..., TextCheck], written: Write, topics: list[str]
) -> None:
    rows = [{"id": row, "text": text} for row, text in enumerate([*topics[:600], *topics[:600]])]
    found = checked(written("tickets.jsonl", "\n".join(map(json.dumps, rows))))
    assert found.unread_columns == ["id"]
    assert "columns text; not read: id" in str(found.rows())
    (said,) = [sentence for sentence in found.advice if "repeat an earlier" in sentence]
    assert "awk" not in said  # no line is the same as another: the ids differ


def test_a_few_long_records_that_hold_most_of_the_text_are_said(
    checked: Callable[..., TextCheck], written: Write, topics: list[str]
) -> None:
    path = written("a.txt", "\n".join([*topics[:200], " ".join(topics[200:1200])]))
    found = checked(path, max_length=64)
    assert found.lengths.cut_records < 0.05
    (sentence,) = [one for one in found.advice if "are cut at max_length 64" in one]
    assert "of the tokens are lost" in sentence


def test_the_command_says_how_to_go_on_and_names_flags(
    tiny: Path, written: Write, topics: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = written("my text.txt", "\n".join(topics[:1200]))
    for length, said in (
        ("64", f"- Nothing stands in the way: `isotrope train '{path}' --output runs/first`."),
        ("8", "(--max-length)."),
    ):
        with pytest.raises(SystemExit):
            main(["check", str(path), "--model", str(tiny), "--max-length", length, "--batch-size", "2"])
        assert said in capsys.readouterr().out


def test_advice_on_the_batch_size_keeps_false_negatives_rare(checked: Callable[..., TextCheck], written: Write) -> None:
    rng = random.Random(5)
    texts = [" ".join(f"w{rng.randrange(5000)}" for _ in range(20)) for _ in range(600)]
    path = written("a.txt", "\n".join(text for one in texts for text in (f"{one} first", f"{one} second")))
    (sentence,) = [one for one in checked(path).advice if "lower batch_size to" in one]
    size = int(sentence.rstrip(".").rsplit(" ", 1)[1])
    assert 2 * expected_pairs(600, 1200, size) / size <= 0.01 < 2 * expected_pairs(600, 1200, size + 1) / (size + 1)


def test_the_command_of_the_advice_takes_the_repeats_out(
    checked: Callable[..., TextCheck], written: Write, topics: list[str], tmp_path: Path
) -> None:
    if shutil.which("awk") is None:
        pytest.skip("awk is not on this machine")
    blocks = ["\n".join(topics[start : start + 8]) for start in range(0, 80, 8)]
    path = written("my text.txt", "\n\n".join([*blocks, topics[3].upper() + "!", topics[5]]) + "\n")
    (sentence,) = [one for one in checked(path).advice if "repeat an earlier one" in one]
    assert "unless documents have to stay whole" in sentence
    command = sentence.split("`")[1]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    clean = checked(tmp_path / "unique.txt")
    assert (clean.records, clean.duplicates.exact, clean.duplicates.same_words) == (80, 0, 0)
    assert clean.documents == 10


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat sat on the mat and it was happy.", "English"),
        ("Der Hund ist nicht auf dem Tisch und die Katze auch.", "German"),
        ("Le chat est dans la maison et il ne dort pas.", "French"),
        ("El perro no está en la casa de los vecinos.", "Spanish"),
        ("Il cane non è nella casa della nonna, che dorme.", "Italian"),
        ("O menino não foi para a escola com os amigos.", "Portuguese"),
        ("De kat is niet op het dak van een huis.", "Dutch"),
        ("Katten är inte på taket och det var jag som såg den.", "Swedish"),
        ("Kot nie jest w domu i to się zdarza przez cały czas.", "Polish"),
        ("今天天气很好，我们一起去公园。", "Chinese"),
        ("今日は天気がいいですね。", "Japanese"),
        ("오늘은 날씨가 좋습니다.", "Korean"),
        ("Сегодня хорошая погода.", "Cyrillic script"),
        ("Ο καιρός είναι καλός σήμερα.", "Greek"),
        ("The film 东京 was shown in the old town of the city", "English"),
        ("42 %", "unknown"),
    ],
)
def test_the_language_is_guessed(text: str, language: str) -> None:
    assert guess_language(text, words_of(text)) == language


def test_another_language_than_the_model_knows_is_said(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    path = written("a.txt", "Der Hund ist nicht auf dem Tisch.\nDie Katze ist auf dem Dach und der Hund nicht.\n")
    assert any("seems to be German (a guess), and builtin-base" in one for one in isotrope.check(path).advice)


def test_the_histogram_leaves_out_empty_ends_only() -> None:
    drawn = histogram({"8": 0, "16": 12, "32": 0, "64": 3, "more": 0}).splitlines()
    assert [line.split()[0] for line in drawn] == ["16", "32", "64"]
    assert [line.count("█") for line in drawn] == [24, 0, 6]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"", "the file is empty"),
        ("a.txt", b"\n\n  \n", "no records found; 3 lines are empty"),
        ("a.txt", b"fine\n\xe6\x97", "a.txt:2: byte 0xe6 is not UTF-8"),
        ("a.txt", bytes(range(1, 256)), "is not UTF-8"),
        ("a.txt", b"PK\x03\x04\x00\x00", "this is a zip file"),
        ("a.jsonl", b'{"text": "half \\ud83d"}\n', "half a character"),
        ("a.tsv", b"one\ttwo\n1\t2\n", "no record type has these"),
        ("a.tsv", b"id\tbody\n1\ta longer text\n", "as `columns`, such as 'body'."),
        ("a.csv", b'id,"body, all"\n1,a longer text\n', "such as '\"body, all\"'."),
        ("a.jsonl", b'{"id": 1, "ticket": {"body": "a text", "by": "x"}}\n', "such as 'ticket.body'."),
        ("a.tsv", b"text\tlabel\nfine text here\t\n", "a.tsv:2: the label is empty"),
        ("a.tsv", b"sentence1\tsentence2\tscore\na b c\td e f\t1\na b c\td e f\thigh\n", "the score is 'high'"),
        ("a.parquet", b"PAR1 and no more", "not a parquet file"),
        ("a.pdf", b"%PDF", "unknown file type"),
    ],
)
def test_bad_input_is_one_sentence(
    name: str, content: bytes, sentence: str, checked: Callable[..., TextCheck], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence.replace(".", r"\.")):
        checked(tmp_path / name)


def test_bad_options_are_one_sentence(checked: Callable[..., TextCheck], written: Write) -> None:
    table, text = written("a.tsv", "question\tanswer\nq q q\ta a a\n"), written("a.txt", "one line of text\n")
    for data, options, sentence in (
        ("nowhere.txt", {}, "no such file"),
        ([], {}, "No file was given"),
        ([text, text], {}, "given twice"),
        ([text, table], {}, "files of different record types are checked one by one"),
        (table, {"columns": ["query"]}, "no column 'query'; columns found: 'question', 'answer'"),
        (text, {"record_type": "pairs"}, "cannot be read as pairs; it holds sentences"),
        (text, {"record_type": "pears"}, "Unknown record type 'pears'; did you mean 'pairs'"),
        (text, {"batch_size": 1}, "batch_size must be at least 2, not 1"),
        (text, {"max_length": 0}, "max_length must be at least 2, not 0"),
        (text, {"sample": 0}, "sample must be at least 2, not 0"),
        (text, {"data_dir": "nowhere"}, "no such folder of evaluation data"),
    ):
        with pytest.raises(InputError, match=sentence):
            checked(data, **options)


def test_columns_with_other_names(checked: Callable[..., TextCheck], written: Write) -> None:
    path = written("a.tsv", "id\ttitle\tbody\n1\tone title\tits own body\n2\tanother title\tits other body\n")
    found = checked(path, columns=["title", "body"])
    assert (found.record_type, found.columns) == ("pairs", ["title", "body"])
    assert found.record_types == ["pairs", "labelled", "linked", "dialogues"]  # two columns can be any of these
    assert checked(path, columns=["title", "body"], record_type="labelled").classes is not None


def test_files_are_one_text(checked: Callable[..., TextCheck], written: Write) -> None:
    first, second = (
        written("a.txt", "the same line here\nanother line of it\n"),
        written("b.txt", "The same line here.\n"),
    )
    found = checked([first, second])
    assert (found.records, found.documents, found.duplicates.same_words) == (3, 2, 1)


def test_the_command_prints_advice_first_or_json(
    tiny: Path, written: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    path = written("a.txt", TEXT)
    with pytest.raises(SystemExit) as stop:
        main(["check", str(path), "--model", str(tiny)])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith("- ")
    for word in ("exact duplicates", "near-duplicates", "expected in a batch of 7", "not looked at", "a guess"):
        assert word in printed
    with pytest.raises(SystemExit):
        main(["check", str(path), "--model", str(tiny), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert next(iter(told)) == "advice"
    assert told["duplicates"]["exact"] == 1
    with pytest.raises(SystemExit) as stop:
        main(["check", str(path), "--model", str(tiny), "--batch-size", "1"])
    assert stop.value.code == 2
    assert "(--batch-size)" in capsys.readouterr().err
