"""A half-built index whose words were written by another rule is not gone on with."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from isotrope.errors import InputError
from isotrope.search import milvus_building
from isotrope.search.milvus_client import BEGUN
from isotrope.search.word_stems import ENGLISH, NONE


def half_built(begun: dict[str, Any], stemmer: str) -> Any:
    """A build that comes upon what another call began; no server is asked before the words are compared."""
    build = object.__new__(milvus_building._Build)
    build.place, build.client, build.old, build.generation = "milvus.db", None, None, 0
    build.properties = {BEGUN: json.dumps({"request": "same", "first": 0, **begun})}
    build.wanted = SimpleNamespace(name=lambda generation: "same", action="new")
    build.stemmer = stemmer
    return build


def test_plain_words_of_an_earlier_version_are_not_mixed_with_stems() -> None:
    with pytest.raises(InputError, match=r"milvus\.db: a half-written index is here.*stemmer none, now english"):
        half_built({}, ENGLISH).run()


@pytest.mark.parametrize(("begun", "stemmer"), [({}, NONE), ({"stemmer": ENGLISH}, ENGLISH)])
def test_the_same_words_go_on(begun: dict[str, Any], stemmer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class GoesOn(Exception):
        pass

    def asked(*_: Any) -> Any:
        raise GoesOn

    monkeypatch.setattr(milvus_building, "field_names", asked)
    with pytest.raises(GoesOn):
        half_built(begun, stemmer).run()
