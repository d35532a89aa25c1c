"""Pre-train a small encoder from nothing: a vocabulary, packed text, masked language modelling.

Every row is full, exactly k tokens of it are asked for, and the softmax over the vocabulary is taken at those k alone. On a GPU the
text lies in its memory, masks are drawn there, the step is compiled, and the host waits only to log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isotrope.data.packing import PackedText, pack, read_sentences
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.fresh import fresh_encoder
from isotrope.encoders.loading import default_device, load
from isotrope.encoders.roles import set_dropout
from isotrope.errors import InputError
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.progress import bar
from isotrope.training.checkpoints import RunFolder
from isotrope.training.optimiser import build_optimiser, build_schedule
from isotrope.training.settings import LoopSettings
from isotrope.training.step import keyed_seed

OPTIMISERS = ("adamw", "muon")
Measure = Callable[[Encoder], dict[str, float]]


@dataclass(frozen=True)
class PretrainSettings:
    """The defaults are for two cores; a GPU takes batch_size 1024 and the steps that go with it."""

    vocabulary: int = 16_384
    layers: int = 6
    width: int = 384
    heads: int = 6
    length: int = 128
    batch_size: int = 64  # rows of an update
    optimiser: str = "adamw"  # or muon, for the weight matrices of the layers
    learning_rate: float = 7e-4
    steps: int = 2000
    warmup_steps: int = 200
    mask_rate: float = 0.3
    keep: float = 0.1  # of the tokens asked for: left as they are
    replace: float = 0.1  # of the tokens asked for: replaced by a random one
    weight_decay: float = 0.01
    dropout: float = 0.1  # while pre-training; the saved model has 0.1 for what follows
    logging_steps: int = 50
    save_steps: int = 500
    minutes: float | None = None  # stop after so long, with a checkpoint to resume from
    seed: int = 42

    def check(self) -> None:
        for name in ("vocabulary", "layers", "width", "heads", "batch_size", "steps", "logging_steps", "save_steps"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; {getattr(self, name)} was given.")
        if self.width % self.heads:
            raise InputError(f"width ({self.width}) must be a multiple of heads ({self.heads}).")
        if self.length < 8:
            raise InputError(f"length must be at least 8; {self.length} was given.")
        if not 0 < self.mask_rate < 1 or self.keep < 0 or self.replace < 0 or self.keep + self.replace > 1:
            raise InputError("mask_rate must lie between 0 and 1, and keep and replace must be shares that sum to at most 1.")
        if self.optimiser not in OPTIMISERS:
            raise InputError(f"optimiser is one of {', '.join(OPTIMISERS)}; '{self.optimiser}' was given.")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be above 0; {self.learning_rate} was given.")
        if not 0 <= self.warmup_steps < self.steps:
            raise InputError(f"warmup_steps must be fewer than steps ({self.steps}); {self.warmup_steps} was given.")


def pretrain(
    sources: Sequence[str | Path],
    output: str | Path,
    settings: PretrainSettings,
    measure: Measure | None = None,
    resume: bool = False,
    tokenizer: Any = None,
) -> Encoder | None:
    """Train an encoder on text files, with a vocabulary of their own or that of ``tokenizer``; None when ``minutes`` ran out first."""
    settings.check()
    begun = time.perf_counter()
    folder = RunFolder(Path(output))
    encoder = _start(sources, folder, settings, resume, tokenizer)
    tokeniser = encoder.tokeniser
    text = pack(
        sources, tokeniser.flat, tokeniser.fingerprint(), tokeniser.vocabulary, tokeniser.prefix[0], tokeniser.suffix[0], settings.length
    )
    facts = {
        "method": "pretrain",
        "data": {"fingerprint": text.fingerprint, "rows": len(text.train), "documents": text.documents, "sentences": text.sentences},
        "model": {"vocabulary": tokeniser.fingerprint()},
        "settings": {name: value for name, value in asdict(settings).items() if name not in ("minutes", "logging_steps", "save_steps")},
        "sources": [str(source) for source in sources],
    }
    folder.begin(facts, resume)
    if not (folder.folder / "start").is_dir():
        encoder.save(folder.folder / "start")  # the vocabulary, for a run that goes on later

    device = default_device()
    method = MaskedLanguageModel(MLMSettings(settings.mask_rate), encoder, settings.length).to(device).train()
    set_dropout(encoder.backbone, settings.dropout)
    loop = LoopSettings(
        learning_rate=settings.learning_rate, weight_decay=settings.weight_decay, warmup_ratio=settings.warmup_steps / settings.steps
    )
    optimiser = build_optimiser(method, loop, settings.optimiser == "muon")
    schedule = build_schedule(optimiser, loop, settings.steps)
    state = folder.load_last(method, optimiser) if resume else None
    step = int(state["step"]) if state else 0
    if state:
        schedule.load_state_dict(state["schedule"])
    folder.forget_after(step if state else -1)

    loss_of = _masked_loss(method, settings, device)
    fast_loss_of = torch.compile(loss_of) if device.type == "cuda" else loss_of
    rows = _Rows(text, settings, device)
    pending: list[Tensor] = []
    clock = time.perf_counter()
    with bar("pre-training", settings.steps, start=step) as advance:
        while step < settings.steps:
            torch.manual_seed(keyed_seed(settings.seed, step))
            loss = fast_loss_of(rows.batch(step))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(method.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad(set_to_none=True)
            pending.append(loss.detach())
            step += 1
            advance(1)
            out_of_time = settings.minutes is not None and time.perf_counter() - begun > 60 * settings.minutes
            if step % settings.logging_steps == 0 or step == settings.steps or out_of_time:
                value = float(torch.stack(pending).mean())
                seconds, clock = time.perf_counter() - clock, time.perf_counter()
                speed = len(pending) * settings.batch_size * settings.length / seconds
                pending.clear()
                if not np.isfinite(value):
                    raise InputError(f"The loss is not a number at step {step}; the last good checkpoint is {folder.last()}.")
                folder.log({"step": step, "loss": value, "learning_rate": schedule.get_last_lr()[0], "tokens_per_second": round(speed)})
                advance(0, note=f"loss {value:.3f} · {speed:,.0f} tokens/s")
            if step % settings.save_steps == 0 or step == settings.steps or out_of_time:
                line: dict[str, Any] = {"step": step, "held_out_loss": held_out_loss(method, loss_of, rows)}
                if measure is not None:
                    line |= measure(encoder)
                folder.log(line)
                folder.save(step, method, optimiser, {"schedule": schedule.state_dict(), "best_step": 0})
                clock = time.perf_counter()
            if out_of_time and step < settings.steps:
                return None
    encoder.facts = {"method": "pretrain", **{name: facts[name] for name in ("settings", "data")}, "selected_step": step}
    encoder.eval().save(folder.model)
    return encoder


def _start(sources: Sequence[str | Path], folder: RunFolder, settings: PretrainSettings, resume: bool, tokenizer: Any) -> Encoder:
    """A fresh encoder, or the one a resumed run began with."""
    start = folder.folder / "start"
    if resume:
        if not start.is_dir():
            raise InputError(f"{folder.folder}: no run to resume here.")
        encoder = load(start, device="cpu", language_head=True)
        config = encoder.backbone.config
        found = {"layers": config.num_hidden_layers, "width": config.hidden_size, "heads": config.num_attention_heads}
        for name, value in found.items():
            if value != getattr(settings, name):
                raise InputError(f"{folder.folder}: cannot resume, {name} was {value} and is {getattr(settings, name)}.")
        return encoder
    texts = (record.texts[0] for record in read_sentences(sources))
    encoder = fresh_encoder(
        texts,
        settings.vocabulary,
        settings.layers,
        settings.width,
        settings.heads,
        max_length=max(settings.length, 128),
        seed=settings.seed,
        tokenizer=tokenizer,
    )
    if tokenizer is None and encoder.tokeniser.vocabulary < settings.vocabulary:
        raise InputError(
            f"The text gives a vocabulary of {encoder.tokeniser.vocabulary:,} pieces, and {settings.vocabulary:,} were asked for; "
            "lower --vocabulary or bring more text."
        )
    return encoder


def _masked_loss(method: MaskedLanguageModel, settings: PretrainSettings, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Rows of ids → the mean loss over freshly masked tokens."""
    asked = max(round(settings.mask_rate * (settings.length - 2)), 1)
    specials = torch.tensor(sorted(method.encoder.tokeniser.specials), device=device)
    mask, vocabulary = int(method.encoder.tokeniser.mask or 0), method.encoder.tokeniser.vocabulary

    def loss_of(ids: Tensor) -> Tensor:
        dice = torch.rand(ids.shape, device=device).masked_fill(torch.isin(ids, specials), 2.0)
        positions = dice.topk(asked, largest=False).indices  # [rows, asked]
        targets = ids.gather(1, positions)
        fate = torch.rand(positions.shape, device=device)
        drawn = torch.randint(len(specials), vocabulary, positions.shape, device=device)
        shown = torch.where(fate < settings.keep, targets, torch.where(fate < settings.keep + settings.replace, drawn, mask))
        masked = ids.scatter(1, positions, shown)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            states = method.encoder.backbone(input_ids=masked).last_hidden_state
            chosen = states.gather(1, positions.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
            scores = method.scores(chosen.flatten(0, 1))
        return cross_entropy(scores.float(), targets.flatten())

    return loss_of


class _Rows:
    """Batches of rows by step: a new order each epoch, the same for the same seed."""

    def __init__(self, text: PackedText, settings: PretrainSettings, device: torch.device) -> None:
        if len(text.train) < settings.batch_size:
            raise InputError(f"The text gives {len(text.train):,} rows, fewer than batch_size ({settings.batch_size}); bring more text.")
        self.text, self.settings, self.device = text, settings, device
        resident = device.type == "cuda"
        self.train = torch.from_numpy(text.train.astype(np.int32)).to(device) if resident else None
        self.epoch, self.order = -1, torch.empty(0, dtype=torch.int64)

    def batch(self, step: int) -> Tensor:
        size = self.settings.batch_size
        per_epoch = len(self.text.train) // size
        epoch, place = divmod(step, per_epoch)
        if epoch != self.epoch:
            generator = torch.Generator().manual_seed(keyed_seed(self.settings.seed, 1, epoch))
            self.epoch, self.order = epoch, torch.randperm(len(self.text.train), generator=generator)
            self.order = self.order.to(self.device) if self.train is not None else self.order
        chosen = self.order[place * size : (place + 1) * size]
        if self.train is not None:
            return self.train[chosen].long()
        return torch.from_numpy(self.text.train[chosen.numpy()].astype(np.int64))

    def held(self) -> list[Tensor]:
        """At most 512 rows, always the same."""
        rows = torch.from_numpy(self.text.held[:512].astype(np.int64)).to(self.device)
        return list(rows.split(self.settings.batch_size))


@torch.no_grad()
def held_out_loss(method: MaskedLanguageModel, loss_of: Callable[[Tensor], Tensor], rows: _Rows) -> float:
    """Of rows that training never saw, under masks that are always the same."""
    method.eval()
    torch.manual_seed(0)
    losses = [(len(batch), float(loss_of(batch))) for batch in rows.held()]
    method.train()
    return sum(count * loss for count, loss in losses) / sum(count for count, _ in losses)
