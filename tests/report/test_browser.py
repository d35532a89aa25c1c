"""The page in a real browser:

it loads without a complaint, the figures are there, and a sentence is read by pointing at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page, browser_page, find_browser
from isotrope.report.build import Report

SIZES = [(1280, 900), (390, 844)]
MIDDLE = """(() => {
    const node = document.querySelector("%s");
    node.scrollIntoView({ block: "center" });
    const box = node.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
})()"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    program = find_browser()
    if program is None:
        pytest.skip("no chromium is installed here; on Debian: apt-get install chromium")
    with browser_page(program) as opened:
        yield opened


@pytest.fixture(params=SIZES, ids=["laptop", "phone"])
def shown(tab: Page, page: Path, request: pytest.FixtureRequest) -> Page:
    tab.open(page, *request.param)
    return tab


def test_it_loads_without_a_complaint_and_draws_every_panel(shown: Page, report: Report) -> None:
    assert shown.complaints() == []
    for name, figure in report.figures.items():
        drawn = shown.value(f"document.querySelectorAll('[data-figure={name}] .chart svg').length")
        assert drawn == len(figure.panels), name
    assert shown.value("document.querySelectorAll('[data-figure=map] circle[data-row]').length") == 3 * 120
    broken = "[...node.attributes].some(one => /NaN|undefined/.test(one.value))"
    assert shown.value(f"[...document.querySelectorAll('svg *')].filter(node => {broken}).length") == 0
    assert shown.value("window.broken") is None


def test_nothing_is_wider_than_the_screen_and_no_label_is_cut(shown: Page) -> None:
    assert shown.value("document.documentElement.scrollWidth") <= shown.width
    boxes = "[...document.querySelectorAll('.chart text')].map(t => [t.getBoundingClientRect(), t.textContent])"
    assert (
        shown.value(f"{boxes}.filter(([box]) => box.left < 0 || box.right > {shown.width}).map(([, text]) => text)")
        == []
    )


def test_pointing_at_a_sentence_shows_it_in_every_map(shown: Page, report: Report) -> None:
    found = shown.value(MIDDLE % "[data-figure=map] circle[data-row]")
    assert shown.value("document.getElementById('tip').hidden")
    shown.point_at(*found)
    told = shown.value("document.getElementById('tip').textContent")
    assert not shown.value("document.getElementById('tip').hidden")
    row = int(shown.value("document.querySelector('[data-figure=map] circle[data-row]').dataset.row"))
    assert told.startswith(report.findings.map.texts[row])
    assert shown.value("document.querySelectorAll('#tip li').length") == 5
    assert shown.value("[...document.querySelectorAll('.over')].map(g => g.querySelectorAll('line').length)") == [
        5,
        5,
        5,
    ]
    box = shown.value(
        "(() => { const box = document.getElementById('tip').getBoundingClientRect();"
        " return [box.left, box.right, innerWidth]; })()"
    )
    assert 0 <= box[0] < box[1] <= box[2]
    shown.point_at(2, 2)
    assert shown.value("document.getElementById('tip').hidden")
    assert shown.value("document.querySelectorAll('.over *').length") == 0
    assert shown.complaints() == []


def test_pointing_at_a_model_on_the_plane_names_it(shown: Page) -> None:
    shown.point_at(*shown.value(MIDDLE % "[data-figure=plane] .chart path[transform]"))
    assert shown.value("document.getElementById('tip').textContent").startswith("tiny")


def test_a_model_is_switched_off_and_on(shown: Page) -> None:
    lines = "document.querySelectorAll('[data-figure=spectrum] .chart path').length"
    assert shown.value(lines) == 3
    shown.value("document.querySelector('button[data-subject=first]').click()")
    assert shown.value(lines) == 2
    assert shown.value("document.querySelector('button[data-subject=first]').getAttribute('aria-pressed')") == "false"
    shown.value("document.querySelector('button[data-subject=first]').click()")
    assert shown.value(lines) == 3


def test_a_complaint_would_be_heard(tab: Page, page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(
        page.read_text(encoding="utf-8").replace("CHARTS[figure.chart](", "MISSING[figure.chart]("), encoding="utf-8"
    )
    before = len(tab.complaints())
    tab.open(broken)
    assert any("MISSING is not defined" in said for said in tab.complaints()[before:])
    tab.events.clear()
