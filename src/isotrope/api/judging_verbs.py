"""Verbs that judge: evaluate, report, doctor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isotrope.allocator import returning_memory
from isotrope.api.arguments import Place, check_data, holds_images
from isotrope.errors import check_between, check_seed
from isotrope.files import check_overwrite

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder
    from isotrope.evaluation.results import Results
    from isotrope.machine import Machine
    from isotrope.report.build import Report
    from isotrope.report.image_page import ImageReport


def evaluate(
    encoder: Encoder | Place | Sequence[Encoder | Place],
    suite: str | Sequence[str] = "sts",
    data_dir: Place | None = None,
    seeds: int | Sequence[int] = 0,
    aggregation: str = "all",
    texts: Place | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    pooling: str | None = None,
    test: Place | None = None,
    baselines: bool = True,
    against: Encoder | Place | Sequence[Encoder | Place | Sequence[Encoder | Place]] = (),
    leaks: bool = True,
    protocol: str | None = None,
    tasks: Sequence[str] | None = None,
    lang: str | None = None,
    truncate_dim: int | None = None,
    int8: bool = False,
) -> Results:
    """Judge an encoder (or a run folder, or several runs) by a suite, by several ("sts,transfer"), or by "all".

    ``seeds`` are random seeds: transfer draws its folds again for each of them and gives the mean; bootstraps and
    samples of the other suites take the first. ``texts`` (a file or a list) is what geometry describes and what
    counterfactual makes triples of, by default the sentences of STS-B and of the movie reviews; the labelled text of
    linear, whose test part is the file ``test``, the rows of split test, or a part drawn at random; the questions with
    candidates of answers; and, where the suite is alone, scored pairs for sts and pairs for retrieval. ``aggregation``
    (all, mean or wmean) is how STS12–16 join their subsets. ``baselines``: TF-IDF, BM25 and random vectors, computed on
    the same texts, stand in the table. ``protocol`` is the classifier of transfer and probing, ``tasks`` some of their
    tasks or, where the suite is alone, sets of retrieval, ``lang`` another language of sts. ``truncate_dim`` keeps the
    leading dimensions of all vectors. ``int8`` judges the int8 export of each model, made once and kept in the cache:
    half the time on a CPU, and what it costs is said (extra ``onnx``).

    ``against``: other encoders; for each there is a verdict, by a paired bootstrap of the test items. Several runs of
    one method, given as a folder of runs, as a list, or joined by commas, stand for one encoder, and the verdict then
    covers their random seeds. ``leaks``: mark the scores whose test items stand in the training text of a run.
    """
    drawn = (seeds,) if isinstance(seeds, int) else tuple(seeds) or (0,)
    for seed in drawn:
        check_seed(seed, "seeds")
    for file in (texts, test):
        if isinstance(file, str | os.PathLike):
            check_data(file)
    from isotrope.evaluation.judging import judge_models
    from isotrope.evaluation.suite import Options

    alone = isinstance(against, str | os.PathLike) or hasattr(against, "encode")
    others: Sequence[Any] = [against] if alone else list(against)  # type: ignore[arg-type]
    some = None if tasks is None else tuple(tasks)
    suited = {"test": test, "baselines": baselines, "protocol": protocol, "tasks": some, "lang": lang}
    options = Options(data_dir, texts, columns, aggregation, drawn, **suited)  # type: ignore[arg-type]
    with returning_memory():
        return judge_models(encoder, suite, options, others, pooling, leaks, truncate_dim, int8)


def report(
    *subjects: Place | Encoder,
    output: Place | None = None,
    text: Place | None = None,
    data_dir: Place | None = None,
    format: str | None = None,
    figure: str | None = None,
    sentences: int = 1000,
    queries: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    seed: int = 42,
) -> Report | ImageReport:
    """Show runs and models next to each other, on one page or in a single figure of it.

    ``text``: the sentences to look at, by default those of the first run. ``data_dir`` (or ISOTROPE_DATA) brings STS;
    without it the score is label-free. ``sentences``: how many are sampled for the map. ``queries``: sentences whose
    neighbours are shown. Where ``text`` holds images, the page has maps of thumbnails and neighbours of some of them.
    """
    if text is not None:
        check_data(text)
    check_seed(seed)
    check_between("sentences", sentences, 10, 1_000_000)
    check_overwrite(output, text, *subjects)
    if text is not None and holds_images(text):
        from isotrope.report.image_page import make_image_report

        return make_image_report(*subjects, output=output, images=text, count=sentences, seed=seed)
    from isotrope.report.build import make_report

    return make_report(
        *subjects,
        output=output,
        text=text,
        data_dir=data_dir,
        format=format,
        figure=figure,
        sentences=sentences,
        queries=queries,
        columns=columns,
        seed=seed,
    )


def doctor() -> Machine:
    """What this machine can do: threads, torch, bfloat16 (tried in a subprocess), built-in models, offline or not."""
    from isotrope.machine import examine

    return examine()
