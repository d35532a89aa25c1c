"""What tests of the data room share: a cache of their own, and corpora by a tokenizer of one id a word."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hash_tokenizer import HashTokenizer

from isotrope.data.corpus import Corpus, open_corpus
from isotrope.errors import InputError

Open = Callable[..., Corpus]
Complain = Callable[..., str]


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where finished corpora lie."""
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "corpora"


@pytest.fixture
def opened(corpora: Path) -> Open:
    return lambda source, *record_types, **options: open_corpus(source, record_types, HashTokenizer(), **options)


@pytest.fixture
def complaint(opened: Open, corpora: Path) -> Complain:
    """The one sentence that bad input gives; it leaves nothing behind."""

    def complain(source: Any, *record_types: str, **options: Any) -> str:
        with pytest.raises(InputError) as caught:
            opened(source, *record_types, **options)
        message = str(caught.value)
        assert message.startswith(str(source) if isinstance(source, Path) else "the given list")
        assert message[-1] in ".?"
        assert not re.search(r"\n|[.?!] [A-Z]", message), f"more than one sentence: {message}"
        assert not corpora.exists() or not list(corpora.iterdir())
        return message

    return complain


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write
