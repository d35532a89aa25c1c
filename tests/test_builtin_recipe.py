"""The recipe of the built-in encoder: what is cut, held out and carried. Training itself is tested elsewhere."""

from __future__ import annotations

import gzip
import importlib.util
import lzma
import os
import random
import re
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import isotrope
from isotrope.evaluation.bm25 import Bm25
from isotrope.evaluation.retrieval_files import RetrievalSet
from isotrope.measures.score_fusion import fuse

RECIPE = Path(__file__).parents[1] / "recipes" / "builtin"


def script(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"recipe_{name}", RECIPE / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def packed(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


def unpacked(path: Path) -> str:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read()


def test_a_model_comes_back_in_parts_as_it_was(tiny: Path, tmp_path: Path) -> None:
    carried = script("carried")
    carried.split(tiny, str(tmp_path / "out"), "0.05")
    parts = sorted((tmp_path / "out").glob("*.part"))
    assert len(parts) > 1
    assert max(part.stat().st_size for part in parts) <= 0.05 * 2**20
    carried.join(tmp_path / "out" / f"{tiny.name}.sums", str(tmp_path / "back"))
    before, after = (isotrope.load(folder, device="cpu").state_dict() for folder in (tiny, tmp_path / "back"))
    assert before.keys() == after.keys()
    for name, weight in before.items():
        assert after[name].dtype == weight.dtype
        assert torch.equal(after[name], weight.half().to(weight.dtype) if weight.is_floating_point() else weight)


def test_a_damaged_part_is_refused(tiny: Path, tmp_path: Path) -> None:
    carried = script("carried")
    carried.split(tiny, str(tmp_path), "0.05")
    part = next(tmp_path.glob("*.part"))
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    with pytest.raises(SystemExit, match="checksum"):
        carried.join(tmp_path / f"{tiny.name}.sums", str(tmp_path / "back"))


def test_a_folder_without_a_model_is_not_carried(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no model is here"):
        script("carried").split(tmp_path / "model", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_parts_hold_every_line_within_the_limit(tmp_path: Path) -> None:
    carried, rng = script("carried"), random.Random(0)
    lines = ["".join(rng.choices("ABCDEFGH", k=60)) if number % 7 else "" for number in range(4_000)]
    packed(tmp_path / "text" / "wiki.txt.xz", "\n".join(lines) + "\n")
    (tmp_path / "dev.tsv").write_text("score\n1\n")
    carried.parts(tmp_path, "0.03", "dev.tsv", "text/wiki.txt.xz")
    parts = sorted((tmp_path / "parts").iterdir(), key=lambda part: int(part.name))
    assert len(parts) > 2
    carried.take(tmp_path / "there", *map(str, parts))
    pieces = sorted((tmp_path / "there" / "text").iterdir(), key=lambda file: int(file.name.split(".")[1]))
    assert "".join(unpacked(piece) for piece in pieces) == "\n".join(lines).lower() + "\n"
    assert all(unpacked(piece).endswith("\n\n") for piece in pieces[:-1])  # documents stay whole
    assert (tmp_path / "there" / "dev.tsv").read_text() == "score\n1\n"


def test_text_is_cut_into_passages_and_spans(tmp_path: Path) -> None:
    cut = script("cut_text")
    documents = [[f"sentence {k} of document {d} speaks about {d * k} ships" for k in range(20)] for d in range(30)]
    packed(tmp_path / "text" / "wiki.txt.xz", "\n\n".join("\n".join(one) for one in documents) + "\n")
    cut.main(tmp_path, 50)
    passages = (tmp_path / "passages.txt").read_text().splitlines()
    every = sorted(sentence for one in documents for sentence in one)
    assert sorted("\n".join(passages).replace(" sentence ", "\nsentence ").splitlines()) == every  # each once
    assert any(line.count("sentence") > 2 for line in passages)
    header, *rows = (tmp_path / "sources" / "spans.tsv").read_text().splitlines()
    assert header == "anchor\tpositive"
    assert len(rows) == 50
    for anchor, passage in (row.split("\t") for row in rows):
        assert anchor not in passage
        assert f"document {anchor.split()[4]} " in passage  # of the same document


def test_held_out_rows_are_whole_groups_and_whole_sources() -> None:
    pairs = script("pair_sources")
    rows = [(f"question {n // 2}", f"answer {n}", "se_beer" if n % 2 else "se_beer_more") for n in range(400)]
    rows += [(f"doubt {n}", f"reply {n}", "se_skeptics_body") for n in range(10)]
    held = pairs.held_rows(rows, "questions")
    assert {row for row in rows if row[2] == "se_skeptics_body"} <= set(held)
    asked = {anchor for anchor, _, _ in held}
    assert [row for row in rows if row[0] in asked] == held
    assert len(asked) == 10 + int(0.04 * 200)


def test_reciprocal_ranks_join_two_lists() -> None:
    choice = script("choice")
    joined = choice.fused(np.array([[0, 1, 2]]), np.array([[2, 3, 0]]))
    gained = {0: 1 / 61 + 1 / 63, 1: 1 / 62, 2: 1 / 63 + 1 / 61, 3: 1 / 62}
    assert joined.tolist() == [sorted(gained, key=lambda row: -gained[row])[:3]]
    assert choice.fused(np.array([[4, 5]]), np.array([[5, 6]])).tolist() == [[5, 4]]


def test_the_table_joins_by_ranks_and_as_search_does_by_scores(tiny: Path) -> None:
    documents = [f"the {word} of ship {number}" for number in range(30) for word in ("sail", "mast", "anchor", "crew")]
    queries = ["a sail on ship 7", "the anchor", "the crew and the mast of 21"]
    found = RetrievalSet("ships", documents, queries, [{0: 1.0}] * len(queries), 0)
    encoder = isotrope.load(tiny, device="cpu")
    orders = script("choice").rankings(found, encoder)
    assert list(orders) == ["TF-IDF", "BM25", "encoder", "both by ranks", "both by scores"]
    assert {rows.shape for rows in orders.values()} == {(3, 100)}
    known, asked = (encoder.encode(texts, normalize_embeddings=True) for texts in (documents, queries[0]))
    cosines, words = known @ asked, Bm25(documents, queries)
    dense = [(int(row), float(cosines[row])) for row in np.argsort(-cosines)[:100]]
    joined = fuse(dense, words.found(0, 100), cosines.take, lambda rows: words.scores(0, rows))
    assert orders["both by scores"][0, :10].tolist() == [one.row for one in joined[:10]]
    assert (orders["both by scores"] != orders["both by ranks"]).any()


def test_a_held_out_set_is_read_by_the_retrieval_suite(
    tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = script("pair_sources")
    rows = [
        (f"title {n}", f"A passage about {n} ships and a harbour", "wikinews" if n % 3 else "mdn") for n in range(40)
    ]
    pairs.write_set(tmp_path / "retrieval", "titles", rows, ["a distractor of some words"])
    (tmp_path / "dev.tsv").write_text("sentence1\tsentence2\tscore\na ship\ta boat\t4\na ship\ta cake\t1\na\tb c\t2\n")
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "news.tsv").write_text("label\tsentence1\tsentence2\n1\ta ship\ta ship\n0\ta ship\tcake\n")
    script("choice").choose(str(tiny), str(tmp_path / "dev.tsv"), str(tmp_path))
    dev, area, line = capsys.readouterr().out.splitlines()[-3:]  # before them, how far each file was written
    assert dev.startswith("dev ")
    assert area == "news 100.00"
    words = line.split()
    assert words[0] == "titles"
    scores = isotrope.evaluate(str(tiny), suite="retrieval", data_dir=tmp_path).scores
    assert f"{scores['retrieval']['titles']['ndcg_10']:.1f}" in words
    assert re.search(r"  both by ranks \d+\.\d  both by scores \d+\.\d$", line)
    header, *documents = unpacked(tmp_path / "retrieval" / "titles.corpus.tsv.xz").splitlines()
    assert header == "doc_id\ttitle\ttext"
    assert len(documents) == 41


def stage(work: Path, name: str, **given: str) -> subprocess.CompletedProcess[str]:
    """A stage of edition.sh under an interpreter that writes down what it was asked to do, and makes no model."""
    fake = work / "interpreter"
    fake.write_text(f'#!/bin/sh\necho "$@" >>"{work}/asked"\n')
    fake.chmod(0o755)
    surroundings = {**os.environ, "PYTHON": str(fake), **given}
    command = ["bash", str(RECIPE / "edition.sh"), str(work), str(work), name]
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)


def asked(work: Path) -> list[str]:
    return (work / "asked").read_text().splitlines()


def test_the_base_reads_every_piece_of_the_text(tmp_path: Path) -> None:
    """On the lent machine a long text is several files: wiki_docs.1.txt.xz and so on."""
    for name in ("wiki_docs.1", "wiki_docs.2", "forum_docs", "captions", "dialog_sgd.1", "dialog_sgd.2"):
        packed(tmp_path / "text" / f"{name}.txt.xz", "a line\n")
    assert stage(tmp_path, "base").returncode == 0
    read = re.findall(r"text/(\S+)\.txt\.xz", asked(tmp_path)[0])
    assert sorted(read) == ["captions", "dialog_sgd.1", "dialog_sgd.2", "forum_docs", "wiki_docs.1", "wiki_docs.2"]


def test_later_stages_start_from_the_new_base_where_there_is_one(tmp_path: Path) -> None:
    stage(tmp_path, "retromae")
    (tmp_path / "base" / "model").mkdir(parents=True)
    stage(tmp_path, "retromae")
    starts = [re.findall(r"--model (\S+)", line)[0] for line in asked(tmp_path) if "--model" in line]
    assert starts == ["builtin-base", str(tmp_path / "base" / "model")]


def test_a_stage_that_was_stopped_goes_on_and_is_cut_into_parts(tmp_path: Path) -> None:
    (tmp_path / "retromae").mkdir()
    (tmp_path / "retromae" / "run.json").write_text("{}")
    stage(tmp_path, "retromae")
    assert "--resume" in asked(tmp_path)[0]
    assert "split" in asked(tmp_path)[1]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "retromae.sums").write_text("")  # of an earlier model
    (tmp_path / "retromae" / "model").mkdir()  # stopped between the model and its parts
    os.utime(tmp_path / "out" / "retromae.sums", (0, 0))
    (tmp_path / "asked").unlink()
    stage(tmp_path, "retromae")
    assert [line.split()[1] for line in asked(tmp_path)] == ["split"]
    (tmp_path / "asked").unlink()
    os.utime(tmp_path / "out" / "retromae.sums")
    assert "skipped" in stage(tmp_path, "retromae").stdout
    assert not (tmp_path / "asked").exists()


def test_a_stack_of_copies_goes_back_to_its_layers(tmp_path: Path) -> None:
    weights = script("weights")
    weights.layers(tmp_path / "deep", "builtin-base", "12")
    weights.layers(tmp_path / "again", str(tmp_path / "deep"), "6")
    deep = isotrope.load(tmp_path / "deep", device="cpu", language_head=True)
    assert deep.backbone.config.num_hidden_layers == len(deep.backbone.encoder.layer) == 12
    first, again = (isotrope.load(name, device="cpu") for name in ("builtin-base", tmp_path / "again"))
    assert np.array_equal(first.encode("a ship"), again.encode("a ship"))
    assert not np.array_equal(first.encode("a ship"), deep.encode("a ship"))


def test_weights_between_two_models(tiny: Path, tmp_path: Path) -> None:
    weights = script("weights")
    moved = isotrope.load(tiny, device="cpu")
    moved.load_state_dict({n: t + 1 if t.is_floating_point() else t for n, t in moved.state_dict().items()})
    moved.save(tmp_path / "moved")
    weights.between(tmp_path / "between", "0.75", str(tiny), str(tmp_path / "moved"))
    weights.average(tmp_path / "mean", str(tiny), str(tmp_path / "moved"))
    for name, share in (("between", 0.75), ("mean", 0.5)):
        found = isotrope.load(tmp_path / name, device="cpu").state_dict()
        for key, tensor in isotrope.load(tiny, device="cpu").state_dict().items():
            if tensor.is_floating_point():
                assert torch.allclose(found[key], tensor + share, atol=1e-6), key


def test_foreign_pairs_hold_no_pair_of_a_test_set(tmp_path: Path) -> None:
    found = importlib.util.spec_from_file_location("foreign", RECIPE.parent / "development" / "foreign_pairs.py")
    assert found is not None
    assert found.loader is not None
    foreign = importlib.util.module_from_spec(found)
    found.loader.exec_module(foreign)
    files = {
        "sts/sts12.test": "subset\tsentence1\tsentence2\tscore\n"
        "MSRpar\tThe ship sank.\tA ship went down.\t4\nMSRpar\tx y\tz\t1\n",
        "transfer/mrpc.train": "label\tsentence1\tsentence2\n1\ta ship went down\tThe ship sank\n0\ta b\tc d\n",
        "nli/rte.train": "label\tpremise\thypothesis\nentailment\ta\tb\nnot_entailment\tc\td\n",
        "nli/scitail.dev": "label\tpremise\thypothesis\nentailment\ta\tb\n",
    }
    for name, text in files.items():
        place = tmp_path / f"{name}.tsv.gz"
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(gzip.compress(text.encode()))
    foreign.main(tmp_path, tmp_path / "out")
    assert (tmp_path / "out" / "mrpc.tsv").read_text().splitlines()[1:] == ["0\ta b\tc d"]
    assert (tmp_path / "out" / "rte.tsv").read_text().splitlines()[1:] == ["1\ta\tb", "0\tc\td"]


def test_the_best_is_chosen_by_pairs_and_vectors_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "{:16}  TF-IDF 62.2  BM25 64.7  encoder {}  both by ranks 70.0  both by scores {}\n"
    for name, dev, found, joined in (("one", 80.1, 71.0, 90.0), ("two", 79.9, 71.5, 70.0)):
        (tmp_path / name).write_text(f"dev {dev:.2f}\nmrpc 70.00\n" + line.format("questions", found, joined))
    script("choice").best(str(tmp_path / "one"), str(tmp_path / "two"))
    assert capsys.readouterr().out == "two\n"


def test_a_call_fetches_one_model_after_another(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "out").mkdir(parents=True)
    for name in ("retromae", "base"):
        for number in (1, 2, 3):
            (work / "out" / f"{name}.0{number}.part").write_bytes(b"weights")
        (work / "out" / f"{name}.sums").write_text("sums\n")
    calls = []
    for call in range(3):
        back = tmp_path / str(call)
        back.mkdir()
        subprocess.run(["bash", str(RECIPE / "lease.sh"), "fetch", str(work), str(back)], check=True)
        calls.append(sorted(file.name for file in back.glob("*.sums")))
        assert len(list(back.iterdir())) <= 8  # more files do not come back from a call
    assert calls == [["base.sums"], ["retromae.sums"], []]


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_tokens_are_made_before_they_are_needed(
    samples: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"sources:\n  - {{name: pairs, data: {samples['pairs']}, method: simcse-supervised}}\n")
    caches = script("token_caches")
    caches.main("builtin-base", "--recipe", str(recipe))
    caches.main("builtin-base", f"retromae={samples['sentences']}")
    made = set((tmp_path / "cache" / "corpora").iterdir())
    assert len(made) == 2
    loop = {"max_steps": 1, "batch_size": 4, "eval_steps": 1, "held_out": 4}
    isotrope.train("retromae", samples["sentences"], "builtin-base", tmp_path / "one", **loop)
    isotrope.train("simcse-supervised", samples["pairs"], "builtin-base", tmp_path / "two", **loop)
    assert set((tmp_path / "cache" / "corpora").iterdir()) == made


def test_neighbours_are_no_copies_and_far_pairs_lie_lower(
    tiny: Path, topics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(RECIPE)
    labels = script("label_pairs")
    texts = list(dict.fromkeys(topics))[:60]
    texts += [texts[0] + " !", texts[1].upper()]  # copies by their words
    vectors = labels.units(isotrope.load(tiny, device="cpu"), texts)
    for name, value in {"ANCHORS": 40, "BLOCK": 20, "FAR_BLOCKS": 2, "COPY": 2.0}.items():
        monkeypatch.setattr(labels, name, value)
    near = labels.near_pairs(texts, vectors, random.Random(1))
    assert near == labels.near_pairs(texts, vectors, random.Random(1))
    keys = [frozenset(pair[:2]) for pair in near]
    assert len(set(keys)) == len(keys) >= 40
    for first, second, cosine in near:
        both = labels.bag(first), labels.bag(second)
        assert len(both[0] & both[1]) / len(both[0] | both[1]) < labels.ALIKE
        rows = texts.index(first), texts.index(second)
        assert cosine == pytest.approx(float(vectors[rows[0]] @ vectors[rows[1]]), abs=1e-5)


def test_labels_join_the_cosine_and_both_orders_of_the_cross_encoder(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(RECIPE)
    labels = script("label_pairs")
    rows = [("A man eats.", "A man is eating food."), ("A dog runs.", "Nobody runs."), ("It rains.", "The sun shines.")]
    named = zip(("entailment", "contradiction", "neutral"), rows, strict=True)
    named = [(name, *(f"{side} {number}" for side in pair)) for name, pair in named for number in range(20)]
    labels.write(tmp_path / "nli.tsv", ("label", "sentence1", "sentence2"), named)
    settings = {"max_steps": 4, "batch_size": 6, "held_out": 6, "learning_rate": 1e-3, "final_table": False}
    isotrope.train("fine-tune", tmp_path / "nli.tsv", tiny, tmp_path / "cross", **settings)
    cosines = [0.9, 0.2, 0.4]
    pairs = [(*row, str(cosine)) for row, cosine in zip(rows, cosines, strict=True)]
    labels.write(tmp_path / "candidates.tsv", ("sentence1", "sentence2", "cosine"), pairs)
    labels.label(tmp_path, str(tmp_path / "cross" / "model"))
    written = [
        float(line.split("\t")[2]) for line in (tmp_path / "sources" / "labelled.tsv").read_text().splitlines()[1:]
    ]
    assert (min(written), max(written)) == (0.0, 5.0)
    cross = isotrope.load(tmp_path / "cross" / "model")
    place = list(cross.classifier.classes_).index("entailment")
    shares = np.array([cross.predict_proba(order)[:, place] for order in (rows, [row[::-1] for row in rows])])
    odds = np.log(shares / (1 - shares)).mean(axis=0)
    wanted = labels.standard(np.array(cosines)) + 0.5 * labels.standard(odds)
    spread = (wanted - wanted.min()) / np.ptp(wanted)
    assert np.allclose(written, 5 * spread, atol=0.3)  # bfloat16 where the processor has it


class Analyzer:
    """What sentiment_text.py asks of VADER."""

    lexicon = {"awful": -2.0, "joy": 2.5}

    def polarity_scores(self, text: str) -> dict[str, float]:
        words = text.lower().split()
        scores = [self.lexicon.get(word, 0.0) for word in words]
        shares = [np.mean([found(score) for score in scores]) for found in (lambda s: s < 0, lambda s: s == 0)]
        return {"neg": shares[0], "neu": shares[1], "pos": 1 - sum(shares), "compound": sum(scores) / 4}


@pytest.fixture
def sentiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(RECIPE)
    module = script("sentiment_text")
    rows = [("dull", -0.4, 0.8), ("dull", -0.2, 0.6), ("fine", 0.4, 0.5), ("red", 0.0, 0.0)]
    words = "".join(f'<word form="{form}" polarity="{one}" subjectivity="{two}" />' for form, one, two in rows)
    (tmp_path / "adjectives.xml").write_text(f"<sentiment>{words}</sentiment>")
    module.lexicons = module.Lexicons(Analyzer(), tmp_path / "adjectives.xml")
    return module


def test_a_text_is_labelled_by_both_lexicons_and_a_negation_reverses_an_adjective(sentiment: ModuleType) -> None:
    lexicons = sentiment.lexicons
    assert lexicons.of_adjectives("A dull day, a fine night.") == pytest.approx((0.05, 0.6))
    assert lexicons.of_adjectives("It wasn't fine.") == pytest.approx((-0.2, 0.5))
    assert lexicons.of_adjectives("Nothing to say.") == (0.0, 0.0)
    assert lexicons.label("awful dull day today") == "0.25 0.75 0.00 -0.50 -0.3 0.7"
    assert lexicons.words == {"awful", "joy", "dull", "fine"}  # "red" has no polarity


def test_no_word_of_a_lexicon_and_no_neutral_text_is_met_too_often(
    sentiment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentiment, "CORPORA", ("one",))
    monkeypatch.setattr(sentiment, "EACH_WORD", 3)
    monkeypatch.setattr(sentiment, "NEUTRAL", 4)
    texts = [f"{word} is what number {number} says" for word in ("joy", "awful", "red") for number in range(20)]
    packed(tmp_path / "text" / "one.txt.xz", "\n".join([*texts, "too short"]))
    found = sentiment.polar_sentences(tmp_path, sentiment.lexicons)
    counts = {word: sum(text.startswith(word) for text in found) for word in ("joy", "awful", "red")}
    assert counts == {"joy": 3, "awful": 3, "red": 5}
    assert found == sentiment.polar_sentences(tmp_path, sentiment.lexicons)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_scores_are_learned_into_the_vector_and_the_rest_is_kept(
    tiny: Path, topics: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_METHODS", str(RECIPE / "word_scores.py"))
    texts = list(dict.fromkeys(topics))[:200]
    rows = [f"{len(text) / 100:.2f} {float(number % 2)}\t{text}" for number, text in enumerate(texts)]
    (tmp_path / "scored.tsv").write_text("label\tsentence\n" + "\n".join(rows) + "\n")
    settings = {"max_steps": 60, "batch_size": 16, "held_out": 0, "learning_rate": 1e-3, "final_table": False}
    run = isotrope.train("word-scores", tmp_path / "scored.tsv", tiny, tmp_path / "run", teacher=str(tiny), **settings)
    losses = [line["scores"] for line in run.history if "scores" in line]
    assert losses[-1] < 0.8 * losses[0]
    before, after = (isotrope.load(model).encode(texts, normalize_embeddings=True) for model in (tiny, run.folder))
    assert 0.9 < (before * after).sum(axis=1).mean() < 0.9999
