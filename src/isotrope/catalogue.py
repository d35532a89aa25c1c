"""The catalogue of methods, spaces and tactics: their cards and their settings, from three rooms.

The rooms are imported when a function is called. The registry of the methods cannot answer for all three: spaces and
tactics stand in later rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.answers import SettingDescription
from isotrope.errors import InputError

if TYPE_CHECKING:
    from isotrope.methods.frame.method import Card


def all_cards() -> list[Card]:
    """The cards of the methods, then of the spaces, then of the tactics."""
    from isotrope.methods.frame.method_registry import registry
    from isotrope.spaces.space_registry import cards as space_cards

    return [*(method.card() for method in registry().values()), *space_cards(), *tactic_cards()]


def describe_settings(name: str) -> list[SettingDescription]:
    """The settings that a method takes, its own first; a method may change defaults of the loop."""
    from dataclasses import fields

    from isotrope.methods.frame.method_registry import find
    from isotrope.spaces.space_registry import registry as spaces
    from isotrope.training.settings import LoopSettings

    loop = fields(LoopSettings)
    if name in {card.name for card in tactic_cards()}:
        return [SettingDescription(one.name, one.default, "the loop") for one in loop if one.name.startswith("child_")]
    if name in spaces():
        return [SettingDescription(one.name, one.default, name) for one in fields(spaces()[name].Settings)]
    method = find(name)
    own = [SettingDescription(one.name, one.default, name) for one in fields(method.Settings)]
    suited = method.loop
    return [*own, *(SettingDescription(one.name, suited.get(one.name, one.default), "the loop") for one in loop)]


def describe_pretraining() -> list[SettingDescription]:
    """The settings that ``pretrain`` takes."""
    from dataclasses import fields

    from isotrope.training.pretrain_settings import PretrainSettings

    return [SettingDescription(one.name, one.default, "pretrain") for one in fields(PretrainSettings)]


def tactic_cards() -> list[Card]:
    """What changes the updates of any method."""
    from isotrope.training.tactics.child_tuning import CARD

    return [CARD]


def check_trainable(name: str) -> None:
    """Refuse the names that ``methods`` lists and ``train`` cannot train; the methods' registry knows none of them."""
    from isotrope.spaces.space_registry import registry as spaces

    if name in spaces():
        raise InputError(
            f"'{name}' is fitted, not trained: isotrope fit-space {name} MODEL TEXT --output DIR, or fit_space."
        )
    if name in {card.name for card in tactic_cards()}:
        setting = name.replace("-", "_")
        raise InputError(f"'{name}' changes the updates of another method: give {setting} to that one.")
