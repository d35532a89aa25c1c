"""The card of a saved model: README.md with the header that hubs read, written at every save.

What stands in it is what the model's facts hold: the method, the scores and the command where they are known, the
modules, the prompts, the classes. A card that a person wrote, or that has lost its ``SIGN``, is kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.encoders.encoder_uses import DOCUMENT_NAMES
from isotrope.encoders.parts.part import OWN, Part
from isotrope.leftovers import MARK as TEMPORARY
from isotrope.version import __version__

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

CARD = "README.md"
SIGN = "<!-- isotrope writes this card at each save; take this line out to keep your own text -->"
EVALUATION, COMMAND, LICENSE = "evaluation", "command", "license"  # facts
SHOWN = 20  # classes that are named


def write_card(encoder: Encoder, parts: Sequence[Part], folder: Path, target: Path) -> None:
    """README.md in ``folder``, which becomes ``target``: that of ``target`` where it is somebody's own."""
    before = target / CARD
    own = before.read_text(encoding="utf-8", errors="replace") if before.is_file() else SIGN
    # A run saves inside a folder that is renamed later.
    name, above = (one.name.split(TEMPORARY)[0].lstrip(".") for one in (target, target.absolute().parent))
    name = above if name in ("model", "") else name
    text = own if SIGN not in own else card_text(encoder, parts, name)
    (folder / CARD).write_text(text, encoding="utf-8")


def card_text(encoder: Encoder, parts: Sequence[Part], name: str) -> str:
    """The whole card."""
    import yaml

    header = yaml.safe_dump(card_header(encoder.facts, name, encoder.classifier is not None), sort_keys=False)
    paragraphs = [
        f"---\n{header}---",
        SIGN,
        f"# {_plain(name)}",
        _summary(encoder),
        _facts_table(encoder, parts),
        *_scores(encoder.facts),
        *_classes(encoder),
        *_origin(encoder.facts),
        _loading(any(part.package == OWN for part in parts), encoder),
        _licence(encoder.facts),
    ]
    return "\n\n".join(paragraphs) + "\n"


def card_header(facts: Mapping[str, Any], name: str, classifies: bool = False) -> dict[str, Any]:
    """The fields that hubs index."""
    tags = ["sentence-transformers", "sentence-similarity", "feature-extraction", "isotrope"]
    method = facts.get("method")
    tags += [_plain(method)] * (method is not None) + ["text-classification"] * classifies
    header: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": tags,
    }
    if facts.get(LICENSE):
        header[LICENSE] = _plain(facts[LICENSE])
    scores = _numbers(facts)
    if scores:
        result = {
            "task": {"type": "sentence-similarity", "name": "Held-out text"},
            "dataset": {"type": "held-out", "name": "Held-out part of the training text, or eval_data"},
            "metrics": [{"type": _plain(name), "value": round(value, 6)} for name, value in scores.items()],
        }
        header["model-index"] = [{"name": _plain(name), "results": [result]}]
    return header


def _summary(encoder: Encoder) -> str:
    facts = encoder.facts
    made = (
        f"trained with the method `{_plain(facts['method'])}` of isotrope" if "method" in facts else "saved by isotrope"
    )
    return (
        f"A sentence encoder, {made} {__version__}: it maps a text to a vector of {encoder.dimension} dimensions, and "
        "the cosine of two vectors says how similar two texts are. Texts are cut after "
        f"{encoder.max_length} tokens."
    )


def _facts_table(encoder: Encoder, parts: Sequence[Part]) -> str:
    chain = " → ".join(part.type_name or type(part).__name__ for part in parts)
    rows = {
        "dimensions": str(encoder.dimension),
        "longest text": f"{encoder.max_length} tokens",
        "pooling": f"`{encoder.pooling.name}`",
        "modules": chain,
        "similarity": "cosine",
    }
    prompts = {**({"default": encoder.prompt} if encoder.prompt else {}), **encoder.prompts}
    if prompts:
        rows["prompts"] = ", ".join(f"{_plain(name)}: `{_plain(text)}`" for name, text in prompts.items())
    data = encoder.facts.get("data")
    if isinstance(data, dict) and isinstance(data.get("records"), int):
        rows["training records"] = f"{data['records']:,}"
    return "\n".join(["| | |", "|---|---|", *(f"| {label} | {value} |" for label, value in rows.items())])


