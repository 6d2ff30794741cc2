"""Recipes by name: for tests, for two CPU cores, and with the paper's settings for a GPU.

What was tried on 5 states x 15 symbols, tapes of 2 to 20 cells (next tape exact at 1x / 2x / 3x; ten steps at 2x):

    AdamW, unpacked, prototype                               .85  / .17  / 0
    Muon, packed, 8 heads of 16 numbers, 6.6 M tokens        .990 / .917 / .681; .677
    + half of the tapes of 4 to 8 symbols, from the start    1.00 / .86  / .75   (to 30 cells: .84 / .02 / 0, it counts)
    + up to 60% of 5 to 10 symbols, growing from none        1.00 / .94  / .84
    + 6 heads of 32 numbers instead (7 M tokens)             1.00 / .993 / .997; .934
    the same with 11.5 M tokens                              .997 / .997 / .993; .983   <- `tm-cpu`, `tm-0`
    machine 6: with 4.9 M tokens                             .997 / .906 / .549; .628
               with 8.2 M tokens                             1.00 / .997 / .993; .972

(64 tapes in the rows with two digits, 288 in the others.) Seeds differ: machine 1, the hardest, had .938 / .562 /
.062 with seed 11, .979 / .972 / .885 with seed 21, and .997 / .990 / .941 with seed 31 and 11.5 M tokens; machine 2
had .92 and .81 at 2x and 3x with seed 22 (64 tapes), .997 and .983 with seed 31, both with 11.5 M. Averaging the
weights is worth more than the decay to 0. bf16 is 1.4x to 1.6x as fast as float32 on these cores and no worse. NoPE or
RoPE alone: 0 beyond the training length.

Addition counts digits as soon as windows reach about as far as the training length: M = 4 with 3 layers (10 tokens,
12 digits) had .81 at 12 digits and 0 at 18; M = 3 had .97 and .67 after 13 M tokens, and with a fourth layer
(`addition-cpu`) reached what the README shows. Multiplication is the same (M = 4 with ALiBi slopes: .97 and .09).
What is still wrong is mostly a place lost at a repeated group of three or four digits.

SGD learned to copy at once, but not the prediction w . x, and counted examples. What stood in the way of the product:

* rows of numbers that were small and rough. A model of the product alone has .40 of products within 1/100 with rows
  of spread .02 and waves up to 300 radians, .986 with spread 1 and 30 radians, .994 with the blurred loss as well;
* the label beside the prediction, which is so often close to it that guessing from it came first. With labels by
  chance in 80% of training problems, predictions within 1/100 went from .51 to .69 in 600 steps;
* heads that find the weights of the line before. Steep slopes (also of log-distance and of its root) were used by no
  head: what is far away is invisible from the start, so nothing is learned from it. With two free heads without slope
  per layer, predictions were exact in .43 after 5,000 steps; with four, two gentle slopes and two free heads in the
  first layer, in .37 after 1,000 already (both with gated MLPs; without gates about half as fast).

And of the end of a line. A line ends when the example after the next is missing in the line before: one must look for
one's example there and see what stands six tokens further on. With lines of up to 8 examples and windows alone, nobody
looked: to count how many examples the two lines have had is right up to the longest line of training (.931 / .292 of
problems right at 8 and 12). What made it look, with lines of up to 12 or 16:

* a head that shifts by six. After 900 steps, .01 of ends were missed at 24 examples by a model trained to 16;
* not too many free heads at first, or something against counting: with six per layer and two in the first, lines of
  18 often ended after 10 to 13 examples. Late lines (`Sgd.late`) stopped that within some hundred steps. Stray examples
  before a line do so, too, but make the text longer instead of shorter (.766 / .016 after 29 M tokens);
* crowded problems (`Sgd.crowded`): without them, examples were mistaken for each other that differ by up to 15/100 in
  each number (18 wrong decisions in 24 problems of 18 examples);
* gentler slopes late: at 18 examples, slopes of .1 and .05 made it miss ends (10 in 12 problems; 2 with .4 of them).

Numbers that follow from the text, and a loss that is blurred only where a number is worked out, make all of it easier.

All that (`sgd-cpu`, `sgd-base`) ends at .962 / .872 after 9,000 steps. Of 42 problems that were wrong at 18 examples,
34 had a line that ended too early, mostly after an example whose label, but not whose inputs, is like that of the right
one; 4 were off in their numbers alone. `sgd-further-cpu` goes on from there, at half the rate, with examples that are
alike in some of their numbers only (`Sgd.partly`). Two runs, the second a branch of the first from step 4,470 on (288
problems with test seed 7, by which they were chosen; `sgd-base` has .944 / .854 there):

    10,000 steps                                             .972 / .924
    12,000 steps, what is not worked out counting six-fold   .983 / .962   <- `sgd`

By then, what is lost on numbers that are worked out is a hundred times what is lost on decisions. Halfway, the first
run was no better than `sgd-cpu` had been at that rate (.844 / .750, 64 problems): most of it comes as the rate decays.
"""

