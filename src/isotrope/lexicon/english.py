"""English: its words, the words that are never replaced, its inflection."""

from __future__ import annotations

import re

from isotrope.lexicon.inflection import EnglishInflection
from isotrope.lexicon.language import Language
from isotrope.lexicon.wordnet import NOUN, VERB

WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
FUNCTION_WORDS = frozenset(
    """a about above across after again against all along although am among an and another any anybody anyone anything
    are around as at away be because been before behind being below beneath beside besides between beyond both but by
    can cannot could did do does doing don done down during each either else enough even ever every everybody everyone
    everything except few for from had has have having he her here hers herself him himself his how however i if in
    inside into is it its itself just least less lest like ll many may me might mine more most much must my myself near
    neither never no nobody none nor not nothing now of off on once one ones only onto or other others ought our ours
    ourselves out outside over per perhaps quite rather re same shall she should since so some somebody someone
    something such than that the their theirs them themselves then there therefore these they this those though through
    throughout thus till to together too toward towards two under unless until up upon us ve very was we were what
    whatever when whenever where whereas wherever whether which whichever while who whoever whom whose why will with
    within without would yes yet you your yours yourself yourselves""".split()
)
ENGLISH = Language(
    name="english",
    word=WORD,
    function_words=FUNCTION_WORDS,
    inflected=frozenset({NOUN, VERB}),  # the rule for "bigger" would make "sixer" too
    inflection=EnglishInflection,
)
