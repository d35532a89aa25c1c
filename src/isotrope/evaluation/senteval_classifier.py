"""SentEval's classifier, many at once: softmax regression or a small network, Adam, stopped early on a dev part.

    min_θ  mean over a batch of CE(f(x), label) + λ/2 · ‖θ‖²        f(x) = W x + b,  or  W₂ σ(W₁ x + b₁) + b₂

As published (Conneau and Kiela 2018, the released code), quirks included, since they are part of its numbers:

- λ is the weight decay of Adam and holds the biases too; the loss is the mean over the batch (what current PyTorch
  makes of the released code; before 0.4.1 it was the sum, and λ meant less).
- A round is ``epoch_size`` passes. The rounds that do not improve the dev accuracy are counted in all, not in a row;
  the (tenacity + 1)-th ends the training, and the weights of the best round stay.
- Every classifier starts from the same random seed: the same first weights, the same orders of the rows.

The classifiers of a search for λ differ in their rows and in λ alone. So they are stacked, and a step of all of them is
one batched product. Each still sees its own batches in its own order: the result is that of a plain loop, up to the
rounding of sums. Where speed matters more than the name, ``logistic.py`` solves the same problem to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

Rows = npt.NDArray[np.int64]
RATE, DECAYS, EPSILON = 1e-3, (0.9, 0.999), 1e-8  # Adam of PyTorch
AT_ONCE = {"cpu": 2**20, "cuda": 2**26}  # numbers in a batch of all stacked classifiers


@dataclass(frozen=True)
class Training:
    """SentEval's settings for numbers that are compared; ``hidden`` 0 is softmax regression."""

    hidden: int = 0
    batch: int = 64
    tenacity: int = 5
    epoch_size: int = 4
    max_epoch: int = 200
    seed: int = 1111


@dataclass(frozen=True)
class Problem:
    """The rows to learn from and to stop by, λ, and the source of the orders of the rows."""

    learn: Rows
    dev: Rows
    penalty: float
    orders: np.random.RandomState


@dataclass(frozen=True)
class Trained:
    """``layers``: [in + 1, out], the bias in the last line; ``right``: dev rows that were right in the best round."""

    layers: list[Tensor]
    right: int
    size: int

    @property
    def accuracy(self) -> float:
        """On the dev part that it was stopped by: optimistic."""
        return self.right / self.size

    def classes(self, features: Tensor) -> Tensor:
        return _outputs([layer[None] for layer in self.layers], with_one(features)[None])[-1][0].argmax(dim=-1)


