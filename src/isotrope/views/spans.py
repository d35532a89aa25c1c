"""DeCLUTR's spans: anchors of a document, and positives next to, across or inside them (Giorgi et al. 2021).

Only lengths are needed, so spans can be drawn before any token is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError

Span = tuple[int, int]  # start, end + 1
PLACES = ("any", "adjacent", "subsumed")


@dataclass(frozen=True)
class SpanSettings:
    """Lengths are ⌊Beta(a, b)·(longest − shortest) + shortest⌋: mean 352 for anchors and 192 for positives.

    ``place`` of a positive: "any" (next to, across or inside its anchor), "adjacent" (next to it), "subsumed" (inside
    it).
    """

    anchors: int = 2
    positives: int = 2  # for each anchor
    shortest: int = 32
    longest: int = 512
    anchor_shape: tuple[float, float] = (4.0, 2.0)
    positive_shape: tuple[float, float] = (2.0, 4.0)
    place: str = "any"

    def __post_init__(self) -> None:
        for name in ("anchors", "positives", "shortest"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; {getattr(self, name)} was given.")
        if self.longest < self.shortest:
            raise InputError(f"longest must be at least shortest, {self.shortest}; {self.longest} was given.")
        for name in ("anchor_shape", "positive_shape"):
            if len(getattr(self, name)) != 2 or not all(0 < number < float("inf") for number in getattr(self, name)):
                raise InputError(
                    f"{name} is the two numbers of a beta distribution, each above 0; {getattr(self, name)} was given."
                )
        if self.place not in PLACES:
            raise InputError(f"place is one of {', '.join(PLACES)}; '{self.place}' was given.")

    @property
    def whole(self) -> int:
        """Tokens of a document in which all spans have room."""
        return 2 * self.anchors * self.longest

    def bounds(self, tokens: int) -> tuple[int, int]:
        """Shortest and longest span of a document.

        A short one has shorter spans, not fewer: each gives a batch as many rows.
        """
        longest = min(self.longest, max(tokens // (2 * self.anchors), 1))
        return min(self.shortest, longest), longest


def count_short(tokens: npt.ArrayLike, settings: SpanSettings) -> int:
    """How many documents, given the tokens of each, are too short for spans of the wanted lengths."""
    return int((np.asarray(tokens) < settings.whole).sum())


def sample_anchors(tokens: int, settings: SpanSettings, rng: np.random.Generator) -> list[Span]:
    """Anchors in the order of the text, with room between them, so that no positive reaches into another anchor.

    Between two there is room for a longest span. A document with fewer than two tokens for each anchor has no such
    room, and with fewer than one its anchors coincide.
    """
    _check_tokens(tokens)
    shortest, longest = settings.bounds(tokens)
    shares = rng.beta(*settings.anchor_shape, size=settings.anchors)
    lengths = (shares * (longest - shortest) + shortest).astype(np.int64)
    gap = longest if tokens >= 2 * settings.anchors else 0
    taken = lengths.cumsum() - lengths + gap * np.arange(settings.anchors)  # before each anchor, with no room to spare
    spare = max(tokens - int(taken[-1] + lengths[-1]), 0)
    starts = np.minimum(taken + np.sort(rng.integers(spare + 1, size=settings.anchors)), tokens - lengths)
    return list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))


def sample_positives(tokens: int, anchor: Span, settings: SpanSettings, rng: np.random.Generator) -> list[Span]:
    """Positives of one anchor; they may meet each other."""
    _check_tokens(tokens)
    start, end = anchor
    if not 0 <= start < end <= tokens:
        raise InputError(f"The anchor {anchor} does not lie within {tokens} tokens.")
    shortest, longest = settings.bounds(tokens)
    room = {"any": longest, "adjacent": max(start, tokens - end), "subsumed": end - start}[settings.place]
    if room == 0:  # the anchor is the whole document
        return [anchor] * settings.positives
    longest = min(longest, room)
    shortest = min(shortest, longest)
    found = []
    for share in rng.beta(*settings.positive_shape, size=settings.positives).tolist():
        length = int(share * (longest - shortest) + shortest)
        if settings.place == "adjacent":
            sides = [side for side in (start - length, end) if 0 <= side <= tokens - length]
            first = sides[rng.integers(len(sides))]
        else:
            inside = settings.place == "subsumed"
            low, high = (start, end - length) if inside else (max(0, start - length), min(end, tokens - length))
            first = int(rng.integers(low, high + 1))
        found.append((first, first + length))
    return found


def _check_tokens(tokens: int) -> None:
    if tokens < 1:
        raise InputError("A document without tokens has no spans.")
