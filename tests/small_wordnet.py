"""A WordNet of three dozen words, in WordNet's own format: tests do not depend on the one of the machine."""

from __future__ import annotations

from pathlib import Path

LICENCE = "  1 This software and database is being provided to you, the LICENSEE\n"
DIGIT = {"n": "1", "v": "2", "a": "3", "r": "4"}
FILE = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# name: words | names of what stands above | antonyms as word of ours:name:place there | an example
SYNSETS = {
    "n1": "person | | | a person came",
    "n2": "chef cook | n1 | | the cook is here",
    "n3": "sailor mariner_of_the_sea | n1 | | the sailor is here",
    "n4": "boat vessel | n9 | | the boat is old",
    "n5": "house home | n9 | | the house is old",
    "n6": "day | | day:n7:1 | a day and a night",
    "n7": "night | | night:n6:1 | a day and a night",
    "n8": "bread | n9 | | the bread is warm",
    "n9": "thing | | | a thing is a thing",
    "n10": "saw | n9 | | the saw is on a boat",
    "n11": "kitchen galley | n9 | | the kitchen is warm",
    "v1": "bake cook | | | they cook it",
    "v2": "steer guide | | | they steer it",
    "v3": "play perform | | | they play it",
    "v4": "see behold | | | they saw it",
    "v5": "land set_down | | land:v6:1 | they land it",
    "v6": "take_off | | take_off:v5:1 |",
    "v7": "walk stroll | v8 | | they walk here",
    "v8": "go | | | they go here",
    "a1": "warm heated | | warm:a2:1 | warm bread",
    "a2": "cold | | cold:a1:1 | cold bread",
    "a3": "quiet silent | | quiet:a4:1 | a quiet person",
    "a4": "loud | | loud:a3:1 | a loud person",
    "a5": "old aged | | old:a6:1 | an old boat",
    "a6": "new | | new:a5:1 | a new boat",
    "a7": "big large | | big:a8:1 | a big boat",
    "a8": "little | | little:a7:1 | a little boat",
    "r1": "quickly rapidly | | quickly:r2:1 | they go quickly",
    "r2": "slowly | | slowly:r1:1 | they go slowly",
}
EXCEPTIONS = {
    "noun": ["men man"],
    "verb": ["beheld behold", "saw see", "seen see", "went go", "gone go", "took take", "taken take"],
    "adj": ["bigger big", "biggest big"],
    "adv": ["better well"],
}
COUNTS = {
    "cook": {"n": 9, "v": 8},
    "saw": {"n": 5},
    "see": {"v": 30},
    "boat": {"n": 20},
    "house": {"n": 10},
    "big": {"a": 5},
}


def write_wordnet(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    offsets = {name: f"{number:08d}" for number, name in enumerate(SYNSETS, 1)}
    data: dict[str, list[str]] = {letter: [] for letter in FILE}
    senses: dict[str, dict[str, list[str]]] = {letter: {} for letter in FILE}
    for name, text in SYNSETS.items():
        words, above, opposites, example = (part.split() for part in text.split("|"))
        pointers = [f"@ {offsets[other]} {other[0]} 0000" for other in above]
        for each in opposites:
            word, other, place = each.split(":")
            pointers.append(f"! {offsets[other]} {other[0]} {words.index(word) + 1:02x}{int(place):02x}")
        listed = " ".join(f"{word} 0" for word in words)
        gloss = f' "{" ".join(example)}"' if example else ""
        relations = f"{len(pointers):03d} {' '.join(pointers)}"
        data[name[0]].append(f"{offsets[name]} 00 {name[0]} {len(words):02x} {listed} {relations} | gloss;{gloss}")
        for word in words:
            senses[name[0]].setdefault(word, []).append(offsets[name])
    for letter, part in FILE.items():
        index = [
            f"{word} {letter} {len(found)} 0 {len(found)} 0 {' '.join(found)}"
            for word, found in sorted(senses[letter].items())
        ]
        (folder / f"data.{part}").write_text(LICENCE + "\n".join(data[letter]) + "\n", encoding="utf-8")
        (folder / f"index.{part}").write_text(LICENCE + "\n".join(index) + "\n", encoding="utf-8")
        (folder / f"{part}.exc").write_text("\n".join(EXCEPTIONS[part]) + "\n", encoding="utf-8")
    counts = [
        f"{word}%{DIGIT[letter]}:00:00:: 1 {count}" for word, found in COUNTS.items() for letter, count in found.items()
    ]
    (folder / "cntlist.rev").write_text("\n".join(counts) + "\n", encoding="utf-8")
    return folder
