"""SimCSE on an encoder whose weights, gradients and optimiser state are spread over the processes (FSDP, accelerate).

    torchrun --nproc-per-node 2 recipes/fsdp/train.py sentences.txt runs/fsdp --model builtin-base --steps 100

For a backbone that one device cannot hold; `isotrope train` keeps a whole copy in every process, which is faster where
that fits. The rest is as there: representations of all processes are gathered with gradient, so the candidates are
those of the whole batch. On a machine without a GPU it runs over gloo, for a try.
"""

from __future__ import annotations

import argparse
from itertools import cycle, islice
from pathlib import Path

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

import isotrope
from isotrope.data.sentence_files import sentences_of
from isotrope.objectives import info_nce
from isotrope.training.gathering import gather_representations


def make_accelerator(encoder: isotrope.Encoder) -> Accelerator:
    """Each layer of the backbone is a unit of its own: one at a time is whole in memory."""
    layers = {type(module).__name__ for name, module in encoder.named_modules() if name.split(".")[-1].isdigit()}
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=sorted(layers),
        state_dict_type="FULL_STATE_DICT",
    )
    return Accelerator(cpu=not torch.cuda.is_available(), fsdp_plugin=plugin)


def batches(texts: list[str], size: int, seed: int) -> list[list[str]]:
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(seed)).tolist()
    return [[texts[place] for place in order[start : start + size]] for start in range(0, len(texts) - size + 1, size)]


def train(texts: list[str], output: Path, model: str, steps: int, size: int, rate: float, seed: int) -> list[float]:
    encoder = isotrope.load(model, device="cpu").train()
    accelerator = make_accelerator(encoder)
    rank, share = accelerator.process_index, size // accelerator.num_processes
    sharded, optimiser = accelerator.prepare(encoder, torch.optim.AdamW(encoder.parameters(), lr=rate))
    torch.manual_seed(seed + rank)  # dropout masks of its own
    losses = []
    for batch in islice(cycle(batches(texts, size, seed)), steps):
        tokens = encoder.tokenize(batch[rank * share : (rank + 1) * share], 64).to(accelerator.device)
        views = {"first": sharded(tokens), "second": sharded(tokens)}
        gathered = gather_representations(views)
        loss = info_nce(gathered["first"], gathered["second"])
        accelerator.backward(loss)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(float(loss.detach()))
    weights = get_model_state_dict(sharded, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if accelerator.is_main_process:
        whole = isotrope.load(model, device="cpu")
        whole.load_state_dict(weights)
        whole.save(output)
        print(f"loss {losses[0]:.4f} at the start, {losses[-1]:.4f} after {steps} steps; the model is in {output}")
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", help="a file of sentences")
    parser.add_argument("output", type=Path, help="a new folder for the model")
    parser.add_argument("--model", default="builtin-base")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64, help="over all processes")
    parser.add_argument("--learning-rate", type=float, default=3e-5)
    parser.add_argument("--seed", type=int, default=42)
    given = parser.parse_args()
    texts = sentences_of(given.text)
    train(texts, given.output, given.model, given.steps, given.batch_size, given.learning_rate, given.seed)


if __name__ == "__main__":
    main()
