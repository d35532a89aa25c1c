"""A page about image encoders: a map of thumbnails for each, their numbers, and the neighbours of some images.

The page is one file without a script: thumbnails stand in it once, as data, and every place refers to them. Maps are
turned to lie as the first one does; a frame has the colour of the image's class, where there are classes.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.data.image_corpus import IMAGES, ImageCorpus, open_images
from isotrope.data.pictures import pillow
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.errors import InputError
from isotrope.evaluation.image_judge import knn_accuracy, view_measures
from isotrope.evaluation.judged_models import find_models
from isotrope.files import written_file
from isotrope.report.page import POLICY
from isotrope.report.sentence_map import lay_out, neighbours
from isotrope.report.subjects import Place
from isotrope.version import __version__

MOST, THUMBNAIL, MAP = 400, 32, 560  # images on a map; sides of a thumbnail and of a map
QUERIES, NEAREST = 6, 6
COLOURS = "#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #8A4B00 #555555 #B0B000 #7A5195".split()


@dataclass(frozen=True)
class ImageReport:
    """``rows``: the numbers of each model; ``output``: the page, where it was written."""

    rows: list[dict[str, Any]]
    page: str
    output: Path | None = None

    def html(self) -> str:
        return self.page


def make_image_report(
    *subjects: Place | Encoder, output: Place | None, images: Place, count: int = MOST, seed: int = 42
) -> ImageReport:
    """Models and runs next to each other on up to 400 images of a source."""
    if output is not None and Path(output).suffix.lower() != ".html":
        raise InputError(f"{output}: a report on images is a page; give a name that ends with .html.", setting="output")
    models = {one.name: one.opened(0) for one in find_models(list(subjects))}
    for name, encoder in models.items():
        if not isinstance(encoder, ImageEncoder):
            raise InputError(f"{images} holds images, and {name} reads text; give models for images.")
    sides = {encoder.size for encoder in models.values() if isinstance(encoder, ImageEncoder)}
    corpora = {side: open_images(images, IMAGES.name, side) for side in sides}
    first = next(iter(corpora.values()))
    if len(first) < 10:
        raise InputError(f"{images}: a map needs at least 10 images; {len(first)} were found.")
    rows = np.sort(np.random.default_rng(seed).permutation(len(first))[: min(count, MOST)])
    spaces, numbers = {}, []
    for name, encoder in models.items():
        assert isinstance(encoder, ImageEncoder)
        corpus = corpora[encoder.size]
        spaces[name] = encoder.encode_rows(corpus, rows, normalize_embeddings=True).astype(np.float64)
        numbers.append({"name": name, **_numbers(encoder, corpus, rows)})
    page = _page(str(images), first, rows, spaces, numbers, seed)
    if output is None:
        return ImageReport(numbers, page)
    with written_file(output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return ImageReport(numbers, page, Path(output))


def _numbers(encoder: ImageEncoder, corpus: ImageCorpus, rows: npt.NDArray[np.int64]) -> dict[str, float]:
    found = {name: round(value, 4) for name, value in view_measures(encoder, corpus, rows).items()}
    others = np.setdiff1d(np.arange(len(corpus)), rows)
    if corpus.record_type.value is None or len(others) < len(rows):
        return found
    return {"knn": round(knn_accuracy(encoder, corpus, others, corpus, rows), 2), **found}


def _page(
    where: str,
    corpus: ImageCorpus,
    rows: npt.NDArray[np.int64],
    spaces: dict[str, npt.NDArray[np.float64]],
    numbers: list[dict[str, Any]],
    seed: int,
) -> str:
    labels = corpus.numbers("label")[rows] if corpus.record_type.value is not None else np.zeros(len(rows), dtype=int)
    names = corpus.image_names
    titles = [
        escape(names[row] + (f" ({corpus.classes[label]})" if corpus.record_type.value else ""))
        for row, label in zip(rows, labels, strict=True)
    ]
    symbols = "".join(
        f'<symbol id="i{place}" viewBox="0 0 1 1"><image width="1" height="1" href="{_data(pixels)}"/></symbol>'
        for place, pixels in enumerate(corpus.pixels(rows))
    )
    first: npt.NDArray[np.float64] | None = None
    maps = []
    for name, vectors in spaces.items():
        laid = lay_out(vectors, seed, first)
        first = laid if first is None else first
        maps.append(f"<h3>{escape(name)}</h3>{_map(laid, labels, titles)}")
    keys = ""
    if corpus.record_type.value is not None:
        keys = " ".join(
            f'<span style="color:{COLOURS[number % len(COLOURS)]}">■</span> {escape(name)}'
            for number, name in enumerate(corpus.classes)
        )
    style = files("isotrope.report").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="generator" content="isotrope {__version__}">
<title>{escape(where)} · Isotrope</title><style>
{style}</style></head>
<body><header><p class="eyebrow">Image encoders</p><h1>{escape(where)}</h1>
<p class="lead">{len(rows):,} of {len(corpus):,} images.</p></header><main>
<svg width="0" height="0" aria-hidden="true">{symbols}</svg>
<section><h2>Numbers</h2>{_table(numbers)}
<p class="caption">knn: the other images classify these, in %. views: the other view of an image is its nearest, in %.
alignment and uniformity are those of two views.</p></section>
<section><h2>Maps</h2><p class="caption">t-SNE; {keys}</p>{"".join(maps)}</section>
<section><h2>Nearest neighbours</h2>{_neighbours(spaces, titles)}</section>
</main><footer>Written by isotrope {__version__}. It fetches nothing and sends nothing.</footer></body></html>
"""


