"""word2vec: what is a pair, what is noise, what a step touches, and what a sentence is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import open_corpus
from isotrope.data.sources import find_records
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import check
from isotrope.methods.word2vec import Word2Vec
from isotrope.tokens.padded import Tokens
from isotrope.tokens.word_vocabulary import learn_words
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser
from isotrope.views.numbers import Numbers
from isotrope.views.word_stream import draw_noise, keep_rates, keep_words

pytestmark = pytest.mark.filterwarnings(
    "ignore::isotrope.training.state.TrainingWarning", "ignore::isotrope.spaces.space.SpaceWarning"
)
Batched = Callable[..., Batch]
LOOP: dict[str, Any] = {"max_steps": 60, "batch_size": 64, "eval_steps": 60, "logging_steps": 20}


def build(data: Any, filled: bool = True, **settings: Any) -> Word2Vec:
    """The method on a text of its own; ``filled``: with vectors that are not near 0."""
    chosen = Word2Vec.Settings(**settings)
    check(chosen)
    encoder = Word2Vec.initialise(chosen, find_records(data, ("sentences",), None, False).records, 0)
    tokenizer = encoder.text_tokenizer
    corpus = open_corpus(data, ("sentences",), tokenizer)
    method = Word2Vec(chosen, encoder, 64, corpus).train()
    if filled:
        torch.manual_seed(1)
        for parameter in method.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return method


def words_of(*texts: list[int]) -> Tokens:
    return keep_words([np.array(text) for text in texts], np.ones(1000), np.random.default_rng(0))


def test_the_card_and_the_defaults() -> None:
    card = Word2Vec.card
    assert (card.name, card.needs, card.year, Word2Vec.keeps) == ("word2vec", "sentences", 2013, "last")
    defaults = Word2Vec.Settings()
    assert (defaults.dimension, defaults.window, defaults.negatives, defaults.min_count) == (100, 5, 5, 5)
    assert (defaults.threshold, defaults.noise_power) == (1e-3, 0.75)


def test_frequent_words_are_thinned_out_as_the_paper_and_as_the_code_say() -> None:
    frequency = np.array([0.05, 0.01, 0.001, 1e-5])
    assert keep_rates(frequency, 1e-3, released=True) == pytest.approx([0.16142, 0.41623, 1.0, 1.0], abs=1e-5)
    assert keep_rates(frequency, 1e-3) == pytest.approx([math.sqrt(0.02), 0.31623, 1.0, 1.0], abs=1e-5)
    assert keep_rates(frequency, 0.0).tolist() == [1.0] * 4
    rng = np.random.default_rng(0)
    kept = keep_words([np.repeat([2, 3], 10_000)], np.array([0, 0, 0.25, 1.0]), rng)
    assert np.bincount(kept.ids[0].numpy())[2] / 10_000 == pytest.approx(0.25, abs=0.02)
    assert np.bincount(kept.ids[0].numpy())[3] == 10_000


def test_noise_is_drawn_by_count_to_the_power() -> None:
    counts = np.array([0.0, 0.0, 1.0, 16.0, 81.0])
    drawn = draw_noise(np.cumsum(counts**0.75), (100, 1000), np.random.default_rng(0))
    shares = np.bincount(drawn.ravel(), minlength=5) / drawn.size
    assert shares == pytest.approx(np.array([0, 0, 1, 8, 27]) / 36, abs=0.005)


def test_what_the_method_draws_from_is_the_text(sentences: Path) -> None:
    method = build(sentences, threshold=1e-2)
    ids = method.encoder.tokenizer.convert_tokens_to_ids(["the", "chef", "[UNK]", "[PAD]"])
    counts = np.bincount(method.corpus.ids)  # type: ignore[union-attr]
    weighed = np.diff(method.noise_ends, prepend=0)[ids]
    assert weighed[:2] == pytest.approx(counts[ids[:2]] ** 0.75)
    assert weighed[2:].tolist() == [0.0, 0.0]
    known = counts[2:].sum()
    assert method.keep[ids] == pytest.approx(
        [math.sqrt(1e-2 * known / counts[ids[0]]), math.sqrt(1e-2 * known / counts[ids[1]]), 0.0, 0.0]
    )


@pytest.mark.parametrize("form", ["skip-gram", "cbow"])
def test_the_loss_is_that_of_a_naive_loop(sentences: Path, form: str) -> None:
    """Every pair by itself, in float64; a noise word that is the partner is passed over."""
    method = build(sentences, form=form, window=3, negatives=5, noise_words=4, dimension=6)
    texts, noise = [[5, 6, 7, 5, 8, 9], [10, 11], [12]], [[6, 7, 5, 20], [10, 10, 21, 22], [12, 13, 14, 15]]
    batch = Batch({"words": words_of(*texts), "noise": Numbers.of(noise)}, 3, 0)
    found = {name: value.detach() for name, value in method.represent(batch).items()}
    inputs = method.encoder.backbone.get_input_embeddings().weight.detach().double().numpy()
    outputs = method.tower["contexts"].module.weight.detach().double().numpy()

    def asked(anchor: Any, partner: int, drawn: list[int]) -> float:
        def log_sigmoid(x: float) -> float:
            return -math.log1p(math.exp(-x))

        against = [log_sigmoid(-anchor @ outputs[word]) for word in drawn if word != partner]
        return -log_sigmoid(anchor @ outputs[partner]) - 5 / 4 * sum(against)

    for row, (text, drawn) in enumerate(zip(texts, noise, strict=True)):
        loss, pairs = 0.0, 0.0
        for i, word in enumerate(text):
            near = {j: (4 - abs(i - j)) / 3 for j in range(len(text)) if 0 < abs(i - j) <= 3}
            if form == "skip-gram":
                loss += sum(weight * asked(inputs[word], text[j], drawn) for j, weight in near.items())
                pairs += sum(near.values())
            elif near:
                mean = sum(weight * inputs[text[j]] for j, weight in near.items()) / sum(near.values())
                loss += asked(mean, word, drawn)
                pairs += 1
        assert float(found["pair_losses"][row]) == pytest.approx(loss, rel=1e-5, abs=1e-6)
        assert float(found["pairs"][row]) == pytest.approx(pairs, rel=1e-6)
    total = method.loss(found, batch.generator())["negative_sampling"]
    assert float(total) == pytest.approx(float(found["pair_losses"].sum() / found["pairs"].sum()))


def test_at_the_start_every_term_is_log_two(sentences: Path, batched: Batched) -> None:
    method = build(sentences, filled=False, negatives=5, noise_words=3)
    views = {"words": words_of([5, 6, 7, 8]), "noise": Numbers.of([[20, 21, 22]])}
    found = {name: value.detach() for name, value in method.represent(Batch(views, 1, 0)).items()}
    assert float(found["pair_losses"] / found["pairs"]) == pytest.approx(6 * math.log(2))
    table = method.encoder.backbone.get_input_embeddings().weight.detach()
    assert float(table.abs().max()) <= 0.5 / 100
    assert float(table[2:].std()) == pytest.approx(0.01 / math.sqrt(12), rel=0.1)
    assert not table[:2].any()


def test_with_one_neighbour_cbow_is_skip_gram_with_the_tables_swapped(sentences: Path) -> None:
    views = {"words": words_of([5, 6], [7, 8]), "noise": Numbers.of([[20, 21], [22, 7]])}
    found = [build(sentences, form=form).represent(Batch(views, 2, 0)) for form in ("skip-gram", "cbow")]
    assert torch.allclose(found[0]["pair_losses"], found[1]["pair_losses"], atol=1e-6)
    assert found[0]["pairs"].tolist() == found[1]["pairs"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("form", ["skip-gram", "cbow"])
def test_padding_company_and_order_do_not_matter(sentences: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method = build(sentences, form=form)
    texts, noise = [[5, 6, 7], [16], [8, 9, 10, 11, 12, 13, 14, 15], []], np.arange(20, 36).reshape(4, 4)
    whole = method.represent(Batch({"words": words_of(*texts), "noise": Numbers.of(noise)}, 4, 0))
    for row, text in enumerate(texts):
        alone = method.represent(Batch({"words": words_of(text), "noise": Numbers.of(noise[row : row + 1])}, 1, 0))
        assert torch.allclose(alone["pair_losses"][0], whole["pair_losses"][row], atol=1e-5)
    assert whole["pairs"].tolist()[1::2] == [0.0, 0.0]
    monkeypatch.setattr("isotrope.methods.word2vec.TOKEN_BUDGET", {"cpu": 1, "cuda": 1})  # many groups
    apart = method.represent(Batch({"words": words_of(*texts), "noise": Numbers.of(noise)}, 4, 0))
    assert torch.allclose(apart["pair_losses"], whole["pair_losses"], atol=1e-5)
    assert torch.equal(apart["pairs"], whole["pairs"])


def test_chunks_agree(sentences: Path, chunks_agree: Callable[[Method, Method], None]) -> None:
    chunks_agree(build(sentences), build(sentences))


def test_a_step_leaves_the_rows_that_it_did_not_see(sentences: Path) -> None:
    method = build(sentences, negatives=2, noise_words=2)
    optimiser = build_optimiser(Combined(method), LoopSettings(**{**method.defaults, "learning_rate": 0.1}))
    tables = {"u": method.encoder.backbone.get_input_embeddings().weight, "v": method.tower["contexts"].module.weight}
    # The second step must not carry on with the first one's rows.
    for text, noise in (([5, 6, 7], [20, 21]), ([8, 9], [22, 23])):
        before = {name: table.detach().clone() for name, table in tables.items()}
        batch = Batch({"words": words_of(text), "noise": Numbers.of([noise])}, 1, 0)
        Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
        optimiser.step()
        optimiser.zero_grad()
        moved = {
            name: torch.nonzero((table != before[name]).any(dim=1)).flatten().tolist() for name, table in tables.items()
        }
        assert moved == {"u": text, "v": [*text, *noise]}


def test_rare_words_are_left_out_and_the_rest_moves_together(tmp_path: Path, batched: Batched) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Red rare blue!\n" * 1 + "red blue\n" * 4 + "green red\n" * 4, encoding="utf-8")
    method = build(text, min_count=5, threshold=0.0)
    assert method.encoder.tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "red": 2, "blue": 3}
    views = batched(method, [0])
    assert views["words"].ids.tolist() == [[2, 3]]  # neighbours now
    assert "2 different words stand 5 times or more" in method.prepared.remarks[0]


def test_held_out_text_is_not_counted(tmp_path: Path) -> None:
    """Shares, thinning and noise are those of the rows that are trained on; what only held-out text makes frequent
    enough is left out, and its vector is that of an unknown word."""
    text = tmp_path / "text.txt"
    text.write_text("red blue\n" * 6 + "red green\n" * 4 + "blue green\n" * 2, encoding="utf-8")
    whole, part = (build(text, min_count=5, threshold=0.1) for _ in range(2))
    part.count(np.arange(10))  # 10 red, 6 blue, 4 green
    red, blue, green = part.encoder.tokenizer.convert_tokens_to_ids(["red", "blue", "green"])
    assert whole.known[[red, blue, green]].tolist() == [True, True, True]
    assert part.known[[red, blue, green]].tolist() == [True, True, False]
    assert part.share[[red, blue, green]] == pytest.approx([0.5, 0.3, 0.2])
    assert np.diff(part.noise_ends, prepend=0)[[red, blue, green]] == pytest.approx([10**0.75, 6**0.75, 0.0])
    assert part.keep[[red, blue, green]] == pytest.approx([math.sqrt(0.1 * 16 / 10), math.sqrt(0.1 * 16 / 6), 0.0])
    assert "2 different words stand 5 times or more; rarer ones, 20.0%" in part.prepared.remarks[0]
    table = part.export().backbone.get_input_embeddings().weight.detach()
    assert not table[green].any()
    assert table[[red, blue]].any(dim=1).all()
    with pytest.raises(InputError, match="One word alone stands 5 times"):
        part.count(np.arange(6, 11))


def test_long_texts_are_cut_at_max_length(sentences: Path, batched: Batched) -> None:
    method = build(sentences, threshold=0.0, min_count=1)
    method.max_length = 3
    assert batched(method, range(4))["words"].lengths.tolist() == [3, 3, 3, 3]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> isotrope.api.Run:
    """Two topics that share the word "the"."""
    rng = np.random.default_rng(0)
    topics = ["boat sail wind wave harbour anchor mast".split(), "bread flour oven yeast dough crust salt".split()]
    texts = [" ".join(["the", *rng.permutation(topics[number % 2])[:6]]) for number in range(1200)]
    folder = tmp_path_factory.mktemp("run")
    (folder / "text.txt").write_text("\n".join(texts), encoding="utf-8")
    return isotrope.train("word2vec", folder / "text.txt", output=folder / "run", dimension=20, threshold=0.0, **LOOP)


def test_words_of_a_topic_come_together_and_held_out_pairs_differ_from_noise(run: isotrope.api.Run) -> None:
    losses = [line["evaluation"]["pair_loss"] for line in run.history if "evaluation" in line]
    assert losses[0] == pytest.approx(6 * math.log(2), rel=0.1)  # less where the noise is the partner
    assert losses[-1] < 0.8 * losses[0]
    cosines = run.encoder.similarity(["boat", "oven"], ["wind", "wave", "mast", "flour", "dough", "crust"])
    assert cosines[0, :3].min() > cosines[0, 3:].max() + 0.3
    assert cosines[1, 3:].min() > cosines[1, :3].max() + 0.3


def test_a_sentence_is_the_mean_of_weighted_words_here_and_in_sentence_transformers(run: isotrope.api.Run) -> None:
    encoder = isotrope.load(run.folder / "model")
    texts = ["the boat", "Boat, oven!", "unheardof boat", "unheardof", ""]
    vectors = encoder.encode(texts)
    the, boat, oven = (encoder.encode(word) for word in ("the", "boat", "oven"))
    assert np.allclose(vectors, [(the + boat) / 2, (boat + oven) / 4, boat / 2, 0 * boat, 0 * boat], atol=1e-6)
    other = pytest.importorskip("sentence_transformers").SentenceTransformer(str(run.folder / "model"), device="cpu")
    assert np.allclose(other.encode(texts), vectors, atol=1e-6)


def test_frequent_words_weigh_less_in_the_mean(sentences: Path) -> None:
    method = build(sentences, smoothing=0.01)
    table = method.encoder.backbone.get_input_embeddings().weight.detach()
    counts = np.bincount(method.corpus.ids, minlength=len(table))  # type: ignore[union-attr]
    weights = torch.from_numpy(0.01 / (0.01 + counts / counts.sum())).float()
    exported = method.export().backbone.get_input_embeddings().weight.detach()
    assert torch.allclose(exported[2:], (table * weights.unsqueeze(1))[2:])
    assert not exported[:2].any()
    plain = build(sentences, smoothing=0.0).export().backbone.get_input_embeddings().weight.detach()
    assert torch.equal(plain[2:], table[2:])


def test_a_table_can_be_mapped_searched_and_trained_on(run: isotrope.api.Run, tmp_path: Path) -> None:
    texts = [f"the {a} {b}" for a, b in itertools.permutations("boat sail wind oven flour dough".split(), 2)]
    mapped = isotrope.fit_space("sif", run.encoder, texts, components=0, smoothing=0.05)
    assert isinstance(mapped.backbone, StaticVectors)
    mapped.save(tmp_path / "sif")
    assert np.allclose(isotrope.load(tmp_path / "sif").encode(texts), mapped.encode(texts), atol=1e-6)
    shares = {"boat": 1 / 9, "the": 1 / 3}
    for word, share in shares.items():
        assert np.allclose(mapped.encode(word), run.encoder.encode(word) * 0.05 / (0.05 + share), atol=1e-6)
    whitened = isotrope.fit_space("whitening", run.encoder, texts, k=3)
    whitened.save(tmp_path / "white")
    assert np.allclose(isotrope.load(tmp_path / "white").encode(texts), whitened.encode(texts), atol=1e-5)
    pairs = itertools.pairwise(texts)
    loop = {"max_steps": 2, "batch_size": 8, "held_out": 0, "keep_start": False}
    again = isotrope.train(
        "sbert",
        [(a, b, str(row % 2)) for row, (a, b) in enumerate(pairs)],
        run.folder / "model",
        tmp_path / "again",
        **loop,
    )
    assert not np.allclose(again.encoder.encode("boat"), run.encoder.encode("boat"), atol=1e-7)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"form": "glove"}, "skip-gram, cbow"),
        ({"thinning": "none"}, "paper, released"),
        ({"window": 0}, "window must be at least 1"),
        ({"negatives": 0}, "negatives must be at least 1"),
        ({"min_count": 0}, "min_count must be at least 1"),
        ({"smoothing": -1.0}, "smoothing must not be negative"),
        ({"threshold": float("nan")}, "threshold must be a finite number"),
        ({"mlm_weight": 0.1}, "mlm_weight needs a transformer"),
        ({"pooling": "cls"}, "read out by their mean"),
        ({"model": "builtin"}, "leave model out"),
        ({"min_count": 10_000}, "No word stands 10000 times"),
    ],
)
def test_bad_input_is_one_sentence(sentences: Path, tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        isotrope.train("word2vec", sentences, output=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_a_single_word_is_not_enough() -> None:
    with pytest.raises(InputError, match="One word alone stands 3 times"):
        learn_words(["yes yes yes no no"], 3)


def test_a_table_has_no_language_head_and_no_other_pooling(run: isotrope.api.Run) -> None:
    with pytest.raises(InputError, match="no language head"):
        isotrope.load(run.folder / "model", language_head=True)
    with pytest.raises(InputError, match="read out by its mean"):
        isotrope.load(run.folder / "model", pooling="cls")


@pytest.mark.parametrize("missing", ["model.safetensors", "tokenizer.json"])
def test_a_folder_that_is_not_whole_is_refused(run: isotrope.api.Run, tmp_path: Path, missing: str) -> None:
    run.encoder.save(tmp_path / "model")
    (tmp_path / "model" / missing).unlink()
    with pytest.raises(InputError, match=f"{missing} is missing"):
        isotrope.load(tmp_path / "model")
    (tmp_path / "model" / missing).write_bytes(b"not what it says")
    with pytest.raises(InputError, match=missing):
        isotrope.load(tmp_path / "model")
