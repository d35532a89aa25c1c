"""The sample in every space: where each sentence lies on a map, and who is near whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from isotrope.report import sentence_map as maps
from isotrope.report.findings import MapLayout, Neighbour, Neighbourhood

NEIGHBOURS = 5
QUERIES = 3
Spaces = Mapping[str, maps.Floats]  # unit vectors of each subject, a row a sentence


def lay_out_spaces(spaces: Spaces, sample: list[str], leader: str, seed: int) -> MapLayout:
    """A map a subject, each turned to lie as the first.

    Groups are those of one subject, the leader, so that colours mean the same everywhere.
    """
    groups = maps.group(spaces[leader], seed)
    first: maps.Floats | None = None
    places, near = {}, {}
    for name, vectors in spaces.items():
        laid = maps.lay_out(vectors, seed, first)
        first = laid if first is None else first
        places[name] = laid.round(4).tolist()
        near[name] = maps.neighbours(vectors, NEIGHBOURS)[1].tolist()
    return MapLayout(sample, groups.tolist(), maps.name_groups(sample, groups), leader, places, near)


def around_queries(spaces: Spaces, asked: Spaces, sample: Sequence[str], queries: Sequence[str]) -> list[Neighbourhood]:
    """The nearest sentences of the sample to each query; ``asked`` are the queries' vectors."""
    return [
        Neighbourhood(
            query,
            {name: _nearest(vectors @ asked[name][number], sample, query) for name, vectors in spaces.items()},
        )
        for number, query in enumerate(queries)
    ]


def around_typical(spaces: Spaces, sample: Sequence[str], leader: str, seed: int) -> list[Neighbourhood]:
    """The nearest sentences to a typical one of each large group."""
    rows = maps.typical(spaces[leader], maps.group(spaces[leader], seed), QUERIES)
    return [
        Neighbourhood(
            sample[row],
            {name: _nearest(vectors @ vectors[row], sample, sample[row]) for name, vectors in spaces.items()},
        )
        for row in rows
    ]


def _nearest(cosines: maps.Floats, sample: Sequence[str], query: str) -> list[Neighbour]:
    """Best first, without the query itself."""
    order = [int(place) for place in np.argsort(-cosines, kind="stable") if sample[place] != query]
    return [Neighbour(sample[place], round(float(cosines[place]), 4)) for place in order[:NEIGHBOURS]]
