"""The static student: a table that imitates an encoder, saved for every reader of sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.packed import write_packed
from isotrope.errors import InputError
from isotrope.training.static_student import (
    StaticSettings,
    distil_static,
    leading_axes,
    student_tokenizer,
    token_shares,
    token_vectors,
)

FEW = {"dimension": 16, "epochs": 2, "batch_size": 32}


def cosine_to_teacher(student: isotrope.Encoder, teacher: isotrope.Encoder, texts: list[str]) -> float:
    """Correlation of all cosines between texts, student against teacher."""
    ours, theirs = student.similarity(texts, texts), teacher.similarity(texts, texts)
    above = np.triu_indices(len(texts), 1)
    return float(np.corrcoef(ours[above], theirs[above])[0, 1])


def test_the_start_is_the_weighted_centred_and_rotated_vector_of_each_token(tiny: Path, topics: list[str]) -> None:
    teacher = isotrope.load(tiny, device="cpu")
    texts = topics[:60]
    student = distil_static(teacher, texts, StaticSettings(dimension=8, smoothing=0.01, epochs=0))
    vocabulary = teacher.tokenizer.get_vocab()
    special = set(teacher.tokenizer.all_special_ids)
    # The naive way: one token a call, counts by hand, singular vectors of the unit sentence vectors.
    alone = {token: teacher(teacher.frame([np.array([number])])).detach()[0] for token, number in vocabulary.items()}
    mean = torch.stack([vector for token, vector in alone.items() if vocabulary[token] not in special]).mean(0)
    counts = dict.fromkeys(vocabulary.values(), 0)
    for text in texts:
        for number in teacher.tokenizer(text, add_special_tokens=False)["input_ids"]:
            counts[number] += 1
    units = torch.nn.functional.normalize(torch.from_numpy(teacher.encode(texts)).double(), dim=1)
    axes = torch.linalg.svd(units, full_matrices=False).Vh[:8]
    for token in ("bread", "the", "sailor"):
        share = counts[vocabulary[token]] / sum(counts.values())
        expected = 0.01 / (0.01 + share) * (axes @ (alone[token] - mean).double())
        found = student.backbone.table.weight[vocabulary[token]].double()
        assert torch.allclose(found.abs(), expected.abs(), atol=1e-4)  # the sign of an axis is free
    assert student.backbone.table.weight[sorted(special)].abs().sum() == 0


def test_fine_tuning_brings_the_student_nearer_to_the_teacher_on_text_it_has_not_seen(
    tiny: Path, topics: list[str]
) -> None:
    teacher = isotrope.load(tiny, device="cpu")
    seen, unseen = topics[:400], topics[600:700]
    start = distil_static(teacher, seen, StaticSettings(dimension=32, epochs=0))
    tuned = distil_static(teacher, seen, StaticSettings(dimension=32, epochs=8, batch_size=32))
    assert cosine_to_teacher(tuned, teacher, unseen) > cosine_to_teacher(start, teacher, unseen) + 0.1


def test_the_same_call_gives_the_same_table_and_the_teacher_stays(tiny: Path, topics: list[str]) -> None:
    teacher = isotrope.load(tiny, device="cpu")
    before = teacher.fingerprint()
    first, second = (distil_static(teacher, topics[:80], StaticSettings(**FEW)) for _ in range(2))
    assert first.fingerprint() == second.fingerprint()
    assert teacher.fingerprint() == before


def test_a_student_is_saved_as_static_embedding_and_gives_the_same_vectors_everywhere(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    made = isotrope.distil(tiny, sentences, tmp_path / "student", **FEW)
    assert made.to_dict() == {
        "student": "static",
        "output": str(tmp_path / "student"),
        "texts": 400,
        "vocabulary": len(isotrope.load(tiny).tokenizer),
        "dimension": 16,
    }
    texts = ["the chef bakes the bread", "", "unseen zebra [SEP] word", "a " * 300, "Ünï"]
    ours = isotrope.load(tmp_path / "student", device="cpu").encode(texts)
    theirs = SentenceTransformer(str(tmp_path / "student"), device="cpu").encode(texts)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(ours, made.encoder.cpu().encode(texts), atol=1e-6)
    hits = isotrope.search(tmp_path / "student", sentences, "the pilot lands the rocket", top=1)
    assert "pilot" in hits[0].text


def test_a_byte_pair_vocabulary_has_a_student_too(gpt2: Path, topics: list[str], tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    student = isotrope.distil(isotrope.load(gpt2, device="cpu"), topics[:60], **FEW)
    student.save(tmp_path / "student")
    theirs = SentenceTransformer(str(tmp_path / "student"), device="cpu").encode(topics[:5])
    np.testing.assert_allclose(student.encode(topics[:5]), theirs, atol=1e-6)


def test_a_packed_student_is_small_and_near(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    student = isotrope.distil(isotrope.load(tiny, device="cpu"), topics[:60], **FEW)
    write_packed(student, tmp_path / "packed")
    again = isotrope.load(tmp_path / "packed", device="cpu")
    near = student.encode(topics[:9], normalize_embeddings=True) * again.encode(topics[:9], normalize_embeddings=True)
    assert near.sum(axis=1).min() > 0.9995
    again.save(tmp_path / "plain")
    np.testing.assert_allclose(isotrope.load(tmp_path / "plain").encode(topics[:3]), again.encode(topics[:3]))
    with pytest.raises(InputError, match="no language head"):
        isotrope.load(tmp_path / "packed", language_head=True)
    with pytest.raises(InputError, match="read out by its mean"):
        isotrope.load(tmp_path / "packed", pooling="cls")


def test_shares_axes_and_vectors_have_the_shapes_of_the_vocabulary(tiny: Path, topics: list[str]) -> None:
    teacher = isotrope.load(tiny, device="cpu")
    student = distil_static(teacher, topics[:20], StaticSettings(dimension=None, epochs=0))
    assert student.dimension == teacher.dimension
    assert float(token_shares(student, topics[:20]).sum()) == pytest.approx(1)
    assert token_vectors(teacher).shape == (len(teacher.tokenizer), teacher.dimension)
    axes = leading_axes(torch.randn(50, 6, generator=torch.Generator().manual_seed(0)), 4)
    assert torch.allclose(axes.T @ axes, torch.eye(4), atol=1e-5)
    assert student_tokenizer(teacher)("a")["input_ids"] == teacher.tokenizer("a", add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"dimension": 33}, "dimension 33 is more"),
        ({"dimension": 0}, "dimension must be at least 1"),
        ({"epochs": -1}, "epochs must not be negative"),
        ({"layers": 2}, "Unknown setting 'layers'"),
        ({"to": "tiny"}, "to is static; 'tiny' was given"),
    ],
)
def test_what_cannot_be_is_refused(tiny: Path, topics: list[str], settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        isotrope.distil(tiny, topics[:20], **settings)  # type: ignore[call-overload]


def test_text_and_vocabulary_that_are_not_there_are_refused(tiny: Path, tmp_path: Path) -> None:
    class Remote:
        """What has vectors and no vocabulary, such as a model behind an address or one of pictures."""

        def encode(self, texts: list[str]) -> np.ndarray:
            return np.ones((len(texts), 4), dtype=np.float32)

    with pytest.raises(InputError, match="no vocabulary"):
        isotrope.distil(Remote(), ["one text", "another text"])  # type: ignore[call-overload]
    (tmp_path / "empty.txt").write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="no sentences found"):
        isotrope.distil(tiny, tmp_path / "empty.txt", tmp_path / "student")
    with pytest.raises(InputError, match="many different texts; 1"):
        isotrope.distil(tiny, ["the same", "the same"])
    assert not (tmp_path / "student").exists()
