"""A static student: a table of token vectors that imitates an encoder, so that a sentence is one lookup and one mean.

    row(t) = w(t) · P (e(t) − ē),     w(t) = a / (a + p(t))          the start, from the teacher alone
    L = mean over sentences of 1 − cos(mean of the rows of x, P·teacher(x))       fine-tuning on TEXT

e(t) is the teacher's vector of the token t alone, ē the mean over the vocabulary, p(t) the share of t among the tokens
of TEXT, and P the teacher's leading principal directions on TEXT, the first the strongest.

When to use it: speed on a CPU, or a model of a few megabytes. What goes wrong: a mean of rows knows neither word order
nor negation, and a token that TEXT does not have keeps its start. Siblings: the method ``distil`` trains a student with
layers; the space ``sif`` weighs the tokens of a model that stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import evaluating
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.files import digest
from isotrope.measures.principal import principal_axes
from isotrope.methods.frame.settings import Count, Positive, Settings, at_least
from isotrope.objectives import imitation
from isotrope.progress import bar, say
from isotrope.tokens.word_vocabulary import bare_tokenizer, word_tokenizer
from isotrope.training.loop_settings import Seed

WIDTH = 256
BLOCK = 2048  # tokens, each a text of its own, in one call of the teacher
Batch = tuple[Tensor, Tensor]  # token ids of all texts one after another, and where each text begins


@dataclass(frozen=True)
class StaticSettings(Settings):
    """The defaults suit some ten thousand sentences; with a million, one or two epochs are enough."""

    dimension: Annotated[
        int | None, at_least(1), "Width of the student's vectors; none: 256, or the teacher's where that is less"
    ] = None
    smoothing: Annotated[Positive, "The a in a token's weight a / (a + share of the token)"] = 1e-3
    sentences: Annotated[int | None, at_least(1), "Sentences of the text to imitate; none: all of them"] = 100_000
    epochs: Annotated[int, at_least(0), "Passes of fine-tuning over these sentences; 0: the start alone"] = 8
    learning_rate: Annotated[Positive, "Adam's rate at the beginning; it falls to zero"] = 2e-2
    batch_size: Annotated[Count, "Sentences of an update"] = 512
    seed: Seed = 42


def distil_static(teacher: Encoder, texts: Sequence[str], settings: StaticSettings) -> Encoder:
    """The student of ``teacher``, whose sentences are ``texts``; it has the teacher's vocabulary."""
    tokenizer = student_tokenizer(teacher)
    width = min(teacher.dimension, WIDTH) if settings.dimension is None else settings.dimension
    if width > teacher.dimension:
        raise InputError(
            f"The teacher's vectors have {teacher.dimension} dimensions; dimension {width} is more than that."
        )
    different = list(dict.fromkeys(text for text in texts if text.strip()))
    if len(different) < 2:
        raise InputError(f"A student learns from many different texts; {len(different)} was given.")
    student = Encoder(StaticVectors(torch.zeros(len(tokenizer), width)), tokenizer)
    frequency = token_shares(student, different)
    taught = _sample(different, settings)
    say(f"The teacher encodes {len(taught):,} sentences and {len(tokenizer):,} tokens.")
    target = nn.functional.normalize(torch.from_numpy(teacher.encode(taught)), dim=1)
    axes = leading_axes(target, width)
    weights = settings.smoothing / (settings.smoothing + frequency)
    table = weights.unsqueeze(1) * (_centred(token_vectors(teacher), teacher) @ axes)
    student = Encoder(StaticVectors(table), tokenizer, facts=_facts(teacher, different, settings)).to(teacher.device)
    fine_tune(student, taught, target @ axes, settings)
    return student.eval()


def student_tokenizer(teacher: Encoder) -> Any:
    """The teacher's tokenizer without the special tokens around a text, which a mean would only carry along."""
    backend = getattr(getattr(teacher, "tokenizer", None), "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            "The model has no vocabulary of the tokenizers library, so no table can be made of it; "
            "distil a text encoder with a fast tokenizer."
        )
    return word_tokenizer(bare_tokenizer(backend))


