"""English inflection by rule alone: regular words, by expectations that were written by hand."""

from __future__ import annotations

from typing import Any, cast

import pytest

from isotrope.lexicon.inflection import EnglishInflection
from isotrope.lexicon.wordnet import ADJECTIVE, NOUN, VERB

VERBS = """
stop stops stopping stopped | visit visits visiting visited | try tries trying tried | play plays playing played
| die dies dying died | agree agrees agreeing agreed | dye dyes dyeing dyed | fix fixes fixing fixed | wash
washes washing washed | plan plans planning planned | hope hopes hoping hoped | veto vetoes vetoing vetoed |
echo echoes echoing echoed | tie ties tying tied | free frees freeing freed | offer offers offering offered |
open opens opening opened | mix mixes mixing mixed | snow snows snowing snowed | add adds adding added | use
uses using used | woo woos wooing wooed | boo boos booing booed | radio radios radioing radioed | tattoo tattoos
tattooing tattooed | video videos videoing videoed | argue argues arguing argued | queue queues queuing queued |
hug hugs hugging hugged | beg begs begging begged | drag drags dragging dragged | step steps stepping stepped |
ship ships shipping shipped | clap claps clapping clapped | grab grabs grabbing grabbed | rob robs robbing
robbed | nod nods nodding nodded | fit fits fitting fitted | knit knits knitting knitted | pat pats patting
patted | wait waits waiting waited | need needs needing needed | look looks looking looked | rain rains raining
rained | clean cleans cleaning cleaned | help helps helping helped | start starts starting started | jump jumps
jumping jumped | bow bows bowing bowed | tax taxes taxing taxed | box boxes boxing boxed | obey obeys obeying
obeyed | enjoy enjoys enjoying enjoyed | copy copies copying copied | marry marries marrying married | apply
applies applying applied | deny denies denying denied | cry cries crying cried | change changes changing changed
| judge judges judging judged | dance dances dancing danced | close closes closing closed | love loves loving
loved | move moves moving moved | live lives living lived | save saves saving saved | pass passes passing passed
| miss misses missing missed | kiss kisses kissing kissed | push pushes pushing pushed | watch watches watching
watched | reach reaches reaching reached | touch touches touching touched | buzz buzzes buzzing buzzed | ski
skis skiing skied | taxi taxis taxiing taxied | remember remembers remembering remembered | listen listens
listening listened | happen happens happening happened | answer answers answering answered | gather gathers
gathering gathered | limit limits limiting limited | edit edits editing edited | develop develops developing
developed | follow follows following followed | borrow borrows borrowing borrowed | allow allows allowing
allowed | show shows showing showed | chew chews chewing chewed | view views viewing viewed | screw screws
screwing screwed | canoe canoes canoeing canoed | hoe hoes hoeing hoed | eye eyes eyeing eyed | vie vies vying
vied | belie belies belying belied | quote quotes quoting quoted | squat squats squatting squatted | quip quips
quipping quipped | whip whips whipping whipped | chat chats chatting chatted | trim trims trimming trimmed |
swap swaps swapping swapped | sob sobs sobbing sobbed | hum hums humming hummed | gun guns gunning gunned | pin
pins pinning pinned | scan scans scanning scanned | stir stirs stirring stirred | star stars starring starred |
mar mars marring marred | purr purrs purring purred | err errs erring erred | fill fills filling filled | call
calls calling called | roll rolls rolling rolled | sail sails sailing sailed | boil boils boiling boiled | peel
peels peeling peeled | cook cooks cooking cooked | walk walks walking walked | talk talks talking talked | act
acts acting acted | yell yells yelling yelled | yawn yawns yawning yawned | hire hires hiring hired | bore bores
boring bored | share shares sharing shared | suit suits suiting suited | quack quacks quacking quacked | quiet
quiets quieting quieted
"""
NOUNS = """
city cities | box boxes | cat cats | photo photos | piano pianos | bus buses | church churches | baby babies |
boy boys | roof roofs | radio radios | video videos | bush bushes | dish dishes | bath baths | day days | key
keys | toy toys | zoo zoos | studio studios | belief beliefs | chief chiefs | bridge bridges | house houses |
face faces | horse horses | tax taxes | buzz buzzes | class classes | gas gases | lens lenses | virus viruses |
kiss kisses | wish wishes | story stories | party parties | country countries | army armies | monkey monkeys |
donkey donkeys | valley valleys | guy guys | bench benches | inch inches | match matches | fax faxes | prize
prizes | size sizes | rose roses | page pages | judge judges | tree trees | bee bees | shoe shoes | toe toes |
pie pies | movie movies | taxi taxis | menu menus | gnu gnus | bikini bikinis
"""
ADJECTIVES = """
big bigger biggest | small smaller smallest | happy happier happiest | nice nicer nicest | dry drier driest |
hot hotter hottest | simple simpler simplest | narrow narrower narrowest | old older oldest | thin thinner
thinnest | gentle gentler gentlest | blue bluer bluest | free freer freest | new newer newest | slow slower
slowest | grey greyer greyest | fat fatter fattest | wet wetter wettest | sad sadder saddest | large larger
largest | wise wiser wisest | easy easier easiest | busy busier busiest | heavy heavier heaviest | early earlier
earliest | funny funnier funniest | pretty prettier prettiest | quick quicker quickest | cheap cheaper cheapest
| clean cleaner cleanest | deep deeper deepest | fair fairer fairest | young younger youngest | strong stronger
strongest | rich richer richest | poor poorer poorest | light lighter lightest | dark darker darkest | warm
warmer warmest | cold colder coldest | shallow shallower shallowest | humble humbler humblest | noble nobler
noblest | able abler ablest | subtle subtler subtlest | idle idler idlest | coy coyer coyest | gay gayer gayest
| gray grayer grayest | dim dimmer dimmest | slim slimmer slimmest | grim grimmer grimmest | flat flatter
flattest | true truer truest | pale paler palest | brave braver bravest | safe safer safest | polite None None |
modern None None | careful None None | tired None None | boring None None | beautiful None None | square squarer
squarest
"""


class NoExceptions:
    """A wordnet whose lists of exceptions are empty."""

    def exceptions(self, part: int) -> list[tuple[str, str]]:
        return []


@pytest.mark.parametrize(("part", "rows"), [(VERB, VERBS), (NOUN, NOUNS), (ADJECTIVE, ADJECTIVES)])
def test_regular_words_follow_the_rules(part: int, rows: str) -> None:
    """A row is a base form and its forms; of verbs the participle is the past."""
    inflection = EnglishInflection(cast(Any, NoExceptions()))
    expected = [row.split() for row in rows.split("|")]
    found = [list(map(str, inflection.forms(part, row[0]))) for row in expected]
    assert found == [[*row, row[-1]] if part == VERB else row for row in expected]
