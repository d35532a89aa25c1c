"""The figures as plain values: what is drawn where, in which colour. The page and matplotlib draw the same ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isotrope.report.measure import Findings

Figure = dict[str, Any]
# Okabe and Ito's colours, which people with any colour vision tell apart; yellow is left out, it does not show on
# white.
GREYS = ("#4d4d4d", "#999999")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GROUP_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7")
MARKERS = ("circle", "square", "triangle", "diamond")
DASHES = ("", "7 3", "2 3", "8 3 2 3")
BIN_COLOURS = ("#3b2f6b", "#31688e", "#21918c", "#4fae5a", "#b5a100")  # dark to light, also in grey


def styles(findings: Findings) -> dict[str, dict[str, str]]:
    """Of each subject: a colour, a marker and a dash; starts are grey."""
    found, starts, others = {}, 0, 0
    for subject in findings["subjects"]:
        if subject["role"] == "start":
            colour = GREYS[starts % len(GREYS)]
            found[subject["name"]] = {
                "colour": colour,
                "marker": MARKERS[starts // 2 % 4],
                "dash": DASHES[starts // 2 % 4],
            }
            starts += 1
        else:
            colour = COLOURS[others % len(COLOURS)]
            found[subject["name"]] = {
                "colour": colour,
                "marker": MARKERS[(others + 1) % 4],
                "dash": DASHES[(others + 1) % 4],
            }
            others += 1
    return found


def scores(findings: Findings) -> Figure | None:
    """One row a task, one mark a subject, its interval as a bar."""
    table = findings["scores"]
    if table is None:
        return None
    style, tasks = styles(findings), table["tasks"]
    series = []
    for row in table["rows"]:
        values = [row["values"][task] for task in tasks]
        series.append(
            {
                "name": row["name"],
                **style[row["name"]],
                **{
                    key: [value[source] for value in values]
                    for key, source in (("x", "value"), ("low", "low"), ("high", "high"))
                },
                "hover": [
                    f"{row['name']}\n{task}: {_scored(value)}" for task, value in zip(tasks, values, strict=True)
                ],
            }
        )
    caption = f"{table['protocol']}. The interval says how far other test pairs would move the score; other training seeds move it too."
    label = "Spearman × 100" if table["kind"] == "sts" else "× 100"
    return _figure(
        "scores",
        "Scores",
        "intervals",
        caption,
        {"label": label},
        {"categories": tasks},
        [{"title": "", "series": series}],
    )


def plane(findings: Findings) -> Figure | None:
    """Every subject, and every checkpoint of a run as a trail."""
    if not findings["plane"]:
        return None
    style = styles(findings)
    panels = []
    for kind, found in findings["plane"].items():
        series = []
        for name, point in found["points"].items():
            one = {
                "name": name,
                **style[name],
                "x": [point["uniformity"]],
                "y": [point["alignment"]],
                "hover": [_placed(name, point)],
            }
            trail = (
                [step for step in findings["trails"].get(name, []) if "uniformity" in step] if kind == "text" else []
            )
            if trail:
                one["trail"] = {
                    "x": [step["uniformity"] for step in trail],
                    "y": [step["alignment"] for step in trail],
                    "hover": [_placed(f"{name}, step {step['step']}", step) for step in trail],
                }
            series.append(one)
        panels.append(
            {"title": "On your text" if kind == "text" else "On STS-B", "note": found["of"], "series": series}
        )
    caption = (
        "Left is more spread out, down is positives closer together: the lower left corner is the place to be. Small dots are checkpoints, "
        "the large mark is the model that was kept."
    )
    return _figure(
        "plane", "Alignment and uniformity", "plane", caption, {"label": "uniformity (lower: more spread out)"},
        {"label": "alignment (lower: positives closer)"}, panels,
    )  # fmt: skip


MEASURES = {
    "retrieval_mrr": "MRR without labels",
    "spearman": "Spearman × 100 on the eval data",
    "effective_rank": "Effective rank",
    "mean_cosine": "Mean cosine of two sentences",
}


def training(findings: Findings) -> Figure | None:
    """What was measured during the runs, by step."""
    style = styles(findings)
    panels = []
    for measure, label in MEASURES.items():
        series = []
        for card in findings["subjects"]:
            trail = [step for step in findings["trails"].get(card["name"], []) if measure in step]
            if len(trail) > 1:
                steps, values = [step["step"] for step in trail], [step[measure] for step in trail]
                hover = [
                    f"{card['name']}, step {step}\n{label}: {value:.4g}"
                    for step, value in zip(steps, values, strict=True)
                ]
                one = {
                    "name": card["name"],
                    **style[card["name"]],
                    "x": steps,
                    "y": values,
                    "hover": hover,
                    "dots": True,
                }
                if card["selected_step"] in steps:
                    one["chosen"] = steps.index(card["selected_step"])
                series.append(one)
        if series:
            panels.append({"title": label, "series": series})
    if not panels:
        return None
    caption = "From the runs' own logs, on the text each of them held out. The ring is the checkpoint that was kept."
    return _figure("training", "During training", "lines", caption, {"label": "step"}, {"label": ""}, panels)


def spectrum(findings: Findings) -> Figure:
    """Singular values, largest first, each divided by the largest."""
    style = styles(findings)
    series = []
    for name, shape in findings["geometry"].items():
        values = [value for value in shape["spectrum"] if value > 1e-4]  # past that they are rounding
        hover = [f"{name}\ndirection {number}: {value:.3g} of the largest" for number, value in enumerate(values, 1)]
        series.append({"name": name, **style[name], "x": list(range(1, len(values) + 1)), "y": values, "hover": hover})
    ranks = ", ".join(f"{name} {shape['effective_rank']:.0f}" for name, shape in findings["geometry"].items())
    caption = f"A flat line uses all directions alike; a cliff at the left is a cone. Effective rank: {ranks}."
    return _figure(
        "spectrum", "Spectrum", "lines", caption, {"label": "direction, the strongest first", "scale": "log"},
        {"label": "singular value / largest", "scale": "log"}, [{"title": "", "series": series}],
    )  # fmt: skip


def layers(findings: Findings) -> Figure | None:
    """Self-similarity of a sentence's tokens and the mean cosine of two sentences, by layer."""
    style = styles(findings)
    panels = []
    for measure, label in (
        ("self_similarity", "Cosine of two tokens of one sentence"),
        ("mean_cosine", "Cosine of tokens of two sentences"),
    ):
        series = []
        for name, shape in findings["geometry"].items():
            rows = [row for row in shape.get("layers", []) if row.get(measure) is not None]
            if rows:
                hover = [f"{name}, layer {row['layer']}\n{label}: {row[measure]:.3f}" for row in rows]
                x, y = [row["layer"] for row in rows], [row[measure] for row in rows]
                series.append({"name": name, **style[name], "x": x, "y": y, "hover": hover, "dots": True})
        if series:
            panels.append({"title": label, "series": series})
    if not panels:
        return None
    caption = "Layer 0 is the embeddings, the last is what is pooled."
    return _figure(
        "layers", "Layer by layer", "lines", caption, {"label": "layer", "integers": True}, {"label": ""}, panels
    )


