"""Pre-train a small encoder from nothing: a vocabulary, and masked language modelling, a sentence task, or both.

The tasks are the methods mlm, nsp, sop and structbert. Masked language modelling alone reads packed rows: see
``RunningText``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotrope.data.sources import read_sentences
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.fresh import fresh_encoder
from isotrope.encoders.loading import default_device, load
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.nsp import SentencePairs
from isotrope.progress import bar
from isotrope.training.checkpoints import RunFolder
from isotrope.training.loop import TrainingWarning
from isotrope.training.optimiser import build_optimiser, build_schedule
from isotrope.training.pretrain_feeds import PairedText, RunningText, Text
from isotrope.training.pretrain_settings import PretrainSettings
from isotrope.training.settings import LoopSettings
from isotrope.training.step import keyed_seed

Measure = Callable[[Encoder], dict[str, float]]


def pretrain(
    sources: Sequence[str | Path],
    output: str | Path,
    settings: PretrainSettings,
    measure: Measure | None = None,
    resume: bool = False,
    tokenizer: Any = None,
) -> Encoder | None:
    """Train an encoder on text files, with a vocabulary of their own or that of ``tokenizer``; None when ``minutes``
    ran out first.
    """
    settings.check()
    begun = time.perf_counter()
    folder = RunFolder(Path(output))
    encoder = _start(sources, folder, settings, resume, tokenizer)
    paired = any(issubclass(kind, SentencePairs) for kind in settings.methods())
    text: Text = (PairedText if paired else RunningText)(sources, encoder, settings)
    facts = {
        "method": "pretrain",
        "data": text.facts,
        "model": {"vocabulary": encoder.text_tokenizer.fingerprint()},
        "settings": {
            name: value
            for name, value in asdict(settings).items()
            if name not in ("minutes", "logging_steps", "save_steps")
        },
        "sources": [str(source) for source in sources],
    }
    folder.begin(facts, resume)
    if not (folder.folder / "start").is_dir():
        encoder.save(folder.folder / "start")  # the vocabulary, for a run that goes on later

    device = default_device()
    method = text.method.to(device).train()
    for sentence in method.remarks():
        warnings.warn(sentence, TrainingWarning, stacklevel=2)
    set_dropout(encoder.backbone, settings.dropout)
    loop = LoopSettings(
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_ratio=settings.warmup_steps / settings.steps,
    )
    optimiser = build_optimiser(method, loop, settings.optimiser == "muon")
    schedule = build_schedule(optimiser, loop, settings.steps)
    state = folder.load_last(method, optimiser) if resume else None
    step = int(state["step"]) if state else 0
    if state:
        schedule.load_state_dict(state["schedule"])
    folder.forget_after(step if state else -1)

    text.begin(step, device)
    pending: list[dict[str, Tensor]] = []  # on the device until the next log line
    clock = time.perf_counter()
    with closing(text), bar("pre-training", settings.steps, start=step) as advance:
        while step < settings.steps:
            torch.manual_seed(keyed_seed(settings.seed, step))
            terms = text.terms(step)
            loss = method.total(terms)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(method.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad(set_to_none=True)
            pending.append(
                {
                    "loss": loss.detach(),
                    **({name: term.detach() for name, term in terms.items()} if len(terms) > 1 else {}),
                }
            )
            step += 1
            advance(1)
            out_of_time = settings.minutes is not None and time.perf_counter() - begun > 60 * settings.minutes
            if step % settings.logging_steps == 0 or step == settings.steps or out_of_time:
                means = {name: float(torch.stack([line[name] for line in pending]).mean()) for name in pending[0]}
                value = means["loss"]
                seconds, clock = time.perf_counter() - clock, time.perf_counter()
                speed = len(pending) * settings.batch_size * settings.length / seconds
                pending.clear()
                if not np.isfinite(value):
                    raise InputError(
                        f"The loss is not a number at step {step}; the last good checkpoint is {folder.last()}."
                    )
                folder.log(
                    {
                        "step": step,
                        **means,
                        "learning_rate": schedule.get_last_lr()[0],
                        "tokens_per_second": round(speed),
                    }
                )
                advance(0, note=f"loss {value:.3f} · {speed:,.0f} tokens/s")
            if step % settings.save_steps == 0 or step == settings.steps or out_of_time:
                line: dict[str, Any] = {"step": step, **text.held_out()}
                if measure is not None:
                    line |= measure(encoder)
                folder.log(line)
                folder.save(step, method, optimiser, {"schedule": schedule.state_dict(), "best_step": 0})
                clock = time.perf_counter()
            if out_of_time and step < settings.steps:
                return None
    encoder.facts = {
        "method": "pretrain",
        **{name: facts[name] for name in ("settings", "data")},
        "selected_step": step,
    }
    encoder.eval().save(folder.model)
    return encoder


def _start(
    sources: Sequence[str | Path], folder: RunFolder, settings: PretrainSettings, resume: bool, tokenizer: Any
) -> Encoder:
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
                raise InputError(
                    f"{folder.folder}: cannot resume, {name} was {value} and is {getattr(settings, name)}."
                )
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
    if tokenizer is None and encoder.text_tokenizer.vocabulary < settings.vocabulary:
        raise InputError(
            f"The text gives a vocabulary of {encoder.text_tokenizer.vocabulary:,} pieces, and {settings.vocabulary:,} were asked for; "
            "lower --vocabulary or bring more text."
        )
    return encoder
