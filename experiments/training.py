"""Training on `accelerate`: the loop, from a recipe to a folder with weights, curve and state.

    folder/model.safetensors + config.json   the (averaged) weights, for `evaluate` and `Transformer.from_pretrained`
    folder/training.json                     recipe, curve, probes, time, versions
    folder/state.safetensors                 everything that --resume needs
    folder/tensorboard/                      curves to look at while it runs
"""

from __future__ import annotations

import copy
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor

from compile.model import Transformer
from compile.saving import WEIGHTS, save_weights_and_config
from experiments.devices import choose_device
from experiments.optimizers import Average, make_optimizers, set_rates
from experiments.packing import IGNORED, Batch, Packing
from experiments.progress import Display, Reporter
from experiments.recipe import Recipe, with_steps
from experiments.run_state import (
    STATE,
    Interrupted,
    TrainingError,
    damaged,
    explained,
    load_optimizer,
    optimizer_tensors,
    read_state,
    write_json,
    write_state,
)
from experiments.tasks import Task

PROBE_EXAMPLES = 64
MODEL, AVERAGE = "model", "average"


def train(
    recipe: Recipe,
    folder: Path,
    *,
    device: str = "auto",
    resume: bool = False,
    save_minutes: float = 2.0,
    command: str = "",
    quiet: bool = False,
) -> dict[str, Any]:
    """Train into `folder` and return what training.json says."""
    accelerator = make_accelerator(device, recipe.precision)
    if accelerator.is_main_process:
        need_free_folder(folder, resume)
    accelerator.wait_for_everyone()
    trainer = Trainer(recipe, accelerator, fresh=resume)  # whose weights are loaded then
    if resume:
        trainer.load(folder)
    with Display(recipe, folder, show=accelerator.is_main_process and not quiet) as display:
        run = Run(trainer, folder, display, save_minutes * 60, command)
        return run.to_the_end()


def make_accelerator(device: str, precision: str = "no") -> Accelerator:
    return Accelerator(cpu=choose_device(device) == "cpu", mixed_precision=precision)


