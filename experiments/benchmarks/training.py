"""Training and evaluating here against the usual ways, on the same CPU and the same tokens.

Training: a Hugging Face GPT-NeoX of the same shape and batch. Identical weights must give the same loss (rotary
positions in both); then both are trained as they come, ours with Hard-ALiBi as in the paper.
Evaluation: batched with a cache, against one example at a time that reads its whole context again for every token.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from compile.transformer import Transformer, TransformerConfig
from compile.transformer.gpt_neox import copy_gpt_neox_weights, gpt_neox_config
from experiments.benchmarks.rows import Row, seconds
from experiments.evaluation.evaluate import answers
from experiments.training.loss import weighted_cross_entropy
from experiments.training.packing import Packing
from experiments.training.presets import preset
from experiments.training.timing import choose_precision
from experiments.training.trainer import Trainer, make_accelerator

LAYERS, WIDTH, HEADS, MASKED = 3, 128, 8, 4
ROUNDS = 7


def bench_train(rounds: int = ROUNDS) -> list[Row]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [*training_rows(rounds), *precision_rows(rounds), *data_rows(), *evaluation_rows()]
    finally:
        torch.set_num_threads(before)


def neox(vocabulary: int) -> Any:
    """A Hugging Face GPT-NeoX of the shape of preset tm-cpu."""
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=512,
        use_cache=False,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        initializer_range=0.1,  # far from uniform answers, so that equal losses mean something
    )
    torch.manual_seed(0)
    return GPTNeoXForCausalLM(config)


def ours_like(theirs: Any) -> Transformer:
    """Their very weights in our module."""
    model = Transformer(TransformerConfig(**gpt_neox_config(theirs.config)))
    copy_gpt_neox_weights(model, theirs.state_dict())
    return model


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    recipe = preset("tm-cpu")
    found = Packing(recipe.make_practice(), recipe.lengths, recipe.batch, recipe.context, 0).batch(0)
    return torch.from_numpy(found.inputs), torch.from_numpy(found.labels), torch.from_numpy(found.weights).float()


def training_rows(rounds: int) -> list[Row]:
    inputs, labels, weights = batch()
    theirs = neox(len(preset("tm-cpu").make_task().vocabulary))
    ours = ours_like(theirs)
    with torch.no_grad():
        both = theirs(inputs).logits, ours(inputs)
        losses = [weighted_cross_entropy(logits, labels, weights).item() for logits in both]
    config = {**ours.config.to_dict(), "encoding": "hard_alibi", "windows": [*range(1, MASKED + 1), *[None] * MASKED]}
    hard = Transformer(TransformerConfig.from_dict(config))
    runs = {
        "theirs": _step(theirs, inputs, labels, weights),
        "rope": _step(ours, inputs, labels, weights),
        "hard_alibi": _step(hard, inputs, labels, weights),
    }
    best = _interleaved(runs, rounds)
    tokens = inputs.numel()
    name = "Hugging Face GPT-NeoX"
    return [
        Row("difference of the loss, identical weights", abs(losses[0] - losses[1]), "nats"),
        Row(f"{name}, training step", tokens / best["theirs"], "tokens/s"),
        *(
            Row(f"ours, {label}, training step", tokens / best[label], "tokens/s", name, best["theirs"] / best[label])
            for label in ("rope", "hard_alibi")
        ),
    ]


def _step(model: Any, inputs: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> Any:
    """Forward, backward, clip and AdamW, the same for both; ours is spared the places where no loss is."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    counted = weights > 0

    def loss() -> torch.Tensor:
        if isinstance(model, Transformer):
            return weighted_cross_entropy(model(inputs, counted), labels[counted], weights[counted])
        return weighted_cross_entropy(model(inputs).logits, labels, weights)

    def step() -> None:
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def _interleaved(runs: dict[str, Any], rounds: int) -> dict[str, float]:
    """The best time of each, taken in turns so that a busy machine is busy for all; CPU time, on one thread."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.thread_time()
            run()
            best[name] = min(best[name], time.thread_time() - started)
    return best


def precision_rows(rounds: int) -> list[Row]:
    """Preset tm-cpu in both precisions, and which of them `precision: auto` takes on this CPU."""
    recipe, accelerator = preset("tm-cpu"), make_accelerator("cpu")
    trainers = {name: Trainer(recipe, accelerator, name) for name in ("float32", "bf16")}
    best = _interleaved({name: trainer.step for name, trainer in trainers.items()}, rounds)
    tokens, chosen = recipe.batch * recipe.context, choose_precision(recipe, accelerator).precision
    rows = [Row(f"tm-cpu in {name}", tokens / best[name], "tokens/s") for name in best]
    better, label = tokens / min(best.values()), "the better of the two"
    return [
        *rows,
        Row(f"tm-cpu, auto ({chosen})", tokens / best[chosen], "tokens/s", label, tokens / best[chosen] / better),
    ]


def data_rows(steps: int = 4) -> list[Row]:
    """What making the data costs, beside the training step that uses it; 0.05 is the budget."""
    rows = []
    for name in ("tm-cpu", "addition-cpu", "multiplication1-cpu", "sgd-cpu"):
        trainer = Trainer(preset(name), make_accelerator("cpu"))
        trainer.step()
        best = _interleaved({"data": trainer.batch, "step": trainer.step}, steps)
        rows.append(Row(f"data of {name}", best["data"] * 1e3, "ms", "its training step", best["data"] / best["step"]))
    return rows


def evaluation_rows(examples: int = 288, alone: int = 2, length: int = 40) -> list[Row]:
    recipe = preset("tm-cpu")
    model, task = recipe.make_model().eval(), recipe.make_task()
    samples = task.sample(np.random.default_rng(0), length, count=examples)
    together = seconds(lambda: answers(model, samples, recipe.context), repeats=2) / examples
    one = seconds(lambda: [_slow(model, samples.prompt(i), len(samples.answer(i))) for i in range(alone)], repeats=2)
    baseline = "one at a time, no cache"
    return [
        Row(f"{baseline}, {length} cells", one / alone * 1e3, "ms/example"),
        Row(f"batched with cache, {length} cells", together * 1e3, "ms/example", baseline, one / alone / together),
    ]


@torch.no_grad()
def _slow(model: Transformer, prompt: np.ndarray, count: int) -> list[int]:
    tokens = torch.from_numpy(prompt).unsqueeze(0)
    for _ in range(count):
        tokens = torch.cat((tokens, model(tokens)[:, -1:].argmax(dim=-1)), dim=1)
    return tokens[0].tolist()