def density(findings: Findings) -> Figure | None:
    """How the cosines of STS-B pairs lie, by people's score."""
    if not findings["pairs"]:
        return None
    panels = []
    for name, found in findings["pairs"].items():
        series = []
        for number, line in enumerate(found["density"]):
            if line["curve"]:
                middle = line["quantiles"]["50"]
                label = f"{line['low']}–{line['high']}"
                series.append(
                    {
                        "name": label,
                        "colour": BIN_COLOURS[number],
                        "x": [point[0] for point in line["curve"]],
                        "y": [point[1] for point in line["curve"]],
                        "median": middle,
                        "hover": f"{name}\npeople's score {label}: {line['count']:,} pairs, median cosine {middle:.2f}, half of them "
                        f"from {line['quantiles']['25']:.2f} to {line['quantiles']['75']:.2f}",
                    }
                )
        note = "" if found["spearman"] is None else f"Spearman × 100 of these pairs: {found['spearman']:.1f}"
        panels.append({"title": name, "note": note, "series": series})
    every = [series for panel in panels for series in panel["series"]]
    low, high = min(min(one["x"]) for one in every), max(max(one["x"]) for one in every)
    caption = (
        "STS-B test pairs in five bins of people's score, highest on top; the tick is the median. Well-ordered hills that hardly overlap "
        "are a good space; hills squeezed to the right are a cone."
    )
    return _figure(
        "density",
        "Similarities by people's score",
        "ridges",
        caption,
        {"label": "cosine of the pair", "domain": [low, high]},
        {"label": "people's score", "highest": max(max(one["y"]) for one in every)},
        panels,
    )


def map_(findings: Findings) -> Figure:
    """The same sentences in every space."""
    found = findings["map"]
    panels = []
    for name, places in found["places"].items():
        series = []
        for number, group in enumerate(found["names"]):
            members = [row for row, own in enumerate(found["groups"]) if own == number]
            series.append(
                {
                    "name": group,
                    "colour": GROUP_COLOURS[number % 6],
                    "marker": "circle",
                    "dash": "",
                    "x": [places[row][0] for row in members],
                    "y": [places[row][1] for row in members],
                    "rows": members,
                }
            )
        panels.append({"title": name, "series": series})
    caption = (
        f"t-SNE of {len(found['texts']):,} sentences of {findings['text']['name']}. Near means alike; the axes mean nothing. Colours are "
        f"groups (k-means) of {found['grouped_by']}, named by words they have more of. Point at a sentence to read it and to see its "
        "five nearest in every space."
    )
    return _figure("map", "Map of your sentences", "map", caption, {"label": ""}, {"label": ""}, panels)


FIGURES: dict[str, Callable[[Findings], Figure | None]] = {
    "scores": scores,
    "plane": plane,
    "training": training,
    "spectrum": spectrum,
    "layers": layers,
    "density": density,
    "map": map_,
}


def draw_all(findings: Findings) -> dict[str, Figure]:
    """Every figure that there are values for."""
    made = {name: make(findings) for name, make in FIGURES.items()}
    return {name: figure for name, figure in made.items() if figure is not None}


def _figure(name: str, title: str, kind: str, caption: str, x: Figure, y: Figure, panels: list[Figure]) -> Figure:
    return {"name": name, "title": title, "kind": kind, "caption": caption, "x": x, "y": y, "panels": panels}


def _scored(value: dict[str, Any]) -> str:
    interval = "" if value["low"] is None else f" ({value['low']:.1f} to {value['high']:.1f})"
    return f"{value['value']:.2f}{interval}"


def _placed(name: str, point: dict[str, Any]) -> str:
    return f"{name}\nuniformity {point['uniformity']:.3f}, alignment {point['alignment']:.3f}"
