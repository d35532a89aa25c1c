"""What tests share: a tiny real encoder, a small real text, a cache of their own."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from small_wordnet import write_wordnet

pytest_plugins = ["image_samples", "small_models", "small_tokenizers"]

# A busy machine is no fault of the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make fuzz` draws more and other examples with every run, also where CI would draw the same ones again.
settings.register_profile("fuzz", settings.get_profile("patient"), derandomize=False)
settings.load_profile("patient")
FUZZ_FACTOR = 20  # times the examples of each test, also of one that names its number

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"
TOPICS = {
    "cooking": ("chef", "bakes", "bread", "in the warm kitchen", "salt", "soup"),
    "sailing": ("sailor", "steers", "boat", "across the windy bay", "anchor", "mast"),
    "music": ("pianist", "plays", "sonata", "in the quiet hall", "violin", "chord"),
    "garden": ("farmer", "waters", "roses", "behind the old house", "spade", "seeds"),
    "space": ("pilot", "lands", "rocket", "near the dusty crater", "orbit", "comet"),
}


def topic_sentences(count: int = 400) -> list[str]:
    """Different sentences about five topics; neighbours in the list share their topic."""
    found = []
    for number in range(count):
        who, does, what, where, first, second = TOPICS[list(TOPICS)[(number // 8) % 5]]
        found.append(
            f"the {who} {does} the {what} number {number} {where} with {first} and {second} on day {number % 31}"
        )
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """hypothesis lets a test's own number win over the profile, and has no public way to raise it."""
    if settings.get_current_profile_name() != "fuzz":
        return
    for test in {item.obj for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)}:
        own = getattr(test, "_hypothesis_internal_use_settings", settings())
        test._hypothesis_internal_use_settings = settings(own, max_examples=FUZZ_FACTOR * own.max_examples)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither use nor fill the cache of the person who runs them."""
    os.environ["ISOTROPE_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session", autouse=True)
def no_final_table() -> None:
    """Hundreds of small runs need not be compared with builtin; tests of the table switch it on."""
    os.environ["ISOTROPE_FINAL_TABLE"] = "0"


@pytest.fixture(scope="session", autouse=True)
def small_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WordNet of three dozen words, whatever the machine has."""
    folder = write_wordnet(tmp_path_factory.mktemp("wordnet"))
    os.environ["ISOTROPE_WORDNET"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny BERT with random weights and its masked-language head."""
    from isotrope.encoders.fresh import fresh_encoder

    folder = tmp_path_factory.mktemp("models") / "tiny"
    fresh_encoder(topic_sentences(), vocabulary=300, layers=2, width=32, heads=2, max_length=64).save(folder)
    return folder


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """script("docs/licences.py"): a script of the project as a module."""

    def load(path: str) -> ModuleType:
        found = importlib.util.spec_from_file_location(Path(path).stem, Path(__file__).parents[1] / path)
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def topics() -> list[str]:
    return topic_sentences(1200)


def _table(*columns: str) -> Callable[[list[str]], str]:
    """Rows of neighbours in the list of texts, a text a column; score, label and entities are made up."""
    made: dict[str, Callable[[int], str]] = {
        "score": lambda row: str(row % 6),
        "label": lambda row: ("entailment", "neutral", "contradiction")[row % 3],
        "entity": lambda row: f"entity {row % 7}",
        "hard_entities": lambda row: f"entity {(row + 1) % 7}|entity {(row + 2) % 7}",
    }

    def write(texts: list[str]) -> str:
        rows = [
            "\t".join(made[c](row) if c in made else texts[3 * row + place] for place, c in enumerate(columns))
            for row in range(240)
        ]
        return "\n".join(["\t".join(columns), *rows]) + "\n"

    return write


def _relations(texts: list[str]) -> str:
    """Twenty numbers on a ring and four steps: relations that a matrix can be."""
    rows = [f"number {a}\tplus {step}\tnumber {(a + step) % 20}" for step in (1, 2, 3, 5) for a in range(20)]
    return "\n".join(["head\trelation\ttail", *rows]) + "\n"


def _runs(texts: list[str]) -> str:
    """Documents of eight sentences, or dialogues of eight turns."""
    return "\n\n".join("\n".join(texts[start : start + 8]) for start in range(0, 480, 8)) + "\n"


def _tweets(texts: list[str]) -> str:
    """A text a line, with one or two emoji somewhere in it; one in nine has none."""
    faces = ("😂", "❤️", "🔥", "👍🏽")
    ends = [f"{faces[n % 4]} {faces[n // 4 % 4]}" if n % 9 else "" for n in range(240)]
    return "\n".join(f"{text} {end}".strip() for text, end in zip(texts, ends, strict=False)) + "\n"


SAMPLES: dict[str, tuple[str, Callable[[list[str]], str]]] = {
    "sentences": ("sentences.txt", _runs),
    "documents": ("documents.txt", _runs),
    "dialogues": ("dialogues.txt", _runs),
    "pairs": ("pairs.tsv", _table("anchor", "positive")),
    "triples": ("triples.tsv", _table("anchor", "positive", "negative")),
    "scored-pairs": ("scored_pairs.tsv", _table("sentence1", "sentence2", "score")),
    "labelled": ("labelled.tsv", _table("text", "label")),
    "labelled-pairs": ("labelled_pairs.tsv", _table("premise", "hypothesis", "label")),
    "emoji": ("tweets.txt", _tweets),
    "linked": ("linked.tsv", _table("sentence", "entity", "hard_entities")),
    "relations": ("relations.tsv", _relations),
}


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> dict[str, Path]:
    """By kind of record, a small file of that kind."""
    return _written(tmp_path_factory.mktemp("samples"), topics)


@pytest.fixture(scope="session")
def uneven_samples(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> dict[str, Path]:
    """The same files with texts of seven to sixteen words, so that rows are padded."""
    cut = [" ".join(text.split()[: 7 + 3 * number % 10]) for number, text in enumerate(topics)]
    return _written(tmp_path_factory.mktemp("uneven"), cut)


def _written(folder: Path, texts: list[str]) -> dict[str, Path]:
    for name, write in SAMPLES.values():
        (folder / name).write_text(write(texts), encoding="utf-8")
    return {kind: folder / name for kind, (name, _) in SAMPLES.items()}


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    """A .txt file of 400 sentences in documents of eight."""
    lines = topic_sentences()
    path = tmp_path / "sentences.txt"
    path.write_text("\n\n".join("\n".join(lines[i : i + 8]) for i in range(0, len(lines), 8)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def triples(tmp_path: Path) -> Path:
    lines = topic_sentences()
    path = tmp_path / "triples.tsv"
    rows = [f"{lines[i]}\t{lines[i + 1]} again\t{lines[(i + 40) % 400]} never" for i in range(0, 398, 2)]
    path.write_text("sent0\tsent1\thard_neg\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the benchmark data (../shared/data) is not on this machine")
    return SHARED_DATA
