"""The negation of an English sentence by rule, without a parser.

    a "not" or "n't" is there               the first one is taken out
    an auxiliary: is, will, has + done      "not" behind it
    a finite verb: said, worked, contains   "did not say", "did not work", "does not contain"
    none of these is found                  "Not" in front of the whole text

The first word from the left that fits decides, so a verb of a clause in front is negated where the main clause comes
later. A finite verb is known by its form and its neighbours: an irregular past, an -ed behind a word that can be a
subject, an -s behind he, she, it, who or which, a base form behind I, you, we or they. ``text_damage.negated``, which
judges encoders, knows auxiliaries alone and puts "It is not true that" before the rest.
"""

from __future__ import annotations

import re

from isotrope.lexicon.english import FUNCTION_WORDS

WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)*")
BE_AND_MODALS = frozenset("am is are was were can could will would shall should may must might did does".split())
CONTRACTED = re.compile(r"['’](?:m|re|ll)$", re.IGNORECASE)
SHORT_IS = re.compile(r"^(?:it|he|she|that|there|here|what|who|where)['’]s$", re.IGNORECASE)
SHORT_NOT = re.compile(r"n['’]t$", re.IGNORECASE)
WHOLE = {"wo": "will", "ca": "can", "sha": "shall", "ai": "is"}  # without their "n't"
HAVE = {"has": "does not have", "have": "do not have", "had": "did not have"}
PLURAL, SINGULAR = frozenset("i you we they".split()), frozenset("he she it who which".split())
# Before an -ed word these say that it is no finite verb: the listed country, a well known man, two injured.
BEFORE_PARTICIPLES = (FUNCTION_WORDS - PLURAL - SINGULAR - frozenset("that this then there".split())) | frozenset(
    "well newly highly widely so-called first second three four five six seven eight nine ten".split()
)
ADVERBS = frozenset("also then now never ever always often still just even only again soon later once".split())
PASTS = """said:say went:go made:make took:take came:come saw:see got:get gave:give found:find told:tell became:become
began:begin kept:keep held:hold wrote:write stood:stand brought:bring met:meet led:lead grew:grow lost:lose fell:fall
sent:send built:build understood:understand drew:draw broke:break spent:spend rose:rise drove:drive bought:buy wore:wear
chose:choose ran:run sat:sit spoke:speak won:win threw:throw caught:catch taught:teach fought:fight sold:sell felt:feel
knew:know thought:think heard:hear paid:pay meant:mean flew:fly sang:sing swam:swim drank:drink ate:eat forgot:forget
hid:hide rode:ride shook:shake stole:steal tore:tear woke:wake blew:blow struck:strike sought:seek fled:flee arose:arise
slept:sleep dealt:deal shot:shoot laid:lay sank:sink sprang:spring swore:swear bore:bear bent:bend lent:lend""".split()
IRREGULAR = dict(pair.split(":") for pair in PASTS)
PARTICIPLES = frozenset(
    """been done gone seen taken given known written made found become come held kept lost told said shown built sent
    spent brought bought sold led met won begun run had got gotten grown fallen broken chosen drawn driven spoken
    thought caught taught heard left put set cut paid meant felt risen worn flown""".split()
)
# Stems of which the base form ends in a silent e: releas-ed, includ-ed, provid-ed, manag-ed, handl-ed.
SILENT_E = re.compile(
    r"([cvuz]|creat|[^s]s|[aeiounrd]g|[^aeiourlw]l|(?<![aeiou])([aou]t|[aiou]r|i[nd]|[aou]d|[aiu][mpkl]|ok))$"
)
DOUBLED = re.compile(r"([bdgklmnprt])\1$")
DOUBLED_IN_BASE = re.compile(r"(ll|ss|ff|zz)$")


def negation(text: str) -> tuple[str, bool]:
    """The negated text, and whether a rule found the place; if none did, "Not" stands in front."""
    words = list(WORD.finditer(text))
    for found in words:
        if (without := _without_not(text, found)) is not None:
            return without, True
    lower = [found[0].lower() for found in words]
    for number, found in enumerate(words):
        change = _negated_word(lower, number)
        if change is not None:
            written = change[:1].upper() + change[1:] if found[0][:1].isupper() and number == 0 else change
            if change.startswith(f"{lower[number]} "):
                written = found[0] + change[len(found[0]) :]
            return text[: found.start()] + written + text[found.end() :], True
    return f"Not {text}", False


def _without_not(text: str, found: re.Match[str]) -> str | None:
    word = found[0]
    if word.lower() == "not":
        before, behind = text[: found.start()], text[found.end() :]
        return before + behind.lstrip() if not before or before.endswith(" ") else before + behind
    if word.lower() == "cannot":
        return text[: found.start()] + word[:3] + text[found.end() :]
    if not SHORT_NOT.search(word):
        return None
    stem = SHORT_NOT.sub("", word)
    whole = WHOLE.get(stem.lower(), stem)
    return text[: found.start()] + (whole.capitalize() if stem[:1].isupper() else whole) + text[found.end() :]


def _negated_word(words: list[str], number: int) -> str | None:
    """What stands in the place of a word where it is the one to negate."""
    word, following = words[number], words[number + 1 : number + 4]
    if word in BE_AND_MODALS or CONTRACTED.search(word) or SHORT_IS.match(word):
        return f"{word} not"
    subject = _subject(words, number)
    if word == "do" and subject in PLURAL:
        return "do not"
    if word in HAVE:
        auxiliary = any(is_participle(next_word) for next_word in following[:2])
        return f"{word} not" if auxiliary else HAVE[word] if following[:1] != ["to"] or word != "have" else None
    if word in IRREGULAR and subject not in ("a", "an", "the", "has", "have", "been", "to", "and"):
        return f"did not {IRREGULAR[word]}"
    if _is_regular_past(words, number, subject):
        return f"did not {base_of_past(word)}"
    if subject in SINGULAR and re.fullmatch(r"[a-z]+[^s]s", word) and word not in FUNCTION_WORDS:
        return f"does not {base_of_third_person(word)}"
    if subject in PLURAL and number and word.isalpha() and not word.endswith(("ly", "ing", "ed")):
        return None if word in FUNCTION_WORDS or word in ADVERBS else f"do not {word}"
    return None


def _subject(words: list[str], number: int) -> str:
    """The word before, adverbs left out; empty at the beginning."""
    place = number - 1
    while place > 0 and (words[place] in ADVERBS or words[place].endswith("ly")):
        place -= 1
    return words[place] if place >= 0 else ""


def _is_regular_past(words: list[str], number: int, subject: str) -> bool:
    word, following = words[number], words[number + 1 : number + 2]
    if len(word) < 5 or not word.endswith("ed") or word.endswith("eed") or following == ["by"]:
        return False
    return bool(subject) and subject not in BEFORE_PARTICIPLES


def is_participle(word: str) -> bool:
    return word in PARTICIPLES or (len(word) > 4 and word.endswith("ed"))


def base_of_past(word: str) -> str:
    """walked, released, stopped, tried → walk, release, stop, try; of a word that no rule fits, a near miss."""
    if word.endswith("ied"):
        return f"{word[:-3]}y"
    stem = word.removesuffix("ed")
    if DOUBLED.search(stem) and not DOUBLED_IN_BASE.search(stem):
        return stem[:-1]
    return f"{stem}e" if SILENT_E.search(stem) else stem


def base_of_third_person(word: str) -> str:
    """says, tries, watches, includes → say, try, watch, include."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if re.search(r"(s|sh|ch|x|zz|o)es$", word) else word[:-1]
