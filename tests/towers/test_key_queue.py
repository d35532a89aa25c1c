"""A queue begins as unit noise, takes each batch in place of its oldest keys, and travels with checkpoints."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from isotrope.objectives.vectors import unit
from isotrope.towers.keeping import Frozen, Momentum, Tower, Trained
from isotrope.towers.key_queue import KeyQueue


def batch(size: int, seed: int, width: int = 4) -> Tensor:
    return 3 * torch.randn(size, width, generator=torch.Generator().manual_seed(seed))


def test_it_begins_as_one_draw_of_unit_noise() -> None:
    torch.manual_seed(3)
    expected = unit(torch.randn(10, 4))
    torch.manual_seed(3)
    queue = KeyQueue(10, 4)
    assert torch.equal(queue(), expected)
    assert torch.equal(torch.get_rng_state(), state_after_one_draw())
    assert len(queue) == 10
    assert not list(queue.parameters())


def state_after_one_draw() -> Tensor:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        torch.randn(10, 4)
        return torch.get_rng_state()


@pytest.mark.parametrize("sizes", [(3, 3, 3), (5,), (4, 1, 7, 2, 6)])
def test_the_oldest_keys_make_room_as_in_a_plain_list(sizes: tuple[int, ...]) -> None:
    queue = KeyQueue(8, 4)
    newest_last = list(queue().clone())
    for number, size in enumerate(sizes):
        keys = batch(size, number)
        queue.after_update({"keys": keys, "queries": batch(size, 99)})
        newest_last = [*newest_last, *unit(keys)][-8:]
    start = int(queue.place)
    assert torch.equal(torch.cat([queue()[start:], queue()[:start]]), torch.stack(newest_last))
    assert start == sum(sizes) % 8
    torch.testing.assert_close(queue().norm(dim=1), torch.ones(8))


def test_half_precision_and_gradients_do_not_reach_the_keys() -> None:
    queue = KeyQueue(6, 4)
    keys = batch(2, 0).bfloat16().requires_grad_()
    queue.after_update({"keys": keys})
    assert queue().dtype == torch.float32
    assert not queue().requires_grad
    torch.testing.assert_close(queue()[:2].norm(dim=1), torch.ones(2))


def test_a_checkpoint_holds_the_keys_and_the_place() -> None:
    queue, other = KeyQueue(6, 4), KeyQueue(6, 4)
    queue.after_update({"keys": batch(4, 0)})
    other.load_state_dict(queue.state_dict())
    for each in (queue, other):
        each.after_update({"keys": batch(4, 1)})
    assert torch.equal(queue(), other())
    assert torch.equal(queue.place, other.place)


def test_every_tower_takes_an_update_and_only_some_change() -> None:
    online = nn.Linear(4, 4)
    towers: dict[str, Tower] = {
        "trained": Trained(nn.Linear(4, 4)),
        "frozen": Frozen.copy_of(online),
        "momentum": Momentum(online, 0.5),
        "queue": KeyQueue(6, 4),
    }
    with torch.no_grad():
        online.weight.add_(1)
    before = {name: [value.clone() for value in tower.state_dict().values()] for name, tower in towers.items()}
    for tower in towers.values():
        tower.after_update({"keys": batch(2, 0)})
    changed = {
        name
        for name, tower in towers.items()
        if any(not torch.equal(a, b) for a, b in zip(before[name], tower.state_dict().values(), strict=True))
    }
    assert changed == {"momentum", "queue"}
    torch.testing.assert_close(towers["momentum"].module.weight, online.weight - 0.5)
