"""The classifier that a model keeps: vectors in, classes and their probabilities out.

    h_0 = v,   h_k = activation_k(W_k h_{k−1} + b_k)        s = h_K / temperature
    classes   p = softmax(s)        labels   p = sigmoid(s), each label on its own        score   s · deviation + mean

``classes_``, ``decision_function``, ``predict_proba``, ``predict`` and ``score`` keep scikit-learn's conventions: two
classes have one column of decisions, several labels a matrix of 0 and 1. The temperature is fitted on rows that the
layers were not learned from; without such rows it is 1, and ``facts`` say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file

from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import read_facts, read_json, read_tensors
from isotrope.errors import InputError
from isotrope.files import write_json

FOLDER = "classifier"  # inside the model's folder; readers of sentence-transformers pass it over
FILE = "classifier.json"
TASKS = ("classes", "labels", "score")
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
}
THRESHOLD = 0.5  # a label is given to a text from this probability on
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """W [outputs, inputs], b [outputs], and the name of what follows."""

    weight: Floats
    bias: Floats
    activation: str = "none"

    def __call__(self, vectors: Floats) -> Floats:
        return np.asarray(ACTIVATIONS[self.activation](vectors @ self.weight.T + self.bias))


@dataclass(frozen=True)
class Classifier:
    """``names`` are the classes in alphabetical order; ``inputs`` is 2 where one vector stands for a pair of texts.

    ``mean`` and ``deviation`` belong to the task "score". ``facts``: what it was learned from, and how well it does.
    """

    layers: tuple[Layer, ...]
    names: tuple[str, ...]
    task: str = "classes"
    inputs: int = 1
    temperature: float = 1.0
    mean: float = 0.0
    deviation: float = 1.0
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def classes_(self) -> npt.NDArray[np.str_]:
        return np.array(self.names, dtype=np.str_)

    @property
    def n_features_in_(self) -> int:
        return int(self.layers[0].weight.shape[1])

    def logits(self, vectors: npt.ArrayLike) -> Floats:
        """[rows, outputs], before the temperature."""
        found = np.asarray(vectors, dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != self.n_features_in_:
            raise InputError(
                f"This classifier takes vectors of {self.n_features_in_} dimensions, one a row; an array of shape "
                f"{found.shape} was given."
            )
        for layer in self.layers:
            found = layer(found)
        return found

    def decision_function(self, vectors: npt.ArrayLike) -> Floats:
        """[rows, classes]; of two classes [rows], above 0 for the second one."""
        found = self.logits(vectors) / self.temperature
        if self.task == "score":
            return found[:, 0]
        return found[:, 1] - found[:, 0] if self.task == "classes" and len(self.names) == 2 else found

    def predict_proba(self, vectors: npt.ArrayLike) -> Floats:
        """[rows, classes]: each row adds up to 1, unless a text may have several labels."""
        if self.task == "score":
            raise InputError("This model predicts a score, which has no probability; call predict.")
        return probabilities(self.logits(vectors) / self.temperature, self.task)

    def predict(self, vectors: npt.ArrayLike) -> npt.NDArray[Any]:
        """[rows]: the class of each; [rows, labels]: 1 where a label is given; or [rows]: scores."""
        if self.task == "score":
            return self.decision_function(vectors) * self.deviation + self.mean
        found = self.predict_proba(vectors)
        if self.task == "labels":
            return (found >= THRESHOLD).astype(np.int64)
        return self.classes_[found.argmax(axis=1)]

    def score(self, vectors: npt.ArrayLike, wanted: npt.ArrayLike) -> float:
        """The share of rows that are predicted right; of labels, those with all of them right."""
        same = self.predict(vectors) == np.asarray(wanted)
        return float((same.all(axis=1) if same.ndim > 1 else same).mean())

    def with_temperature(self, temperature: float, facts: Mapping[str, Any]) -> Classifier:
        return replace(self, temperature=temperature, facts={**self.facts, **facts})

    def write(self, place: Path) -> None:
        """classifier.json and model.safetensors."""
        place.mkdir(exist_ok=True)
        tensors = {}
        for number, layer in enumerate(self.layers):
            tensors[f"{number}.weight"] = torch.from_numpy(np.ascontiguousarray(layer.weight, dtype=np.float32))
            tensors[f"{number}.bias"] = torch.from_numpy(np.ascontiguousarray(layer.bias, dtype=np.float32))
        save_file(tensors, place / "model.safetensors")
        described = {
            "task": self.task,
            "classes": list(self.names),
            "inputs": self.inputs,
            "activations": [layer.activation for layer in self.layers],
            "temperature": self.temperature,
            "mean": self.mean,
            "deviation": self.deviation,
            "facts": dict(self.facts),
        }
        write_json(place / FILE, described)

    @classmethod
    def read(cls, place: Path, width: int) -> Classifier:
        """The classifier in a folder, for vectors of ``width`` dimensions; a damaged one is refused."""
        file = place / FILE
        stored = read_json(file) if not file.is_file() else read_facts(file)
        fields = Fields(file, stored)
        names, activations = stored.get("classes"), stored.get("activations")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise fields.refusal("classes", "a list of names")
        known = isinstance(activations, list) and all(
            isinstance(one, str) and one in ACTIVATIONS for one in activations
        )
        if not known or not activations:
            raise fields.refusal("activations", f"a list of {', '.join(ACTIVATIONS)}")
        if (task := fields.word("task")) not in TASKS:
            raise fields.refusal("task", f"one of {', '.join(TASKS)}")
        layers = _read_layers(place, activations)
        outputs = 1 if task == "score" else len(names)
        shapes = [layer.weight.shape for layer in layers]
        expected = [*(shape[0] for shape in shapes[:-1]), outputs]
        entering = [width, *expected[:-1]]
        if shapes != list(zip(expected, entering, strict=True)) or len(set(names)) != len(names):
            raise InputError(
                f"{place}: the classifier does not fit the model: its layers have the shapes {shapes}, the model gives "
                f"{width} dimensions, and there are {len(set(names))} different classes; copy the folder again."
            )
        return cls(
            layers,
            tuple(names),
            task,
            fields.count("inputs", 1, 2),
            fields.number("temperature", 1e-6, 1e6),
            fields.number("mean", -1e30, 1e30, default=0.0),
            fields.number("deviation", 0.0, 1e30, default=1.0),
            told if isinstance(told := stored.get("facts"), dict) else {},
        )


def _read_layers(place: Path, activations: Sequence[str]) -> tuple[Layer, ...]:
    tensors = read_tensors(place)
    wanted = [f"{number}.{part}" for number in range(len(activations)) for part in ("weight", "bias")]
    arrays = {name: tensors[name].double().numpy() for name in wanted if name in tensors}
    wrong = next((name for name in wanted if name not in arrays or not np.isfinite(arrays[name]).all()), None)
    if wrong is None:
        ends = [(arrays[f"{n}.weight"], arrays[f"{n}.bias"]) for n in range(len(activations))]
        if all(w.ndim == 2 and b.shape == w.shape[:1] for w, b in ends):
            return tuple(Layer(w, b, name) for (w, b), name in zip(ends, activations, strict=True))
    raise InputError(f"{place}: the weights of the classifier are missing or damaged; copy the folder again.")


def probabilities(scores: Floats, task: str) -> Floats:
    """Softmax over the classes, or a sigmoid for each label."""
    if task == "labels":
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)))  # the logistic function, without overflow
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def layer_of(linear: Any, activation: str = "none") -> Layer:
    """A trained ``nn.Linear`` as a layer."""
    weight = linear.weight.detach().cpu().double().numpy()
    bias = np.zeros(len(weight)) if linear.bias is None else linear.bias.detach().cpu().double().numpy()
    return Layer(weight, bias, activation)
