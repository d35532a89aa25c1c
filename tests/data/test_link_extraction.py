"""Hyperlinks of a wiki: which sentences and entities come out of a dump, and what is no dump."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.cli import main
from isotrope.data.link_extraction import ExtractedLinks, extract_links, read_types
from isotrope.data.wikitext import Marked, linked_sentences, mark_html, mark_wikitext
from isotrope.errors import InputError

SPACES = frozenset({"file", "image", "category", "user", "datei"})
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en"><siteinfo>
<namespaces><namespace key="0"/><namespace key="6">Datei</namespace><namespace key="14">Kategorie</namespace>
</namespaces></siteinfo>"""
PAGES = {
    "Mars": "{{Infobox planet\n| name = [[Ares]]}}\n'''Mars''' is near [[earth|the Earth]]. It has two [[moon]]s, and "
    "[[Mars]] is red.[[Kategorie:Planets]]",
    "Venus": "{{infobox planet}}Venus outshines [[Terra]] e.g. at night. [[Datei:v.png|near [[Moon]]]]\n* [[Mars]]",
    "Earth": "{{Infobox planet|a={{b|[[Sun]]}}}} Earth<ref>[[Sun]]</ref> circles [[Sun#Core|our star]] with its "
    "[[Moon]] and [[fr:Lune]] [[:Category:X]]. It is green.",
    "Moon": "{{Infobox moon}}\nThe [[Earth]] has one.\n\n== [[Mars]] ==\n{| class=a\n| [[Mars]]\n|}",
}


def page(title: str, text: str, space: int = 0, redirect: str = "") -> str:
    from xml.sax.saxutils import escape, quoteattr

    leads = f"<redirect title={quoteattr(redirect)}/>" if redirect else ""
    return (
        f"<page><title>{escape(title)}</title><ns>{space}</ns><id>1</id>{leads}"
        f"<revision><id>2</id><text>{escape(text)}</text></revision></page>\n"
    )


def dump() -> str:
    pages = [page(title, text) for title, text in PAGES.items()]
    return (
        HEAD
        + "".join(pages)
        + page("Terra", "#REDIRECT [[Gaia]]", redirect="Gaia")
        + page("Gaia", "", redirect="Earth")
        + page("Talk:Mars", "I like [[Mars]] very much.", space=1)
        + "</mediawiki>"
    )


def rows_of(path: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]


def extract(
    tmp_path: Path, content: str | bytes, name: str = "wiki.xml", **settings: Any
) -> tuple[ExtractedLinks, Any]:
    source = tmp_path / name
    source.write_bytes(content.encode() if isinstance(content, str) else content)
    target = tmp_path / "linked.tsv"
    return isotrope.links([source], target, **{"min_links": 1, **settings}), rows_of(target)


EXPECTED = [
    ("sentence", "entity", "page", "entity_type"),
    ("Mars is near the Earth.", "Earth", "Mars", "planet"),
    ("It has two moons, and Mars is red.", "Moon", "Mars", "moon"),
    ("Venus outshines Terra e.g. at night.", "Earth", "Venus", "planet"),
    ("Earth circles our star with its Moon and .", "Sun", "Earth", ""),
    ("Earth circles our star with its Moon and .", "Moon", "Earth", "moon"),
    ("The Earth has one.", "Earth", "Moon", "planet"),
]


@pytest.mark.parametrize("packed", ["", ".bz2", ".gz"])
def test_a_dump_gives_the_links_of_its_prose(tmp_path: Path, packed: str) -> None:
    content = {"": bytes, ".bz2": bz2.compress, ".gz": gzip.compress}[packed](dump().encode())
    found, rows = extract(tmp_path, content, f"wiki.xml{packed}")
    assert rows == EXPECTED
    assert found.to_dict() == {
        "output": str(tmp_path / "linked.tsv"),
        "pages": 4,
        "redirects": 2,
        "rows_written": 6,
        "sentences": 5,
        "entities": 3,
        "with_type": 5,
        "self_links": 1,
        "rare_links": 0,
    }


def test_entities_with_few_links_are_left_out_and_counted(tmp_path: Path) -> None:
    found, rows = extract(tmp_path, dump(), min_links=3)
    assert {row[1] for row in rows[1:]} == {"Earth"}
    assert (found.rows_written, found.rare_links) == (3, 3)
    with pytest.raises(InputError, match=r"No entity has 10 links in 4 pages \(6 links read\); lower min_links"):
        isotrope.links([tmp_path / "wiki.xml"], tmp_path / "none.tsv")
    assert not (tmp_path / "none.tsv").exists()


def test_types_of_a_file_come_in_turn(tmp_path: Path) -> None:
    (tmp_path / "types.tsv").write_text("entity\tentity_type\nEarth\tplanet\nearth\tworld\nSun\tstar\n")
    _, rows = extract(tmp_path, dump(), types=tmp_path / "types.tsv")
    assert [row[3] for row in rows[1:] if row[1] == "Earth"] == ["planet", "world", "planet"]
    assert {row[3] for row in rows[1:] if row[1] == "Moon"} == {""}


