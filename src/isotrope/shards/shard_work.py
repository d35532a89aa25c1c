"""Encode a text into shards, together with whoever else works in the same folder.

    claim a shard that is not there → read its block → encode → write → free;  at the end one process checks and joins

Start the same command as often as there are cores, devices and machines. A process that is killed loses the shard that
it was at; what it had finished stays. A shard whose checksum does not fit is made again.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.encoders.cut_texts import counting_cut
from isotrope.errors import InputError
from isotrope.files import file_digest, write_json, written_file
from isotrope.progress import bar, say
from isotrope.shards.claims import Claims
from isotrope.shards.shard_store import DONE, ShardedVectors, ShardPlan, ShardStore, read_json
from isotrope.shards.text_blocks import TextBlocks
from isotrope.shards.vector_form import VectorForm
from isotrope.shards.vector_stream import VectorStream
from isotrope.version import __version__

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

POLL = 0.5  # seconds between two looks at what others do
END = "end"  # the claim on checking and joining


@dataclass
class ShardWorker:
    """One process at work: an encoder, the blocks of a text, and the store that the vectors go to."""

    encoder: Encoder
    blocks: TextBlocks
    store: ShardStore
    form: VectorForm
    made: int = 0

    def make(self, number: int) -> bool:
        """Write one shard; False where the text has no such block."""
        texts = self.blocks.block(number)
        if texts is None:
            return False
        full = [text for text in texts if text]
        with counting_cut() as counted:
            vectors = self.form.encode(self.encoder, full) if full else np.empty((0, 0), dtype=np.float32)
        self.store.write(number, vectors, len(texts) - len(full), counted.cut)
        self.made += 1
        return True

    def work(self, claims: Claims) -> int:
        """Make what nobody else makes until every shard is there; how many there are."""
        with bar("encoding shards", self.blocks.count) as advance:
            seen: set[int] = set()
            while True:
                waiting = False
                number = 0
                while self.blocks.count is None or number < self.blocks.count:
                    if self.store.facts(number) is not None or self._claimed(number, claims):
                        if number not in seen:
                            seen.add(number)
                            advance()
                    else:
                        waiting = True
                    number += 1
                if not waiting:
                    return self.blocks.count
                time.sleep(POLL)

    def _claimed(self, number: int, claims: Claims) -> bool:
        """Whether the shard is there now, or the text has none of this number."""
        name = f"{number:08d}"
        if not claims.take(name):
            return False
        try:
            return self.store.facts(number) is not None or self.make(number) or True
        finally:
            claims.free(name)


def plan_of(encoder: Encoder, blocks: TextBlocks, form: VectorForm) -> ShardPlan:
    """What processes that share the work must agree on; the whole text is read for its digest."""
    versions = {"isotrope": __version__, "torch": version("torch")}
    columns = ",".join(blocks.columns or ())
    return ShardPlan(
        file_digest(blocks.path),
        encoder.fingerprint(),
        blocks.size,
        columns,
        encoder.dimension,
        form.facts(),
        encoder.max_length,
        versions,
    )


def encode_shards(
    encoder: Encoder, blocks: TextBlocks, folder: Path, form: VectorForm, output: Path | None = None
) -> tuple[ShardedVectors, int]:
    """Work until the folder is whole; the vectors, and how many shards this process made.

    With ``output`` they are also joined into one .npy file.
    """
    store = ShardStore(folder, plan_of(encoder, blocks, form))
    store.begin()
    try:
        return _worked(ShardWorker(encoder, blocks, store, form), folder, output)
    except InputError:
        store.abandon()
        raise


def _worked(worker: ShardWorker, folder: Path, output: Path | None) -> tuple[ShardedVectors, int]:
    before, earlier = read_json(folder / DONE), _stamp(output)
    with Claims(folder) as claims:
        shards = worker.work(claims)
        while True:
            if claims.take(END):
                try:
                    return finish(worker, shards, output), worker.made
                finally:
                    claims.free(END)
            now = read_json(folder / DONE)
            if now is not None and now != before and (output is None or _stamp(output) not in (None, earlier)):
                return _read_done(worker.store, now), worker.made
            time.sleep(POLL)


def finish(worker: ShardWorker, shards: int, output: Path | None) -> ShardedVectors:
    """Look at every checksum, make what is damaged again, join, and say that the folder is whole."""
    store = worker.store
    with bar("checking shards", shards) as advance:
        for number in range(shards):
            if store.damaged(number):
                say(f"{store.vectors_file(number)}: not as it was written; it is made again")
                worker.make(number)
            advance()
    kept = [facts for number in range(shards) if (facts := store.facts(number)) is not None]
    rows, empty, cut = (sum(getattr(facts, name) for facts in kept) for name in ("rows", "empty", "cut"))
    found = ShardedVectors(store, shards, rows, empty, cut)
    if output is not None:
        with written_file(output) as temporary, open(temporary, "wb") as file:
            stream = VectorStream(file)
            for vectors in found.blocks():
                stream.add(vectors)
            stream.close()
    sweep_claims(store.folder)
    facts_now = {"plan": store.name, "shards": shards, "rows": rows, "empty": empty, "cut": cut}
    write_json(store.folder / DONE, {**facts_now, "written": uuid.uuid4().hex})
    return found


def sweep_claims(folder: Path) -> None:
    """Remove the claims on shards, all of which are there: their owners died before they could."""
    for claim in folder.glob("*.claim*"):
        if not claim.name.startswith(f"{END}."):
            claim.unlink(missing_ok=True)


def _stamp(file: Path | None) -> tuple[int, int] | None:
    """Another one for a file that was written since."""
    try:
        facts = None if file is None else file.stat()
    except OSError:
        return None
    return None if facts is None else (facts.st_ino, facts.st_mtime_ns)


def _read_done(store: ShardStore, done: dict[str, Any]) -> ShardedVectors:
    return ShardedVectors(store, done["shards"], done["rows"], done["empty"], done["cut"])
