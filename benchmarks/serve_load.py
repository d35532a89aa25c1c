"""``isotrope serve`` against the plainest other way, FastAPI around sentence-transformers, under 1, 8 and 64 clients.

    python benchmarks/serve_load.py [--requests 10000] [--quick] [--memory] [--json]

Both servers run at once, each in a process of its own, and are asked in turns, so that a busy machine slows both alike.
Both hold the same folder and answer /embed with the vector of one short text. Memory is the resident set before the
first and after the last request; ``--memory`` asks this server alone, by 64 clients, and prints it after each tenth of
the requests. FastAPI must be installed (it is no dependency of isotrope). Read the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from http_clients import Program, Timed, bodies_of, free_port, load, program
from workbench import real_sentences

CLIENTS = {1: 0.1, 8: 0.3, 64: 0.6}  # and the share of all requests that they send
OTHER = """
import sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

app, model = FastAPI(), SentenceTransformer(sys.argv[1], device="cpu")


class Texts(BaseModel):
    inputs: str


@app.post("/embed")
def embed(body: Texts):
    return model.encode([body.inputs], normalize_embeddings=True, show_progress_bar=False).tolist()


@app.get("/health")
def health():
    return {}


uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--requests", type=int, default=10_000, help="sent to each server, over all numbers of clients"
    )
    options.add_argument("--quick", action="store_true", help="600 requests")
    options.add_argument("--model", default="builtin", help="what both serve")
    options.add_argument("--threads", type=int, default=1, help="of torch, in each server")
    options.add_argument("--memory", action="store_true", help="this server alone: its memory as requests come")
    options.add_argument("--json", action="store_true", help="for machines")
    chosen = options.parse_args()
    requests = 600 if chosen.quick else chosen.requests
    texts = [text for text in real_sentences(2000) if len(text) < 120]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        from isotrope.encoders.loading import load as load_encoder

        load_encoder(chosen.model, device="cpu").save(folder)
        script = Path(temporary) / "other.py"
        script.write_text(OTHER, encoding="utf-8")
        ports = [free_port(), free_port()]
        ours = ["-m", "isotrope", "serve", str(folder), "--port", str(ports[0])]
        if chosen.memory:
            with program(ours, ports[0], chosen.threads) as alone:
                asyncio.run(watch(alone, texts, requests))
            return
        theirs = [str(script), str(folder), str(ports[1])]
        with program(ours, ports[0], chosen.threads) as first, program(theirs, ports[1], chosen.threads) as second:
            rows = asyncio.run(measure({"isotrope": first, "fastapi": second}, texts, requests))
    if chosen.json:
        print(json.dumps(rows))
        return
    print(
        f"{'clients':>8} {'server':<10} {'requests/s':>11} {'p50 ms':>8} {'p99 ms':>8} {'MB first':>9} {'last':>7}  bad"
    )
    for row in rows:
        print(
            f"{row['clients']:>8} {row['server']:<10} {row['rate']:>11.1f} {row['p50']:>8.1f} {row['p99']:>8.1f}"
            f" {row['before']:>9.0f} {row['after']:>7.0f}  {row['bad']}"
        )
    for clients in CLIENTS:
        first, second = (row for row in rows if row["clients"] == clients)
        print(f"{clients} clients: isotrope answers {first['rate'] / second['rate']:.2f} × as many requests a second")


async def watch(server: Program, texts: list[str], requests: int) -> None:
    """The resident set after each tenth of the requests."""
    await load(server.port, "/embed", bodies_of(texts, 50), 8)
    print(f"{0:>8,} requests {server.megabytes:>8.1f} MB", flush=True)
    for tenth in range(1, 11):
        timed = await load(server.port, "/embed", bodies_of(texts, requests // 10), 64)
        bad = len(timed.seconds) - timed.statuses.get(200, 0)
        done, rate = tenth * (requests // 10), len(timed.seconds) / timed.wall
        print(f"{done:>8,} requests {server.megabytes:>8.1f} MB {rate:>8.1f} a second, {bad} bad", flush=True)


async def measure(servers: dict[str, Program], texts: list[str], requests: int) -> list[dict[str, float | str]]:
    for server in servers.values():
        await load(server.port, "/embed", bodies_of(texts, 50), 8)  # what a first call allocates for ever
    before = {name: server.megabytes for name, server in servers.items()}
    rows: list[dict[str, float | str]] = []
    for clients, share in CLIENTS.items():
        found = {name: Timed() for name in servers}
        for _ in range(4):  # in turns
            for name, server in servers.items():
                timed = await load(
                    server.port, "/embed", bodies_of(texts, max(int(requests * share / 4), clients)), clients
                )
                found[name].seconds += timed.seconds
                found[name].wall += timed.wall
                for status, count in timed.statuses.items():
                    found[name].statuses[status] = found[name].statuses.get(status, 0) + count
        for name, timed in found.items():
            rows.append(
                {
                    "clients": clients,
                    "server": name,
                    "rate": len(timed.seconds) / timed.wall,
                    "p50": 1000 * timed.quantile(0.5),
                    "p99": 1000 * timed.quantile(0.99),
                    "before": before[name],
                    "after": servers[name].megabytes,
                    "bad": len(timed.seconds) - timed.statuses.get(200, 0),
                }
            )
    return rows


if __name__ == "__main__":
    main()