def need_free_folder(folder: Path, resume: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder for the run")
    if not resume and any((folder / name).exists() for name in (STATE, WEIGHTS)):
        how = "continue it with --resume" if (folder / STATE).exists() else "remove it"
        raise ValueError(f"{folder} already holds a run; {how}, or name another folder with -o")
    if not resume:
        folder.mkdir(parents=True, exist_ok=True)


class Trainer:
    """Model, average, optimizers and data of one run, and the step number that they have reached."""

    def __init__(self, recipe: Recipe, accelerator: Accelerator, fresh: bool = False) -> None:
        """With `fresh` weights, whatever the recipe starts with."""
        self.recipe, self.accelerator = recipe, accelerator
        share, left = divmod(recipe.batch, accelerator.num_processes)
        if left:
            raise ValueError(f"a batch of {recipe.batch} rows cannot be shared by {accelerator.num_processes} "
                             "processes; use a multiple")  # fmt: skip
        task = recipe.make_task()
        self.packing = Packing(task, recipe.lengths, share, recipe.context, recipe.seed,
                               recipe.horizon or recipe.steps, recipe.fall)  # fmt: skip
        self.bells = bells(task, recipe.blur).to(accelerator.device) if recipe.blur else None
        self.model = (recipe.changed(start="") if fresh else recipe).make_model().to(accelerator.device)
        self.optimizers = make_optimizers(self.model, recipe)
        self.average = Average(self.model.parameters(), recipe.ema)
        compiled = recipe.compiled and accelerator.device.type == "cuda"
        running = torch.compile(self.model) if compiled else self.model
        self.running = accelerator.prepare_model(running)
        self.steps_done = 0
        self.seconds = 0.0
        self.curve: list[dict[str, Any]] = []
        self.probes: list[dict[str, Any]] = []

    def batch(self) -> Batch:
        return self.packing.batch(self.steps_done, self.accelerator.process_index)

    def step(self) -> tuple[float, float]:
        """One update; the loss before it, and the norm of the gradient."""
        if self.steps_done == self.recipe.gentler[0]:
            self.soften_slopes()
        batch = self.batch()
        inputs, targets, computed = (torch.from_numpy(x).to(self.accelerator.device) for x in batch)
        set_rates(self.optimizers, self.recipe, self.steps_done)
        self.model.draw_places((1_000_003 * self.recipe.seed + self.steps_done + 1) % 2**32)
        with self.accelerator.autocast():
            loss = self.loss(inputs, targets, computed)
        self.accelerator.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        value, size = loss.item(), norm.item()
        if not (math.isfinite(value) and math.isfinite(size)):
            raise TrainingError(f"the loss is {value} and its gradient {size} in step {self.steps_done + 1}")
        for optimizer in self.optimizers.values():
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.average.update(self.steps_done)
        self.steps_done += 1
        return value, size

    def loss(self, inputs: Tensor, targets: Tensor, computed: Tensor) -> Tensor:
        """Only the places that count go through the last layer, except where a compiler wants fixed shapes."""
        weight = self.recipe.weight(self.steps_done)
        if self.recipe.compiled:
            return masked_loss(self.running(inputs), targets, self.bells, computed, weight)
        counted = targets != IGNORED
        return masked_loss(self.running(inputs, counted), targets[counted], self.bells, computed[counted], weight)

    def soften_slopes(self) -> None:
        """Slopes make it easy to find the latest of many; once it is found, gentle ones do, and reach further."""
        factor, config = self.recipe.gentler[1], self.model.config
        if factor == 1:
            return
        rows = [[s * factor if s > 0 else s for s in shape.slopes] for shape in config.shapes]
        self.model.config = replace(config, slopes=rows)
        for block, row in zip(self.model.blocks, rows, strict=True):
            block.attn.bias.slopes.copy_(torch.tensor(row))

    # ---- weights and state

    def averaged(self) -> Transformer:
        """A model with the weights that are to be used."""
        model = copy.deepcopy(self.model).eval()
        model.draw_places(seed=0)  # those of a model that is loaded
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
        return {"recipe": self.recipe.to_dict(), "steps_done": self.steps_done, "seconds": self.seconds,
                "curve": self.curve, "probes": self.probes, "processes": self.accelerator.num_processes}  # fmt: skip

    @torch.no_grad()
    def load(self, folder: Path) -> None:
        tensors, notes = read_state(folder)
        theirs = Recipe.from_dict(notes["recipe"])
        processes = notes.get("processes", self.accelerator.num_processes)
        if processes != self.accelerator.num_processes:  # each draws its own rows
            raise TrainingError(f"{folder} holds a run of {processes} processes, and here are "
                                f"{self.accelerator.num_processes}; resume with as many")  # fmt: skip
        if not self.recipe.continues(theirs, notes["steps_done"]):
            differing = [k for k, v in theirs.to_dict().items() if self.recipe.to_dict()[k] != v]
            differing = [k for k in differing if k not in ("steps", "warmup", "bends")] or differing  # these may differ
            raise TrainingError(f"{folder} holds a run of another recipe (different: {', '.join(differing)}); resume "
                                "with the same options, or name another folder")  # fmt: skip
        mine = self.tensors()
        for name in mine.keys() | tensors.keys():  # before the first step, optimizers have nothing to keep
            if name in mine and (name not in tensors or tensors[name].shape != mine[name].shape):
                raise damaged(folder / STATE, f"{name} is missing or of another shape")
            if not tensors[name].isfinite().all():
                raise damaged(folder / STATE, f"{name} has values that are no numbers")
        for (name, parameter), value in zip(self.model.named_parameters(), self.average.values, strict=True):
            parameter.copy_(tensors[f"{MODEL}.{name}"])
            value.copy_(tensors[f"{AVERAGE}.{name}"])
        for name, optimizer in self.optimizers.items():
            load_optimizer(name, optimizer, tensors)
        self.steps_done, self.seconds = notes["steps_done"], notes["seconds"]
        if self.steps_done > self.recipe.gentler[0]:
            self.soften_slopes()
        self.curve, self.probes = notes["curve"], notes["probes"]


def masked_loss(
    logits: Tensor, targets: Tensor, bells: Tensor | None = None, computed: Tensor | None = None, weight: float = 1.0
) -> Tensor:
    """Mean over the tokens that count; 0 where a small batch has none. With `bells`, of a `computed` number t the loss
    wants row t of them instead of t alone. What is not computed counts `weight` times."""
    scores, answers = logits.flatten(0, -2).float(), targets.flatten()
    total, shares = F.cross_entropy(scores, answers, ignore_index=IGNORED, reduction="none"), answers != IGNORED
    if bells is not None and computed is not None:
        near = computed.flatten() & shares
        total = total.masked_scatter(near, F.cross_entropy(scores[near], bells[answers[near]], reduction="none"))
    if weight != 1 and computed is not None:
        shares = shares * torch.where(computed.flatten(), 1.0, weight)
        total = total * shares
    return total.sum() / shares.sum().clamp(min=1)


def bells(task: Task, blur: float) -> Tensor:
    """(numbers, vocabulary): around each number, which are the first tokens, a bell of width `blur` (in tokens)."""
    order = torch.arange(len(task.numbers), dtype=torch.float32)
    shares = torch.softmax(-0.5 * ((order[:, None] - order) / blur) ** 2, dim=1)
    return F.pad(shares, (0, len(task.vocabulary) - len(order)))


class Run:
    """A trainer at work: it reports, probes, saves, and says why when it must end early."""

    def __init__(self, trainer: Trainer, folder: Path, report: Reporter, save_seconds: float, command: str) -> None:
        self.trainer, self.folder, self.report, self.command = trainer, folder, report, command
        self.save_seconds, self.saved = save_seconds, time.monotonic()
        self.saved_step = trainer.steps_done
        self.main = trainer.accelerator.is_main_process

    def to_the_end(self) -> dict[str, Any]:
        if self.trainer.steps_done == 0:
            self.save()
        with patiently() as interrupted:
            while self.trainer.steps_done < self.trainer.recipe.steps and not interrupted():
                self.guarded(self.one_step)
            self.save()
            if self.trainer.steps_done < self.trainer.recipe.steps:
                raise Interrupted(f"stopped after step {self.trainer.steps_done}, which is kept in {self.folder}; "
                                  "continue with --resume")  # fmt: skip
        self.trainer.accelerator.wait_for_everyone()
        return self.outcome()

    def guarded(self, work: Callable[[], None]) -> None:
        last = f"; the last good checkpoint is of step {self.saved_step} in {self.folder}"
        try:
            work()
        except TrainingError as error:
            if "checkpoint" in str(error):
                raise
            raise TrainingError(f"{error}{last}: begin anew with another --seed or with lower rates") from None
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise TrainingError(f"out of memory in step {self.trainer.steps_done + 1}{last}: "
                                "try a smaller --batch or --context, in another folder (-o)") from None  # fmt: skip

    def one_step(self) -> None:
        trainer, started = self.trainer, time.monotonic()
        loss, norm = trainer.step()
        trainer.seconds += time.monotonic() - started
        done, recipe = trainer.steps_done, trainer.recipe
        trainer.curve = thinned([*trainer.curve, {"step": done, "loss": round(loss, 5)}])
        self.report.step(done, loss, norm, trainer.seconds)
        if recipe.probes and (done % recipe.probe_every == 0 or done == recipe.steps):
            self.probe()
        if time.monotonic() - self.saved >= self.save_seconds:
            self.save()

    def probe(self) -> None:
        from experiments.evaluation import accuracy

        if not self.main:
            return
        trainer, recipe = self.trainer, self.trainer.recipe
        self.report.probing(recipe.probes)
        model, task = trainer.averaged(), recipe.make_task()
        found = {str(length): accuracy(model, task, length, PROBE_EXAMPLES, seed=recipe.seed + 1,
                                       context=recipe.context).accuracy for length in recipe.probes}  # fmt: skip
        trainer.probes.append({"step": trainer.steps_done, "accuracy": found})
        self.report.probe(trainer.steps_done, found)

    def save(self) -> None:
        """Only the first process writes. The others do not wait here: clocks differ, and they meet in the next step."""
        if self.main:
            with explained(self.folder, self.folder / f"{WEIGHTS}.partial"):
                save_weights_and_config(self.trainer.averaged(), self.folder)  # the Hub's save drops the old first
            write_json(self.folder / "training.json", self.outcome())
            write_state(self.folder, self.trainer.tensors(), self.trainer.notes())
        self.saved, self.saved_step = time.monotonic(), self.trainer.steps_done

    def outcome(self) -> dict[str, Any]:
        trainer, recipe = self.trainer, self.trainer.recipe
        tokens = trainer.steps_done * recipe.batch * recipe.context
        return {"command": self.command, **trainer.notes(), "tokens": tokens,
                "finished": trainer.steps_done == recipe.steps, "parameters": trainer.model.parameter_count(),
                "torch": torch.__version__, "threads": torch.get_num_threads()}  # fmt: skip


@contextmanager
def patiently() -> Iterator[Callable[[], bool]]:
    """Ctrl-C waits until a step is whole; the second one does not. Says whether there was one."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # where Python allows no handlers
        yield lambda: False
        return

    def note(number: int, frame: Any) -> None:
        received.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGINT, before)


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def thinned(curve: list[dict[str, Any]], most: int = 400) -> list[dict[str, Any]]:
    """At most so many points, evenly spaced, and the last; always the same points for the same steps."""
    last, every = curve[-1]["step"], 1
    while last > (most - 1) * every:
        every *= 2
    return [point for point in curve if (point["step"] - 1) % every == 0 or point["step"] == last]


def steps_in(recipe: Recipe, minutes: float, device: str = "auto", trial: int = 6) -> Recipe:
    """The recipe with as many steps as fit into `minutes` here, by timing a few on a model that is thrown away."""
    if not 0 < minutes < 1e6:
        raise ValueError(f"{minutes} minutes is not a time to train for; give a positive number")
    accelerator = make_accelerator(device, recipe.precision)
    trainer = Trainer(recipe, accelerator)
    trainer.step()
    started = time.monotonic()
    for _ in range(trial):
        trainer.step()
    each = accelerator.reduce(torch.tensor((time.monotonic() - started) / trial), "mean").item()  # same everywhere
    return with_steps(recipe, max(1, int(minutes * 60 / each)))