def test_json_lines_of_wikiextractor(tmp_path: Path) -> None:
    texts = {
        "Mars": 'Mars\n\nMars is near <a href="Earth">the Earth</a>. It is <a href="Mars">red</a>.',
        "Venus": "Venus outshines &lt;a href=&quot;New%20Earth%23Sky&quot;&gt;that &amp;amp; this&lt;/a&gt;.",
    }
    lines = "\n".join(json.dumps({"id": "1", "url": "u", "title": t, "text": x}) for t, x in texts.items())
    _, rows = extract(tmp_path, lines, "wiki_00")
    assert rows == [
        ("sentence", "entity", "page"),
        ("Mars is near the Earth.", "Earth", "Mars"),
        ("Venus outshines that & this.", "New Earth", "Venus"),
    ]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("A [[cat]] sat.", [("A cat sat.", ["cat"])]),
        ("[[Cat|Cats]] sat. A [[dog]] ran. None here.", [("Cats sat.", ["Cat"]), ("A dog ran.", ["dog"])]),
        ("The [[U.S.]] is [[big]].", [("The U.S. is big.", ["U.S.", "big"])]),
        ("A [[cat| ]] and  [[ dog ]]  ran to a [[cat]].", [("A cat and dog ran to a cat.", ["cat", "dog"])]),
        ("[[File:a.png|thumb|A [[cat]] and a [[dog]].]] A [[fox]] ran.", [("A fox ran.", ["fox"])]),
        ("X<ref name=a /> y [[z]] &amp; <b>w</b>.", [("X y z & w.", ["z"])]),
        ("See [http://a.b the site] of [[z]].", [("See the site of z.", ["z"])]),
        ("[[Star Wars: Episode IV]] ran.", [("Star Wars: Episode IV ran.", ["Star Wars: Episode IV"])]),
        ("[[#History]] and [[User talk:Me]] and [[wikt:cat]].", []),
        ("== [[cat]] ==\n* [[dog]]\n# [[fox]]\n: [[owl]]", []),
        ("A {{lang|[[de]]|{{x}}}} [[cat]] ([[dog]], {{y}}).", [("A cat (dog, ).", ["cat", "dog"])]),
        ("An unclosed [[cat sat. A [[dog]].", [("A dog.", ["dog"])]),
    ],
)
def test_markup(markup: str, expected: list[Any]) -> None:
    assert list(linked_sentences(mark_wikitext(markup, SPACES))) == expected


def test_links_to_other_places_keep_their_words_in_html() -> None:
    marked = mark_html('A <a href="Category%3ACats">cat</a> saw <a href="https://x.y">us</a>.', SPACES | {"category"})
    assert marked == Marked("A cat saw us.", [])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.xml", "<html><body/></html>", "the XML is a <html>, not a MediaWiki dump (<mediawiki>)"),
        ("a.xml", HEAD + page("A", "b")[:-20], "the XML breaks off or is damaged here"),
        ("a.xml", "", "the file is empty"),
        ("a.txt", "A plain text.", "neither XML nor JSON lines; give a MediaWiki .xml dump"),
        ("a.json", '{"title": "A", "text": "b"}\n{"title": "A"}\n', ":2: an object with a title and a text"),
        ("a.json", '{"title": "A", "text": "b"}\n{"title\n', ":2: not JSON"),
        ("a.xml.bz2", bz2.compress(dump().encode() * 50)[:-30], "damaged or cut short"),
        ("a.xml.bz2", b"no bz2 at all", "damaged or cut short"),
    ],
)
def test_what_is_no_wiki_leaves_no_file(tmp_path: Path, name: str, content: str | bytes, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        extract(tmp_path, content, name)
    assert sentence in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_types_without_their_columns(tmp_path: Path) -> None:
    (tmp_path / "types.tsv").write_text("item\tclass\nEarth\tplanet\n")
    with pytest.raises(InputError, match="types need entity and entity_type"):
        extract(tmp_path, dump(), types=tmp_path / "types.tsv")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.xml").write_text(dump())
    with pytest.raises(SystemExit, match="0"):
        main(["links", str(tmp_path / "w.xml"), "--output", str(tmp_path / "l.tsv"), "--min-links", "1", "--json"])
    assert json.loads(capsys.readouterr().out)["rows_written"] == 6
    with pytest.raises(SystemExit, match="2"):
        main(["links", str(tmp_path / "w.xml"), "--output", str(tmp_path / "l2.tsv"), "--min-links", "0"])
    assert "min_links must be at least 1" in capsys.readouterr().err


def test_a_row_of_types_without_one_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "types.jsonl").write_text(
        '{"entity": "Earth", "entity_type": "planet"}\n{"entity": "Sun"}\n{"entity": "Moon", "entity_type": null}\n'
    )
    assert read_types(tmp_path / "types.jsonl") == {"Earth": ["planet"]}


def test_half_a_character_of_a_page_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "wiki.json").write_text('{"title": "A", "text": "<a href=\\"B\\">x \\ud83d</a> is here."}\n')
    with pytest.raises(InputError, match=r"wiki.json:1: the text holds half a character"):
        extract_links([tmp_path / "wiki.json"], tmp_path / "links.tsv", min_links=1)
