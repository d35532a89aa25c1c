"""Guess the language of a text, by its script and by the most frequent words of nine languages.

It is a guess: a script that one language is mostly written in stands for that language, and among languages in Latin
letters the one with the most function words in the text wins. Use it to notice that a file is not what one thinks. It
is no classifier: languages that it does not know are taken for a neighbour or called unknown, as are texts without a
function word, such as headings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

UNKNOWN = "unknown"
FUNCTION_WORDS = {  # as ``compared_words`` gives them, without accents
    "English": "the of and to in is that it was for on with as are this be at by from have not you his which a an he "
    "no what who how when where do does did can i my me your we will would there but yes",
    "German": "der die das und ist nicht ein eine den dem des mit von zu auf fur sich auch als wird wurde sie ich war",
    "French": "le la les des et est un une du dans que qui pour pas sur au avec ce il elle sont ne se par plus etait",
    "Spanish": "el la los las de y en que es un una por con para no del se su al lo como mas pero fue esta",
    "Italian": "il di che la e un una per non con del della sono i gli le da nel si al alla anche piu come era",
    "Portuguese": "o a os as de e que do da em um uma nao para com por no na se mais dos ao como foi sao",
    "Dutch": "de het een en van is dat niet op te zijn voor met die er aan ook als bij maar om heeft wordt werd ik",
    "Swedish": "och att det som en ett ar pa av for med den till inte om han har de var jag kan ska fran men sig",
    "Polish": "i w na z sie nie do to jest ze o jak po co tak za od ale przez dla przy tym jego oraz byc",
}
SCRIPTS = (  # in this order: a Japanese text holds Chinese characters as well
    ("Japanese", "\u3040-\u30ff"),
    ("Korean", "\u1100-\u11ff\uac00-\ud7af"),
    ("Chinese", "\u3400-\u9fff"),
    ("Cyrillic script", "\u0400-\u04ff"),
    ("Arabic script", "\u0600-\u06ff"),
    ("Greek", "\u0370-\u03ff"),
    ("Hebrew", "\u0590-\u05ff"),
    ("Devanagari script", "\u0900-\u097f"),
    ("Thai", "\u0e00-\u0e7f"),
)
_LANGUAGES: dict[str, list[str]] = {}
for _language, _words in FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES.setdefault(_word, []).append(_language)
_PATTERNS = [(name, re.compile(f"[{letters}]")) for name, letters in SCRIPTS]
_OTHER = re.compile(f"[{''.join(letters for _, letters in SCRIPTS)}]")
_LETTER = re.compile(r"[^\W\d_]")


def guess_language(text: str, words: Sequence[str]) -> str:
    """The likely language, or the script where that is all one can say; ``words`` are those of ``compared_words``.

    A script counts where it has a fifth of the letters: names and loan words of another one do not decide.
    """
    if not text.isascii() and _OTHER.search(text):
        letters = len(_LETTER.findall(text))
        for name, pattern in _PATTERNS:
            if 5 * len(pattern.findall(text)) > letters:
                return name
    votes: dict[str, float] = {}
    for word in words:
        languages = _LANGUAGES.get(word, ())
        for language in languages:  # a word of two languages says half as much for each
            votes[language] = votes.get(language, 0.0) + 1 / len(languages)
    return max(votes, key=votes.__getitem__) if votes else UNKNOWN