def train_many(
    features: Tensor, labels: Tensor, problems: Sequence[Problem], training: Training, classes: int
) -> list[Trained]:
    """One classifier a problem, in the order of the problems; ``features`` [rows, dimensions] are those of all."""
    from isotrope.evaluation.same_batches import SameBatches, have_same_batches

    rows = with_one(features)
    limit = AT_ONCE.get(features.device.type, AT_ONCE["cuda"])
    at_once = max(1, limit // (training.batch * rows.shape[1]))
    found: dict[int, Trained] = {}
    steps = [-(-len(problem.learn) // training.batch) for problem in problems]
    for alike in sorted(set(steps)):  # a stack takes its steps together
        numbers = [number for number, count in enumerate(steps) if count == alike]
        for start in range(0, len(numbers), at_once):
            some = numbers[start : start + at_once]
            chosen = [problems[number] for number in some]
            form = SameBatches if not training.hidden and have_same_batches(chosen) else Stack
            stack = form(rows, labels, chosen, training, classes)
            found.update(zip(some, stack.train(), strict=True))
    return [found[number] for number in range(len(problems))]


class Stack:
    """Classifiers that learn side by side; those that have stopped leave the stack."""

    def __init__(
        self, rows: Tensor, labels: Tensor, problems: Sequence[Problem], training: Training, classes: int
    ) -> None:
        self.rows, self.labels, self.problems, self.training = rows, labels, list(problems), training
        first = first_layers(rows.shape[1] - 1, classes, training)
        self.layers = [layer.to(rows).repeat(len(problems), 1, 1) for layer in first]
        self.moments = [(torch.zeros_like(layer), torch.zeros_like(layer)) for layer in self.layers]
        self.best = [Trained([], -1, len(problem.dev)) for problem in problems]
        self.idle = [0] * len(problems)
        self.taken = 0
        self._take(list(range(len(problems))))

    def train(self) -> list[Trained]:
        passes = 0
        while self.active and passes <= self.training.max_epoch:
            for _ in range(self.training.epoch_size):
                self.epoch()
            passes += self.training.epoch_size
            self._compare()
        return self.best

    def layers_of(self, line: int) -> list[Tensor]:
        """Those of one classifier, each [in + 1, out]."""
        return [layer[line] for layer in self.layers]

    def lines(self, stack: Tensor, chosen: list[int]) -> Tensor:
        """Some of the classifiers of a stack of layers or moments."""
        return stack[chosen]

    def _take(self, active: list[int]) -> None:
        """``active``: the problem of each line of the stack."""
        self.active = active
        self.learn = [torch.from_numpy(self.problems[number].learn).to(self.rows.device) for number in active]
        self.penalty = self.rows.new_tensor([self.problems[number].penalty for number in active])[:, None, None]

    def epoch(self) -> None:
        """Every row of every problem once. The last batch is filled up with rows that do not count."""
        longest, batch = max(map(len, self.learn)), self.training.batch
        orders = [
            learn[torch.from_numpy(self.problems[number].orders.permutation(len(learn))).to(learn.device)]
            for number, learn in zip(self.active, self.learn, strict=True)
        ]
        order = torch.stack([pad(each, (0, longest - len(each)), value=-1) for each in orders])
        for start in range(0, longest, batch):
            self._step(order[:, start : start + batch])

    def _step(self, chosen: Tensor) -> None:
        counts = (chosen >= 0).to(self.rows)
        chosen = chosen.clamp(min=0)
        inputs = self.rows[chosen]
        outputs = _outputs(self.layers, inputs)
        slope = outputs[-1].softmax(dim=-1)
        slope.scatter_add_(2, self.labels[chosen][..., None], torch.full_like(slope[..., :1], -1))
        slope *= (counts / counts.sum(dim=1, keepdim=True))[..., None]
        gradients = []
        for place in reversed(range(len(self.layers))):
            below = inputs if place == 0 else with_one(outputs[place - 1])
            gradients.append(below.transpose(1, 2) @ slope)
            if place:
                hidden = outputs[place - 1]
                slope = (slope @ self.layers[place][:, :-1].transpose(1, 2)) * hidden * (1 - hidden)
        self._adam(gradients[::-1])

    def _adam(self, gradients: Sequence[Tensor]) -> None:
        self.taken += 1
        for layer, gradient, (mean, square) in zip(self.layers, gradients, self.moments, strict=True):
            adam(layer, gradient.addcmul_(layer, self.penalty), mean, square, self.taken)

    def _compare(self) -> None:
        """Keep what is best on dev, and drop what has not improved too often."""
        stay = []
        for line, (number, right) in enumerate(zip(self.active, self._right(), strict=True)):
            if right > self.best[number].right:
                layers = [layer.clone() for layer in self.layers_of(line)]
                self.best[number] = Trained(layers, right, self.best[number].size)
            else:
                self.idle[number] += 1
            if self.idle[number] <= self.training.tenacity:
                stay.append(line)
        if len(stay) < len(self.active):
            self.layers = [self.lines(layer, stay) for layer in self.layers]
            self.moments = [(self.lines(mean, stay), self.lines(square, stay)) for mean, square in self.moments]
            self._take([self.active[line] for line in stay])

    def _right(self) -> list[int]:
        found = []
        for line, number in enumerate(self.active):
            dev = torch.from_numpy(self.problems[number].dev).to(self.rows.device)
            scores = _outputs([layer[None] for layer in self.layers_of(line)], self.rows[dev][None])[-1][0]
            found.append((scores.argmax(dim=-1) == self.labels[dev]).sum())
        return [int(count) for count in torch.stack(found).tolist()]


def adam(layer: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, step: int) -> None:
    """One step of PyTorch's Adam, in place and in one pass over the numbers; ``step`` counts from 1."""
    from torch.optim.adam import adam as torch_adam

    taken = torch.full((), step - 1.0, device=layer.device)
    torch_adam(
        [layer],
        [gradient],
        [mean],
        [square],
        [],
        [taken],
        fused=True,
        amsgrad=False,
        beta1=DECAYS[0],
        beta2=DECAYS[1],
        lr=RATE,
        weight_decay=0.0,
        eps=EPSILON,
        maximize=False,
    )


def first_layers(width: int, classes: int, training: Training) -> list[Tensor]:
    """Those of ``nn.Linear``, drawn as SentEval draws them; the caller's random state stays as it was."""
    sizes = [(width, training.hidden), (training.hidden, classes)] if training.hidden else [(width, classes)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        layers = [nn.Linear(*size) for size in sizes]
    return [torch.cat([layer.weight.detach().T, layer.bias.detach()[None]]) for layer in layers]


def _outputs(layers: Sequence[Tensor], inputs: Tensor) -> list[Tensor]:
    """What each layer gives: sigmoids of the hidden one, scores of the last. ``inputs`` end in a one."""
    found = [inputs @ layers[0]]
    for layer in layers[1:]:
        found[-1] = found[-1].sigmoid()
        found.append(with_one(found[-1]) @ layer)
    return found


def with_one(rows: Tensor) -> Tensor:
    return pad(rows, (0, 1), value=1.0)
