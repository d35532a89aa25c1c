"""The public function: find the subjects, measure them, write the page or one figure of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.evaluation.benchmark_files import data_folder, protected_files
from isotrope.files import write_json, written_file
from isotrope.report.drawing import save_figure
from isotrope.report.figure_parts import Figure
from isotrope.report.findings import Findings
from isotrope.report.measure import measure
from isotrope.report.page import write_page
from isotrope.report.plane_figures import plane
from isotrope.report.read_out_figures import read_out
from isotrope.report.score_figures import scores, training
from isotrope.report.space_figures import density, layers, sentence_map, spectrum
from isotrope.report.subjects import Place, find_subjects
from isotrope.report.texts import read_texts

FIGURES: dict[str, Callable[[Findings], Figure | None]] = {
    "scores": scores,
    "plane": plane,
    "training": training,
    "spectrum": spectrum,
    "layers": layers,
    "read-out": read_out,
    "density": density,
    "map": sentence_map,
}
FORMATS = ("html", "png", "svg", "json")


@dataclass(frozen=True)
class Report:
    """``findings``: what was measured; ``figures``: drawn from it; ``output``: what was written, if anything was."""

    findings: Findings
    figures: dict[str, Figure] = field(repr=False)
    output: Path | None = None

    def html(self) -> str:
        return write_page(self.findings, self.figures)

    def save(self, path: Place, format: str | None = None, figure: str | None = None) -> Path:
        """The page, or one figure as png, svg or json; without a figure json is everything."""
        target, form = check_output(path, format, figure)
        if figure is not None and figure not in self.figures:
            raise InputError(
                f"There is nothing to draw the figure '{figure}' from; here are {', '.join(self.figures)}."
            )
        if form == "json":
            write_json(target, (self.findings if figure is None else self.figures[figure]).to_json())
            return target
        with written_file(target) as temporary:
            if form == "html":
                temporary.write_text(self.html(), encoding="utf-8")
            else:
                save_figure(self.figures[str(figure)], temporary, form)
        return target


def make_report(
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
) -> Report:
    """Show runs and models side by side. The parameters are those of ``isotrope.report``, which checks their ranges."""
    if output is not None:
        check_output(output, format, figure)  # before minutes of work
    if any(not query.strip() for query in queries):
        raise InputError("A query is empty.")
    cast = find_subjects(subjects)
    place = data_dir or os.environ.get("ISOTROPE_DATA")
    folder = data_folder(place) if place else None
    texts = read_texts(cast, text, columns, sentences, seed)
    protected = protected_files(folder) if folder is not None and cast.runs else []
    findings = measure(cast, texts, folder, protected, queries, seed)
    made = Report(findings, draw_all(findings))
    return made if output is None else Report(made.findings, made.figures, made.save(output, format, figure))


def check_output(path: Place, format: str | None, figure: str | None) -> tuple[Path, str]:
    """The file and its format, or what is wrong with them."""
    target = Path(path).expanduser()
    form = format or target.suffix.lower().lstrip(".")
    if form not in FORMATS:
        found = f"Unknown format '{format}'" if format else f"{path}: the name does not end with a format that is known"
        raise InputError(f"{found}{nearest(form, FORMATS)}")
    if figure is not None and figure not in FIGURES:
        raise InputError(f"Unknown figure '{figure}'{nearest(figure, FIGURES)}")
    if form in ("png", "svg") and figure is None:
        raise InputError(f"{form} holds a single figure; name it with figure: {', '.join(FIGURES)}.")
    if form == "html" and figure is not None:
        raise InputError("The page holds every figure; for a single one choose format png, svg or json.")
    if target.is_dir():
        raise InputError(f"{path}: a folder of this name is in the way; choose another output.")
    if not target.parent.is_dir():
        raise InputError(f"{path}: the folder {target.parent} does not exist; make it first, or choose another output.")
    return target, form


def summary(report: Report) -> list[dict[str, Any]]:
    """A line a subject, for the terminal."""
    table = report.findings.scores
    rows = []
    for card in report.findings.subjects:
        shape = report.findings.geometry[card.name]
        row: dict[str, Any] = {"name": card.name, "what": card.method or card.role}
        if table is not None:
            label = "STS average" if table.suite == "sts" else "MRR × 100"
            row[label] = f"{table.headlines()[card.name]:.2f}"
        rows.append({**row, "mean cosine": f"{shape.mean_cosine:.3f}", "effective rank": f"{shape.effective_rank:.1f}"})
    return rows


def draw_all(findings: Findings) -> dict[str, Figure]:
    """Every figure that there are values for."""
    made = {name: make(findings) for name, make in FIGURES.items()}
    return {name: figure for name, figure in made.items() if figure is not None}
