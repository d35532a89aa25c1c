"""The catalogue of methods, spaces and tactics: their cards and their settings, from three rooms.

The rooms are imported when a function is called. The registry of the methods cannot answer for all three: spaces and
tactics stand in later rooms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from isotrope.answers import SettingDescription
from isotrope.errors import InputError

if TYPE_CHECKING:
    from isotrope.methods.frame.method import Card
    from isotrope.methods.frame.settings import Settings

LOOP = "the loop"


def all_cards() -> list[Card]:
    """The cards of the methods, then of the spaces, then of the tactics."""
    from isotrope.heads.head_settings import CARD as HEAD_CARD
    from isotrope.methods.frame.method_registry import registry
    from isotrope.spaces.space_registry import cards as space_cards
    from isotrope.training.tactics.tactic import tactics

    return [
        *(method.card for method in registry().values()),
        HEAD_CARD,
        *space_cards(),
        *(tactic.card for tactic in tactics().values()),
    ]


def usable_record_types() -> dict[str, tuple[str, ...]]:
    """By method, the record types that it takes with its default settings, in the order in which they are tried."""
    from isotrope.methods.frame.method_registry import registry

    return {name: method.record_types(method.Settings()) for name, method in registry().items()}


def describe_settings(name: str) -> list[SettingDescription]:
    """The settings that a method takes, its own first; it may change defaults of the loop and of auxiliary losses."""
    from isotrope.heads.head_settings import HEAD, HeadSettings
    from isotrope.methods.frame.method_registry import auxiliaries, find
    from isotrope.spaces.space_registry import registry as spaces
    from isotrope.training.loop_settings import LoopSettings
    from isotrope.training.tactics.tactic import tactics

    if name == HEAD:
        return _described(HeadSettings, name)
    if name in tactics():
        return _described(tactics()[name].Settings, name)
    if name in spaces():
        return _described(spaces()[name].Settings, name)
    method = find(name)
    added = [(one.card.name, one.Added) for one in auxiliaries().values() if one.Added is not None]
    others = [*added, *((other, tactic.Settings) for other, tactic in tactics().items())]
    return [
        *_described(method.Settings, name),
        *_described(LoopSettings, LOOP, method.defaults),
        *(setting for owner, settings in others for setting in _described(settings, owner, method.defaults)),
    ]


def own_settings() -> dict[str, Callable[[], list[SettingDescription]]]:
    """What describes the settings of a command that is no method, by its name."""
    return {"pretrain": describe_pretraining, "distil": describe_distillation}


def describe_pretraining() -> list[SettingDescription]:
    """The settings that ``pretrain`` takes."""
    from isotrope.training.pretrain_settings import PretrainSettings

    return _described(PretrainSettings, "pretrain")


def describe_distillation() -> list[SettingDescription]:
    """The settings that ``distil`` takes."""
    from isotrope.training.static_student import StaticSettings

    return _described(StaticSettings, "static student")


def _described(
    settings: type[Settings], owner: str, defaults: Mapping[str, Any] | None = None
) -> list[SettingDescription]:
    from isotrope.methods.frame.settings import describe

    found = describe(settings, defaults)
    return [SettingDescription(one.name, one.default, one.range, one.meaning, owner) for one in found]


def check_trainable(name: str) -> None:
    """Refuse the names that ``methods`` lists and ``train`` cannot train; the methods' registry knows none of them."""
    from isotrope.spaces.space_registry import registry as spaces
    from isotrope.training.tactics.tactic import tactics

    if name in spaces():
        raise InputError(
            f"'{name}' is fitted, not trained: isotrope fit-space {name} MODEL TEXT --output DIR, or fit_space."
        )
    if name in tactics():
        setting = name.replace("-", "_")
        raise InputError(f"'{name}' changes the updates of another method: give {setting} to that one.")