from __future__ import annotations

from typing import Any

from experiments.recipe import Recipe, with_steps
from experiments.tasks import TuringRasp

ENCODING_STEPS = 500  # of each encoding in the comparison
Heads = list[tuple[int | None, float]]  # window and slope of each
SHIFT = 4.0  # scores by which a head that shifts prefers the far end of its window to the place after it
PLAIN_STEPS = 700  # of a model that answers at once: fewer tokens, but more problems, since these are short


def windows(masked: int, heads: int) -> list[int | None]:
    """The paper's heads: windows 1..M, the rest see everything."""
    return [*range(1, masked + 1), *[None] * (heads - masked)]


def small(masked: int, free: int = 2, layers: int = 3, width: int = 128, d_head: int = 32) -> dict[str, Any]:
    """`masked` window heads and `free` ones. Fewer and wider heads than usual: a head that looks for the last four
    symbols among a hundred places needs keys that do not resemble each other by chance."""
    heads = masked + free
    return {"layers": layers, "d_model": width, "heads": heads, "d_head": d_head, "windows": windows(masked, heads),
            "encoding": "hard_alibi", "norm": "rmsnorm", "bias": False}  # fmt: skip


def shifting(slopes: tuple[float, ...], layers: int = 4, width: int = 128) -> dict[str, Any]:
    """Heads that shift: a slope downwards in a window makes a head look at its far end, up to six tokens back. Then,
    after the first layer, heads with these slopes; gentle ones help to find the latest of many, and steep ones would
    see nothing far away from which to learn. MLPs are gated, since what is to be learned are products."""

    def shifts(*windows: int) -> Heads:
        return [(window, -SHIFT) for window in windows]

    first: Heads = [(3, 0.0), (7, 0.0), *shifts(2, 3, 4, 5, 6, 7), *[(None, 0.0)] * 2]
    others: Heads = [(7, 0.0), *shifts(2, 4, 5, 7), *((None, slope) for slope in slopes)]
    heads = [first, *[others] * (layers - 1)]
    return {"layers": layers, "d_model": width, "heads": [len(layer) for layer in heads], "d_head": 32,
            "d_mlp": 3 * width, "gated": True, "encoding": "alibi", "norm": "rmsnorm", "bias": False,
            "windows": [[window for window, _ in layer] for layer in heads],
            "slopes": [[slope for _, slope in layer] for layer in heads]}  # fmt: skip


def large(masked: int) -> dict[str, Any]:
    """The paper's 150 M parameters: GPT-NeoX's parallel layers with Hard-ALiBi in place of rotary positions."""
    return {"layers": 12, "d_model": 1024, "heads": 16, "d_mlp": 4096, "windows": windows(masked, 16),
            "encoding": "hard_alibi", "norm": "layernorm", "parallel": True}  # fmt: skip


_FRESH: dict[str, Any] = {"start": "", "horizon": 0}  # of a model that is too different to go on from another

TURING = {"name": "turing_rasp", "symbols": 15, "states": 5}

_CPU: dict[str, Any] = {"optimizer": "muon", "rate": 3e-3, "muon_rate": 0.02, "ema": 0.995, "probe_every": 250,
                        "precision": "bf16"}  # fmt: skip
_PAPER: dict[str, Any] = {"optimizer": "adamw", "batch": 16, "warmup": 100, "lengths": (2, 50), "precision": "bf16",
                          "compiled": True, "betas": (0.9, 0.999), "waves": 0.0, "probes": (50, 75, 100),
                          "probe_every": 10_000}  # fmt: skip

