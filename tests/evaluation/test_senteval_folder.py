"""SentEval's own folder: every file in its layout and encoding, and what is said of a broken one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.probing import TASKS as PROBING
from isotrope.evaluation.probing import find_probing
from isotrope.evaluation.senteval_folder import read_part, read_probing, read_scored
from isotrope.evaluation.transfer_tasks import TASKS, find_tasks

ALL = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC", "SST5", "SICK-E", "SNLI", "SICK-R", "STS-B")


def write(file: Path, lines: list[str], encoding: str = "utf-8") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(("\n".join(lines) + "\n").encode(encoding))


def write_pairs(folder: Path, texts: list[str]) -> None:
    """MRPC, SICK, STS-B and SNLI."""
    rows = list(pairwise(texts))
    for part in ("train", "test"):
        lines = [f"{row // 8 % 2}\t1\t2\t{a}\t{b}" for row, (a, b) in enumerate(rows)]
        write(folder / f"MRPC/msr_paraphrase_{part}.txt", ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", *lines])
    for part in ("train", "trial", "test_annotated"):
        judged = [(1 + row % 5, ("ENTAILMENT", "NEUTRAL")[row // 8 % 2]) for row in range(len(rows))]
        lines = [f"{row}\t{a}\t{b}\t{judged[row][0]}\t{judged[row][1]}" for row, (a, b) in enumerate(rows)]
        write(folder / f"SICK/SICK_{part}.txt", ["pair_ID\tsentence_A\tsentence_B\tscore\tjudgment", *lines])
    for part in ("train", "dev", "test"):
        lines = [f"main\tfile\t2012\t{row}\t{row % 6}\t{a}\t{b}" for row, (a, b) in enumerate(rows)]
        write(folder / f"STS/STSBenchmark/sts-{part}.csv", lines)
        write(folder / f"SNLI/s1.{part}", [a for a, _ in rows], "latin-1")
        write(folder / f"SNLI/s2.{part}", [b for _, b in rows], "latin-1")
        write(folder / f"SNLI/labels.{part}", [("neutral", "entailment")[row // 8 % 2] for row in range(len(rows))])


@pytest.fixture(scope="module")
def senteval(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """A tiny folder with every file of SentEval's data."""
    root = tmp_path_factory.mktemp("SentEval")
    folder = root / "downstream"
    halves = (
        [text for row, text in enumerate(topics[:128]) if row // 8 % 2],
        [text for row, text in enumerate(topics[:128]) if not row // 8 % 2],
    )
    for name, ends in (
        ("MR/rt-polarity", ("pos", "neg")),
        ("CR/custrev", ("pos", "neg")),
        ("SUBJ/subj", ("objective", "subjective")),
        ("MPQA/mpqa", ("pos", "neg")),
    ):
        for end, texts in zip(ends, halves, strict=True):
            write(folder / f"{name}.{end}", texts, "latin-1")
    for part in ("train", "dev", "test"):
        for kind in ("binary", "fine"):
            lines = [f"{text}\t{row // 8 % 2}" for row, text in enumerate(topics[:64])]
            write(folder / f"SST/{kind}/sentiment-{part}", lines)
    questions = [f"{('DESC:manner', 'HUM:ind')[row // 8 % 2]} {text}" for row, text in enumerate(topics[:64])]
    write(folder / "TREC/train_5500.label", questions, "latin-1")
    write(folder / "TREC/TREC_10.label", questions[:16], "latin-1")
    write_pairs(folder, topics[:65])
    for names in PROBING.values():
        lines = [
            f"{split}\t{'OI'[row // 8 % 2]}\t{text}"
            for split, start in (("tr", 0), ("va", 64), ("te", 96))
            for row, text in enumerate(topics[start : start + 32 + 32 * (split == "tr")])
        ]
        write(root / f"probing/{names[0]}.txt", lines)
    return root


def test_the_whole_folder_is_judged(tiny: Path, senteval: Path) -> None:
    found = isotrope.evaluate(tiny, "transfer", senteval, protocol="senteval-fast")
    scores = found.scores["transfer"]
    assert list(scores) == [*(task for task in ALL if task not in ("SICK-R", "STS-B")), "average", "SICK-R", "STS-B"]
    assert scores["MR"]["texts"] == 128
    assert found.protocol["protocol"] == "senteval-fast-v1"
    assert "left out" not in found.protocol
    assert "A trained regressor" in found.table()
    for task in ALL:
        measure = "spearman" if task in ("SICK-R", "STS-B") else "accuracy"
        assert found.items[task].score() == pytest.approx(scores[task][measure], abs=0.6)  # folds differ by a text
    assert set(find_tasks(senteval)) == set(ALL)


def test_a_folder_above_or_with_a_file_missing(senteval: Path, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(senteval)
    assert set(find_tasks(tmp_path)) == set(ALL)
    (tmp_path / "other" / "downstream" / "MR").mkdir(parents=True)
    with pytest.raises(InputError, match=r"rt-polarity\.pos is missing; SentEval's layout"):
        find_tasks(tmp_path / "other")
    with pytest.raises(InputError, match="Unknown task 'MRR'; did you mean 'MR'"):
        find_tasks(senteval, ["MRR"])
    assert list(find_tasks(senteval, ["seven"])) == list(TASKS) == list(ALL[:7])


def test_encodings_blank_lines_and_odd_characters(tmp_path: Path) -> None:
    """In Latin-1 the byte 0x85 is a character that str.splitlines would take for the end of a line."""
    pos, neg = tmp_path / "rt-polarity.pos", tmp_path / "rt-polarity.neg"
    pos.write_bytes("a  caf\xe9\x85 here\n\n".encode("latin-1"))
    neg.write_bytes(b"bad \n")
    part = read_part("MR", [str(pos), str(neg)])
    assert part.texts[0] == ["a café here", ".", "bad"]  # 0x85 is white space, and no end of a line
    assert part.labels == ["1", "1", "0"]
    trec = tmp_path / "trec"
    trec.write_bytes("DESC:manner How did : it caf\xe9 ?\n".encode("latin-1"))
    assert read_part("TREC", [str(trec)]) == ((["How did : it café ?"],), ["DESC"])
    sst = tmp_path / "sst"
    sst.write_text("naïve film\t3\n", encoding="utf-8")
    assert read_part("SST5", [str(sst)]).labels == ["3"]


def test_pairs_and_scores_are_those_of_their_columns(senteval: Path, topics: list[str]) -> None:
    folder = senteval / "downstream"
    paraphrases = read_part("MRPC", [str(folder / "MRPC/msr_paraphrase_train.txt")])
    assert [side[0] for side in paraphrases.texts] == topics[:2]
    assert len(paraphrases.labels) == 64
    sick = str(folder / "SICK/SICK_trial.txt")
    assert set(read_part("SICK-E", [sick]).labels) == {"entailment", "neutral"}
    assert read_scored("SICK-R", [sick]).gold[:3].tolist() == [1, 2, 3]
    assert read_scored("STS-B", [str(folder / "STS/STSBenchmark/sts-dev.csv")]).gold[:3].tolist() == [0, 1, 2]
    assert [len(part.labels) for part in read_probing(str(senteval / "probing/bigram_shift.txt"))] == [64, 32, 32]


@pytest.mark.parametrize(
    ("task", "text", "said"),
    [
        ("SST2", "no tab here", "1: 2 columns, separated by tabs, were expected"),
        ("SST2", "", "no labelled texts found"),
        ("TREC", "what is this", "does not begin with a class and a colon"),
    ],
)
def test_a_broken_file_is_one_sentence(task: str, text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "broken"
    file.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_part(task, [str(file)])


def test_other_broken_files(tmp_path: Path) -> None:
    write(tmp_path / "s1", ["a", "b"])
    write(tmp_path / "s2", ["a"])
    with pytest.raises(InputError, match="2 lines, but 1 and 2 in the other two files"):
        read_part("SNLI", [str(tmp_path / name) for name in ("s1", "s2", "s1")])
    write(tmp_path / "sts", ["a\tb\tc\td\thigh\tx\ty"])
    with pytest.raises(InputError, match="'high' is no score"):
        read_scored("STS-B", [str(tmp_path / "sts")])
    write(tmp_path / "latin", ["caf\xe9\t1"], "latin-1")
    with pytest.raises(InputError, match="not UTF-8"):
        read_part("SST2", [str(tmp_path / "latin")])
    write(tmp_path / "probing", ["tr\tO\ta b"])
    with pytest.raises(InputError, match=r"no row of split va \(dev\)"):
        read_probing(str(tmp_path / "probing"))


def test_probing_reads_the_original_files(tiny: Path, senteval: Path, tmp_path: Path) -> None:
    found = isotrope.evaluate(tiny, "probing", senteval)
    assert list(found.scores["probing"]) == [*PROBING, "average"]
    assert found.protocol["files"] == "SentEval's own"
    assert found.protocol["protocol"] == "probing-senteval-v1"
    assert "derived" not in found.table()
    (tmp_path / "probing").mkdir()
    (tmp_path / "probing" / "bigram_shift.txt").touch()
    with pytest.raises(InputError, match=r"sentence_length\.txt is missing"):
        find_probing(tmp_path)
