"""Model, average, optimizers and data of one run, step by step."""

from __future__ import annotations

import copy
import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from compile.transformer import Transformer, TransformerConfig
from experiments.devices import BF16, autocast, choose_device
from experiments.training.loss import counted, weighted_cross_entropy
from experiments.training.optimizers import Average, InFloat32, make_optimizers, set_rates
from experiments.training.packing import Batch, Packing
from experiments.training.recipe import Recipe
from experiments.training.state import (
    DamagedState,
    NotFinite,
    RunState,
    TrainingError,
    load_optimizer,
    optimizer_tensors,
)

MODEL, AVERAGE = "model", "average"


def make_accelerator(device: str) -> Accelerator:
    """Without accelerate's own mixed precision, which is one for the whole process: two may be measured here."""
    return Accelerator(cpu=choose_device(device) == "cpu", mixed_precision="no")


class Trainer:
    """Model, average, optimizers and data of one run, and the step number that they have reached."""

    def __init__(
        self, recipe: Recipe, accelerator: Accelerator, precision: str = "float32", fresh: bool = False
    ) -> None:
        """With `fresh` weights, whatever the recipe starts with."""
        self.recipe, self.accelerator, self.precision = recipe, accelerator, precision
        share = rows_of_a_process(recipe, accelerator.num_processes)
        practice = recipe.make_practice()
        self.packing = Packing(
            practice, recipe.lengths, share, recipe.context, recipe.seed, recipe.length_decay, recipe.whole_rows
        )
        soft = practice.soft_targets
        self.soft_targets = None if soft is None else torch.from_numpy(soft).float().to(accelerator.device)
        self.model = (recipe.changed(start="") if fresh else recipe).make_model().to(accelerator.device)
        self.optimizers = make_optimizers(self.model, recipe)
        self.average = Average(self.model.parameters(), recipe.ema)
        # aot_eager needs no C compiler and speeds nothing up: the road of `compiled`, where there is no GPU
        backend = "inductor" if accelerator.device.type == "cuda" else "aot_eager"
        running = torch.compile(self.model, backend=backend) if recipe.compiled else self.model
        self.running = accelerator.prepare_model(running)
        self.steps_done = 0
        self.seconds = 0.0
        self.curve: list[dict[str, Any]] = []
        self.probes: list[dict[str, Any]] = []

    def batch(self) -> Batch:
        return self.packing.batch(self.steps_done, self.accelerator.process_index)

    def step(self) -> tuple[float, float]:
        """One update; the loss before it, and the norm of the gradient."""
        scale_slopes(self.model, self.recipe.slope_scale.at(self.steps_done))
        set_rates(self.optimizers, self.recipe, self.steps_done)
        self.model.draw_places((1_000_003 * self.recipe.seed + self.steps_done + 1) % 2**32)
        value = self.backward()
        size = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip).item()
        if not (math.isfinite(value) and math.isfinite(size)):
            raise NotFinite(value, size, self.steps_done + 1)
        with nullcontext() if self.precision == BF16 else InFloat32():
            for optimizer in self.optimizers.values():
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        self.average.update(self.steps_done)
        self.steps_done += 1
        return value, size

    def backward(self) -> float:
        """The loss on this step's rows, whose gradient is left in the weights; part after part, or all at once."""
        inputs, labels, weights = (torch.from_numpy(x).to(self.accelerator.device) for x in self.batch())
        columns = (inputs, labels, weights.float())
        parts = list(zip(*(column.chunk(self.recipe.accumulate) for column in columns), strict=True))
        value = 0.0
        for part in parts:
            waiting = self.accelerator.no_sync(self.running) if part is not parts[-1] else nullcontext()
            with waiting:  # processes exchange their gradients once a step
                with autocast(self.accelerator.device.type, self.precision):
                    loss = self.loss(*part) * (counted(part[2]) / counted(columns[2]))
                self.accelerator.backward(loss)
            value += loss.item()
        return value

    def loss(self, inputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Only the places that count go through the last layer, except where a compiler wants fixed shapes."""
        targets = labels if self.soft_targets is None else self.soft_targets[labels]
        if self.recipe.compiled:
            return weighted_cross_entropy(self.running(inputs), targets, weights)
        wanted = weights > 0
        return weighted_cross_entropy(self.running(inputs, wanted), targets[wanted], weights[wanted])

    # ---- weights and state

    @property
    def slope_scale(self) -> float:
        """Of the last step."""
        return self.recipe.slope_scale.at(max(0, self.steps_done - 1))

    def averaged(self) -> Transformer:
        """A model with the weights that are to be used."""
        model = copy.deepcopy(self.model).eval()
        model.draw_places(seed=0)  # those of a model that is loaded
        scale_slopes(model, self.slope_scale)
        model.config = with_slopes(model.config, self.slope_scale)
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), self.average.values, strict=True):
                parameter.copy_(value)
        return model

    def tensors(self) -> dict[str, Tensor]:
        names = [name for name, _ in self.model.named_parameters()]
        found: dict[str, Tensor] = {f"{MODEL}.{name}": p for name, p in self.model.named_parameters()}
        found |= {f"{AVERAGE}.{name}": value for name, value in zip(names, self.average.values, strict=True)}
        for name, optimizer in self.optimizers.items():
            found |= optimizer_tensors(name, optimizer)
        return found

    def notes(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.to_dict(),
            "precision": self.precision,
            "steps_done": self.steps_done,
            "seconds": self.seconds,
            "curve": self.curve,
            "probes": self.probes,
            "processes": self.accelerator.num_processes,
        }

    @torch.no_grad()
    def load(self, state: RunState) -> None:
        folder, tensors, notes = state.path.parent, state.tensors, state.notes
        theirs = state.recipe
        processes = notes["processes"]
        if processes != self.accelerator.num_processes:  # each draws its own rows
            raise TrainingError(
                f"{folder} holds a run of {processes} processes, and here are "
                f"{self.accelerator.num_processes}; resume with as many"
            )
        if self.recipe.precision not in ("auto", self.precision):
            raise TrainingError(
                f"{folder} holds a run in {self.precision}, in which it goes on; leave out --precision "
                f"{self.recipe.precision}, or name another folder"
            )
        differing = self.recipe.changed(precision=theirs.precision).differing(theirs, notes["steps_done"])
        if differing:
            raise TrainingError(
                f"{folder} holds a run of another recipe (different: {', '.join(differing)}); resume "
                "with the same options, or name another folder"
            )
        mine = self.tensors()
        for name in mine.keys() | tensors.keys():  # before the first step, optimizers have nothing to keep
            if name in mine and (name not in tensors or tensors[name].shape != mine[name].shape):
                raise DamagedState(state.path, f"{name} is missing or of another shape")
            if not tensors[name].isfinite().all():
                raise DamagedState(state.path, f"{name} has values that are no numbers")
        for (name, parameter), value in zip(self.model.named_parameters(), self.average.values, strict=True):
            parameter.copy_(tensors[f"{MODEL}.{name}"])
            value.copy_(tensors[f"{AVERAGE}.{name}"])
        for name, optimizer in self.optimizers.items():
            load_optimizer(name, optimizer, tensors)
        self.steps_done, self.seconds = notes["steps_done"], notes["seconds"]
        scale_slopes(self.model, self.slope_scale)
        self.curve, self.probes = notes["curve"], notes["probes"]


def rows_of_a_process(recipe: Recipe, processes: int) -> int:
    if recipe.batch % (processes * recipe.accumulate):
        raise ValueError(
            f"a batch of {recipe.batch} rows cannot be shared by {processes} process(es), each in {recipe.accumulate} "
            "part(s); use a multiple"
        )
    return recipe.batch // processes


def with_slopes(config: TransformerConfig, scale: float) -> TransformerConfig:
    """Slopes that prefer what is near, scaled. Steep ones make it easy to find the latest of many; once it is found,
    gentle ones do, and reach further."""
    if scale == 1:
        return config
    return replace(config, slopes=[[s * scale if s > 0 else s for s in shape.slopes] for shape in config.shapes])


def scale_slopes(model: Transformer, scale: float) -> None:
    """In the model that is trained, whose configuration is that of scale 1."""
    for block, shape in zip(model.blocks, with_slopes(model.config, scale).shapes, strict=True):
        if model.config.slopes:
            block.attn.bias.get_buffer("slopes").copy_(torch.tensor(shape.slopes))