def _numbers(facts: Mapping[str, Any]) -> dict[str, float]:
    found = facts.get(EVALUATION)
    scores = found.items() if isinstance(found, dict) else ()
    return {str(name): float(value) for name, value in scores if isinstance(value, int | float)}


def _scores(facts: Mapping[str, Any]) -> list[str]:
    scores = _numbers(facts)
    if not scores:
        return []
    rows = [f"| {_plain(name)} | {value:.4f} |" for name, value in scores.items()]
    said = "Measured by the training run at the step that was kept, on text or pairs that it did not train on."
    return ["## Scores", said, "\n".join(["| measure | value |", "|---|---|", *rows])]


def _classes(encoder: Encoder) -> list[str]:
    classifier = encoder.classifier
    if classifier is None:
        return []
    if classifier.task == "score":
        return ["## Predictions", "The model keeps a head that predicts a score: `isotrope predict MODEL FILE`."]
    names = ", ".join(f"`{_plain(name)}`" for name in classifier.names[:SHOWN])
    more = f" and {len(classifier.names) - SHOWN} more" if len(classifier.names) > SHOWN else ""
    several = "; a text may have several" if classifier.task == "labels" else ""
    calibrated = classifier.facts.get("calibration", "not calibrated")
    said = (
        f"The model keeps a classifier, in `classifier/`: {names}{more}{several}. Probabilities: {_plain(calibrated)}."
    )
    rows = classifier.facts.get("measures")
    table = [f"| {_plain(name)} | {value:.4f} |" for name, value in rows.items()] if isinstance(rows, dict) else []
    scores = ["\n".join(["| measure | value |", "|---|---|", *table])] if table else []
    return [
        "## Predictions",
        said,
        *scores,
        '```python\nimport isotrope\n\nisotrope.load("MODEL").predict("A text.")\n```',
    ]


def _origin(facts: Mapping[str, Any]) -> list[str]:
    command = facts.get(COMMAND)
    return ["## Made by", f"```bash\n{_plain(command)}\n```"] if command else []


def _loading(own: bool, encoder: Encoder) -> str:
    """The same vectors in six programs."""
    trust = ", trust_remote_code=True" if own else ""
    kwargs = ', model_kwargs={"trust_remote_code": True}' if own else ""
    note = (
        "\n\nOne module is isotrope's own: other programs need isotrope installed, and leave to load it as below."
        if own
        else ""
    )
    query = any(name in encoder.prompts for name in ("query", *DOCUMENT_NAMES))
    asked = "\nmodel.encode_query('A question?'), model.encode_document(['An answer.'])" if query else ""
    return f"""## Load it

Write this folder's path, or its name on a hub, for MODEL.{note}

```python
import isotrope

model = isotrope.load("MODEL")
vectors = model.encode(["A text.", "Another one."]){asked}
```

```python
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("MODEL"{trust}).encode(["A text.", "Another one."])
```

```python
from langchain_huggingface import HuggingFaceEmbeddings

vectors = HuggingFaceEmbeddings(model_name="MODEL"{kwargs}).embed_documents(["A text.", "Another one."])
```

```python
from txtai import Embeddings

index = Embeddings(path="MODEL", method="sentence-transformers"{', vectors={"trust_remote_code": True}' if own else ""})
index.index(["A text.", "Another one."])
```

```python
from bertopic import BERTopic
from sentence_transformers import SentenceTransformer

topics = BERTopic(embedding_model=SentenceTransformer("MODEL"{trust}))
```

```python
import mteb
from sentence_transformers import SentenceTransformer

mteb.evaluate(SentenceTransformer("MODEL"{trust}), mteb.get_tasks(["STSBenchmark"]))
```"""


def _licence(facts: Mapping[str, Any]) -> str:
    named = facts.get(LICENSE)
    said = (
        f"{_plain(named)}."
        if named
        else "None is named yet. The weights come from the training text and from the model that training began with: "
        "look at the terms of both, then name one (`isotrope push FOLDER REPO --license apache-2.0`)."
    )
    return f"## Licence\n\n{said}"


def _plain(value: object) -> str:
    """One line that no Markdown or table reads as its own."""
    return " ".join(str(value).replace("`", "'").replace("|", "/").replace("<", "‹").replace(">", "›").split())