def token_vectors(teacher: Encoder) -> Tensor:
    """[vocabulary, d]: the teacher's vector of each token, which stands alone between the special tokens."""
    count = teacher.text_tokenizer.vocabulary
    found = []
    with evaluating(teacher), bar("tokens", count) as advance:
        for start in range(0, count, BLOCK):
            alone = [np.array([token]) for token in range(start, min(start + BLOCK, count))]
            (vectors,) = teacher.embed(teacher.frame(alone).to(teacher.device))
            found.append(vectors.float().cpu())
            advance(len(alone))
    return torch.cat(found).clone()


def token_shares(student: Encoder, texts: Sequence[str]) -> Tensor:
    """[vocabulary]: the share of each token among those of the texts."""
    flat, _ = student.text_tokenizer.flat(list(texts))
    counts = np.bincount(flat, minlength=student.text_tokenizer.vocabulary)
    return torch.from_numpy(counts / max(counts.sum(), 1)).float()


def leading_axes(vectors: Tensor, width: int) -> Tensor:
    """[d, width]: orthonormal, not centred, so at full width the cosines stay what they were."""
    moments = vectors.double()
    _, axes = principal_axes(moments.T @ moments)
    signs = axes.gather(0, axes.abs().argmax(dim=0, keepdim=True)).sign()  # else it hangs on the machine
    return (axes * signs)[:, :width].float()


def fine_tune(student: Encoder, texts: Sequence[str], target: Tensor, settings: StaticSettings) -> None:
    """Adam on the table, in float32; on a CPU the same settings and texts give the same table."""
    flat, lengths = student.text_tokenizer.flat(list(texts))
    rows = np.split(flat, np.cumsum(lengths)[:-1])
    usable = np.flatnonzero(lengths > 0)
    if not settings.epochs or not len(usable):
        return
    size, device = min(settings.batch_size, len(usable)), student.device
    target = target.to(device)
    table = nn.Parameter(student.backbone.table.weight.detach().clone())
    optimiser = torch.optim.Adam([table], lr=settings.learning_rate)
    updates = settings.epochs * (len(usable) // size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / updates)
    rng = np.random.default_rng(settings.seed)
    with bar("imitating", updates) as advance:
        for _ in range(settings.epochs):
            order = rng.permutation(usable)
            for start in range(0, len(order) - size + 1, size):
                chosen = order[start : start + size]
                loss = imitation(mean_rows(table, _batch(rows, chosen, device)), target[torch.from_numpy(chosen)])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                advance(note=f"loss {loss.item():.3f}" if schedule.last_epoch % 50 == 0 else "")
    with torch.no_grad():
        student.backbone.table.weight.copy_(table)


def mean_rows(table: Tensor, batch: Batch) -> Tensor:
    """[texts, d]: the mean of the rows of each text's tokens."""
    return nn.functional.embedding_bag(batch[0], table, batch[1], mode="mean")


def _batch(rows: Sequence[Any], chosen: Any, device: torch.device) -> Batch:
    texts = [rows[row] for row in chosen]
    starts = np.cumsum([0, *(len(text) for text in texts[:-1])])
    return torch.from_numpy(np.concatenate(texts)).long().to(device), torch.from_numpy(starts).to(device)


def _sample(texts: list[str], settings: StaticSettings) -> list[str]:
    if settings.sentences is None or settings.sentences >= len(texts):
        return texts
    drawn = np.random.default_rng(settings.seed).permutation(len(texts))[: settings.sentences]
    return [texts[row] for row in drawn]


def _centred(vectors: Tensor, teacher: Encoder) -> Tensor:
    """Less their mean; special tokens, which mean nothing in a text, are zero."""
    special = torch.zeros(len(vectors), dtype=torch.bool)
    special[list(teacher.text_tokenizer.specials)] = True
    centred = vectors - vectors[~special].mean(dim=0)
    centred[special] = 0
    return centred


def _facts(teacher: Encoder, texts: Sequence[str], settings: StaticSettings) -> dict[str, Any]:
    return {
        "method": "static",
        "teacher": teacher.fingerprint(),
        "texts": len(texts),
        "text_fingerprint": digest(*texts),
        "settings": asdict(settings),
    }