def _map(places: npt.NDArray[np.float64], labels: npt.NDArray[Any], titles: list[str]) -> str:
    side = 26
    drawn = []
    for number, (x, y) in enumerate((places + 1) / 2 * (MAP - side)):
        colour = COLOURS[int(labels[number]) % len(COLOURS)]
        drawn.append(
            f'<g transform="translate({x:.1f} {y:.1f})"><title>{titles[number]}</title>'
            f'<use href="#i{number}" width="{side - 4}" height="{side - 4}" x="2" y="2"/>'
            f'<rect width="{side - 2}" height="{side - 2}" x="1" y="1" fill="none" stroke="{colour}" '
            'stroke-width="2"/></g>'
        )
    return f'<svg viewBox="0 0 {MAP} {MAP}" width="{MAP}" height="{MAP}" role="img">{"".join(drawn)}</svg>'


def _neighbours(spaces: dict[str, npt.NDArray[np.float64]], titles: list[str]) -> str:
    asked = np.linspace(0, len(titles) - 1, min(QUERIES, len(titles))).astype(int)
    count = min(NEAREST, len(titles) - 1)
    near = {name: neighbours(vectors, count)[1] for name, vectors in spaces.items()}
    lines = []
    for row in asked:
        cells = "".join(
            f"<td>{''.join(_thumbnail(int(other), titles) for other in found[row])}</td>" for found in near.values()
        )
        lines.append(f"<tr><td>{_thumbnail(int(row), titles)}</td>{cells}</tr>")
    heads = "".join(f"<th>{escape(name)}</th>" for name in spaces)
    return f"<table><tr><th>image</th>{heads}</tr>{''.join(lines)}</table>"


def _thumbnail(number: int, titles: list[str]) -> str:
    image = f'<use href="#i{number}" width="38" height="38"/>'
    return f'<svg width="40" height="40"><title>{titles[number]}</title>{image}</svg>'


def _table(rows: list[dict[str, Any]]) -> str:
    heads = list(dict.fromkeys(name for row in rows for name in row))
    body = "".join("<tr>" + "".join(f"<td>{escape(str(row.get(n, '')))}</td>" for n in heads) + "</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in heads)}</tr>{body}</table>"


def _data(pixels: npt.NDArray[np.uint8]) -> str:
    image = pillow().fromarray(pixels)
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