PRESETS: dict[str, Recipe] = {
    "tm-tiny": Recipe(
        task={"name": "turing_rasp", "symbols": 3, "states": 2}, model=small(3, 1, width=64, d_head=16),
        lengths=(1, 6), context=64, batch=16, steps=400, warmup=15, rate=5e-3, muon_rate=0.03, ema=0.98,
    ),
    "tm-cpu": Recipe(
        task={**TURING, "repetitive": 0.6}, model=small(4), lengths=(2, 20), context=256, batch=16, steps=2800,
        warmup=112, probes=(20, 40, 60), **_CPU,
    ),
    "addition-cpu": Recipe(
        task={"name": "addition", "repetitive": 0.6}, model=small(3, 3, layers=4), lengths=(2, 12), context=320,
        batch=16, steps=4000, warmup=160, probes=(12, 18), **_CPU,
    ),
    "multiplication1-cpu": Recipe(
        task={"name": "multiplication", "digits": 1, "repetitive": 0.6}, model=small(3, 3, layers=4), lengths=(2, 10),
        context=256, batch=16, steps=4000, warmup=160, probes=(10, 15), **_CPU,
    ),
    "multiplication3-cpu": Recipe(
        task={"name": "multiplication", "digits": 3, "repetitive": 0.6}, model=small(3, 3, layers=4), lengths=(2, 10),
        context=320, batch=16, steps=6000, warmup=240, probes=(10, 15), **_CPU,
    ),
    "sgd-cpu": Recipe(
        task={"name": "sgd", "unexplained": 0.8, "crowded": 0.4, "late": 0.5, "written": True},
        model=shifting((0.1, 0.05, 0.0, 0.0, 0.0, 0.0)), lengths=(1, 12), fall=0.82, context=256, batch=16,
        steps=9000, warmup=200, gentler=(5000, 0.3), blur=1.0, waves=0.75,
        probes=(12, 18), **{**_CPU, "probe_every": 1000},
    ),
    "sgd-further-cpu": Recipe(
        task={"name": "sgd", "unexplained": 0.8, "crowded": 0.6, "partly": 0.4, "late": 0.5, "written": True},
        model=shifting((0.03, 0.015, 0.0, 0.0, 0.0, 0.0)), start="sgd-base", lengths=(1, 12), fall=0.9, context=256,
        batch=16, steps=12_000, warmup=200, horizon=1, emphasis=(4500, 6.0), blur=1.0, waves=0.75, probes=(12, 18),
        **{**_CPU, "rate": 1.5e-3, "muon_rate": 0.01, "probe_every": 2500},
    ),
    "paper-addition": Recipe(
        task={"name": "addition"}, model=large(6), context=500, steps=200_000, rate=7e-5, **_PAPER),
    "paper-multiplication1": Recipe(
        task={"name": "multiplication", "digits": 1}, model=large(7), context=500, steps=200_000, rate=3e-4, **_PAPER),
    "paper-multiplication3": Recipe(
        task={"name": "multiplication", "digits": 3}, model=large(7), context=500, steps=200_000, rate=3e-4, **_PAPER),
    "paper-sgd": Recipe(
        task={"name": "sgd"}, model=large(7), context=600, steps=400_000, rate=7e-5, **_PAPER),
    "paper-tm": Recipe(
        task={"name": "turing_paper", "symbols": 15, "states": 5}, model=large(8), context=450, steps=200_000,
        rate=7e-5, **_PAPER),
}  # fmt: skip


def preset(name: str) -> Recipe:
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; choose one of {', '.join(PRESETS)}")
    return PRESETS[name]


def with_encoding(recipe: Recipe, encoding: str) -> Recipe:
    """Another encoding at the same shape; the windows belong to Hard-ALiBi."""
    from compile.positions import ROOMS

    model = {**recipe.model, "encoding": encoding, "slopes": []}
    if encoding != "hard_alibi":
        model["windows"] = []
    if encoding in ROOMS:
        model["max_positions"] = recipe.context * ROOMS[encoding]
    return recipe.changed(model=model, gentler=(0, 1.0), **_FRESH)


def without_scratchpad(recipe: Recipe) -> Recipe:
    """The paper's baseline: the answer at once."""
    task = recipe.make_task()
    if isinstance(task, TuringRasp) and task.steps == 1:
        raise ValueError("a problem of this preset is one step of a machine, answered at once as it is: there is "
                         "no scratchpad to leave out")  # fmt: skip
    return recipe.changed(task={**recipe.task, "scratchpad": False}, **_FRESH)


def planned() -> dict[str, Recipe]:
    """The checkpoints that this repository is to ship: `turing-programs reproduce NAME` trains any of them."""
    machines = {f"tm-{i}": preset("tm-cpu").changed(task={**preset("tm-cpu").task, "machine_seed": i}, seed=i)
                for i in range(10)}  # fmt: skip
    short = with_steps(machines["tm-0"], ENCODING_STEPS)
    encodings = {f"tm-0-{e}": with_encoding(short, e) for e in ("hard_alibi", "nope", "alibi", "rope")}
    others = {name: preset(f"{name}-cpu") for name in ("addition", "multiplication1", "multiplication3")}
    sgd = {"sgd-base": preset("sgd-cpu"), "sgd": preset("sgd-further-cpu")}
    plain = {f"{name}-plain": with_steps(without_scratchpad(preset(f"{name}-cpu")), PLAIN_STEPS)
             for name in ("addition", "sgd")}  # fmt: skip
    return {**machines, **encodings, **others, **sgd, **plain}
