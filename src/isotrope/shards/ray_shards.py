"""The same shards through Ray Data: the numbers of the shards are the data set, encoders are its actors.

Ray places the actors on the machines of its cluster and hands out numbers; each actor reads its own block of the text
and writes its own shard, so no text and no vector passes through Ray. The folder and the text must be seen under the
same path by every machine. What an earlier call left, with Ray or without, is kept.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.progress import bar
from isotrope.shards.shard_store import ShardedVectors, ShardStore
from isotrope.shards.shard_work import ShardWorker, finish, plan_of
from isotrope.shards.text_blocks import TextBlocks
from isotrope.shards.vector_form import VectorForm

Numbers = dict[str, Any]


class ShardActor:
    """An encoder in a process of Ray's: makes the shards whose numbers it is given."""

    def __init__(
        self, model: str, truncate_dim: int | None, blocks: TextBlocks, folder: Path, form: VectorForm
    ) -> None:
        encoder = load(model, truncate_dim=truncate_dim)
        blocks = TextBlocks(blocks.path, blocks.columns, blocks.size)
        self.worker = ShardWorker(encoder, blocks, ShardStore(folder, plan_of(encoder, blocks, form)), form)

    def __call__(self, batch: Numbers) -> Numbers:
        for number in batch["id"]:
            self.worker.make(int(number))
        return batch


def encode_on_ray(
    model: str, truncate_dim: int | None, blocks: TextBlocks, folder: Path, form: VectorForm, output: Path | None
) -> tuple[ShardedVectors, int]:
    """Make every shard that is missing on the cluster that Ray knows, or on this machine; then check and join here."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise InputError("Ray is not installed: pip install 'isotrope[ray]'.", setting="ray") from error
    encoder = load(model, truncate_dim=truncate_dim)
    store = ShardStore(folder.resolve(), plan_of(encoder, blocks, form))
    store.begin()
    blocks = TextBlocks(blocks.path.resolve(), blocks.columns, blocks.size)
    shards = blocks.counted()
    missing = [number for number in range(shards) if store.facts(number) is None]
    if missing:
        _spread(ray, missing, (str(model), truncate_dim, blocks, store.folder, form))
    worker = ShardWorker(encoder, blocks, store, form)
    return finish(worker, shards, output), len(missing)


def _spread(ray: Any, missing: list[int], arguments: tuple[Any, ...]) -> None:
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what matters is raised here
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if not ray.is_initialized():
        quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": logging.ERROR}
        try:
            ray.init(runtime_env={"env_vars": _environment()}, **quiet)
        except Exception as error:  # Ray has no class of its own for it
            raise InputError(f"Ray did not start ({error}); try again on a quieter machine.", setting="ray") from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    gpus = 1 if ray.cluster_resources().get("GPU") else 0
    most = int(ray.cluster_resources().get("GPU" if gpus else "CPU", 1))
    data = ray.data.from_items([{"id": number} for number in missing], override_num_blocks=len(missing))
    made = data.map_batches(
        ShardActor,
        fn_constructor_args=arguments,
        batch_size=1,
        num_gpus=gpus,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=max(min(most, len(missing)), 1)),
    )
    with bar("encoding shards", len(missing)) as advance:
        for batch in made.iter_batches(batch_size=None):
            advance(len(batch["id"]))


def _environment() -> dict[str, str]:
    """One thread an actor on a CPU: Ray counts cores."""
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
