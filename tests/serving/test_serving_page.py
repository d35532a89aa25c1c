"""The page in a real browser: it types, reads results, goes by keyboard, and asks nobody but its server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browser import Page, browser_page, find_browser

SIZES = [(1280, 900), (390, 844)]
READY = "document.querySelectorAll('#plane .dot').length === 16 && document.querySelectorAll('#carried p').length === 2"


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    program = find_browser()
    if program is None:
        pytest.skip("no chromium is installed here; on Debian: apt-get install chromium")
    with browser_page(program) as opened:
        yield opened


@pytest.fixture(params=SIZES, ids=["laptop", "phone"])
def shown(tab: Page, server: Any, request: pytest.FixtureRequest) -> Page:
    tab.events.clear()
    tab.open(server.address, *request.param)
    tab.wait_for(READY)
    return tab


def text(page: Page, selector: str) -> str:
    return str(page.value(f"document.querySelector({selector!r}).textContent"))


def test_it_loads_without_a_complaint_and_nothing_is_wider_than_the_screen(shown: Page) -> None:
    assert shown.complaints() == []
    assert shown.value("document.documentElement.scrollWidth") <= shown.width
    assert "tiny, labelled · 32 dimensions" in text(shown, "#about")
    outside = "[...document.querySelectorAll('main *')].filter(n => n.getBoundingClientRect().right > innerWidth + 1)"
    assert shown.value(f"{outside}.filter(n => !n.closest('svg, pre')).map(n => n.outerHTML.slice(0, 80))") == []


def test_typing_searches_and_marks_words(shown: Page) -> None:
    assert shown.value("document.activeElement.id") == "query"  # ready to type
    shown.type_text("bread")
    shown.wait_for("document.querySelectorAll('#hits li').length === 1")
    assert text(shown, "#hits mark") == "bread"
    assert "texts.txt, line 1 · passage 2 of 3 · year 2001" in text(shown, "#hits .from")
    assert text(shown, "#search-status") == "1 result."
    shown.type_text(" the")
    shown.wait_for("document.querySelectorAll('#hits li').length === 3")
    first = text(shown, "#hits li")
    shown.value("document.getElementById('rerank').click()")
    shown.wait_for(f"document.querySelector('#hits li').textContent !== {first!r}")
    assert shown.complaints() == []


def test_two_texts_are_compared_as_they_are_typed(shown: Page) -> None:
    shown.value("(() => { const n = document.getElementById('second'); n.value = ''; n.focus(); })()")
    shown.type_text("A man is playing a guitar on the street.")
    shown.wait_for("document.getElementById('compare-status').textContent.startsWith('1.00')")
    assert text(shown, "#carried p:nth-child(2)") == "A man is playing a guitar on the street."
    assert shown.value("document.querySelectorAll('#carried .w3').length") >= 1
    assert shown.complaints() == []


def test_the_map_shows_groups_duplicates_and_goes_by_keyboard(shown: Page) -> None:
    assert "16 lines in 3 groups" in text(shown, "#map-status")
    assert "is the same as" in text(shown, "#doubles")
    shown.value("document.querySelector('#plane .dot[tabindex=\"0\"]').focus()")
    before = text(shown, "#point")
    for key in ("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        shown.press(key)
    assert text(shown, "#point") != ""
    assert shown.value("document.activeElement.getAttribute('aria-label')").startswith(
        text(shown, "#point").split(" · ")[0]
    )
    assert before.startswith("A man plays the guitar")
    shown.value("document.querySelector('#groups button').click()")
    assert shown.value("document.querySelector('#groups button').getAttribute('aria-pressed')") == "true"
    assert shown.value("document.querySelectorAll('#plane .dim').length") > 0
    assert shown.complaints() == []


def test_every_field_has_a_name_and_every_status_is_announced(shown: Page) -> None:
    fields = "[...document.querySelectorAll('input, textarea, select')].filter(n => !n.labels.length).map(n => n.id)"
    assert shown.value(fields) == []
    assert shown.value("[...document.querySelectorAll('.status')].every(n => n.getAttribute('role') === 'status')")
    assert shown.value("[...document.querySelectorAll('section')].every(n => n.hasAttribute('aria-labelledby'))")
    assert shown.value("document.documentElement.lang") == "en"


def test_text_of_the_index_is_text_and_never_markup(tab: Page, server: Any) -> None:
    tab.events.clear()
    tab.open(server.address)
    tab.wait_for(READY)
    tab.value(
        "(() => { const n = document.getElementById('lines'); n.value = '<img src=x onerror=alert(1)>\\n<b>bold</b>';"
        " n.dispatchEvent(new Event('input')); })()"
    )
    tab.wait_for("document.querySelectorAll('#plane .dot').length === 2")
    assert tab.value("document.querySelectorAll('main img, main section b:not(.status b)').length") == 0
    assert tab.complaints() == []
