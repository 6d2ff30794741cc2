"""Backend `tracr`: RASP-L programs as transformers with absolute positions, on tracr's `craft` and `assemble`.

prepare -> plan -> assemble (JAX) -> torch -> validate. What is returned is our `Transformer`; tracr's own model stays
reachable as `.haiku`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np

from compile.domains import Capacity
from compile.errors import CompileError
from compile.front import check_vocabulary, prepare, rewritten
from compile.model import Register, Transformer
from compile.tracr_assemble import Assembled, assemble
from compile.tracr_craft import Names
from compile.tracr_export import to_torch
from compile.tracr_plan import Plan, make_plan
from compile.validate import check as check_input
from compile.validate import generated

LONGEST = 256  # tokens, as in the paper-size models
REFUSAL = (
    "a count ran over, or a token is none of the program's: this model was compiled to count to {counts} in inputs of "
    "at most {positions} tokens; shorten the input or compile with a larger capacity"
)


def compile_tracr(
    program: Callable[[Any], Any],
    vocabulary: Iterable[int],
    *,
    max_seq_len: int | None = None,
    positions: int | None = None,
    counts: int = 64,
    stock: bool = False,
    check: bool = True,
    trim: bool = True,
    examples: Iterable[Sequence[int]] = (),
    token_names: Sequence[str] = (),
    extra: dict[str, Any] | None = None,
) -> Any:
    """A model for inputs of at most `max_seq_len` tokens (256, or `positions`) whose counts stay within `counts`.

    `stock` hands the program to tracr's own compiler instead: a baseline, known to be wrong (compile/tracr_stock.py).
    `trim` leaves out what tracr fills up with zeros.
    """
    _need_tracr()
    longest = _checked_length(next(n for n in (max_seq_len, positions, LONGEST) if n is not None))
    if stock:
        from compile.tracr_stock import compile_stock

        return compile_stock(rewritten(program), check_vocabulary(vocabulary), longest)
    prepared = prepare(program, vocabulary, Capacity(min(counts, longest), longest))
    plan = make_plan(prepared)
    model = convert(plan, assemble(plan), trim, token_names, extra or {})
    if check:
        check_against_program(model, plan, [*generated(prepared), *examples])
    return model


def _need_tracr() -> None:
    missing = [name for name in ("jax", "haiku", "tracr") if find_spec(name) is None]
    if missing:
        raise CompileError(
            f"backend 'tracr' needs {', '.join(missing)}, not installed here: pip install 'turing-programs[tracr]', or "
            "use backend 'hard_alibi'"
        )


def _checked_length(length: Any) -> int:
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise CompileError(f"max_seq_len is {length!r}; give the number of tokens of the longest input, from 1 on")
    return length


def convert(
    plan: Plan,
    assembled: Assembled,
    trim: bool = True,
    token_names: Sequence[str] = (),
    extra: dict[str, Any] | None = None,
) -> Transformer:
    """The assembled model in torch, with its labels; `.haiku` is tracr's."""
    capacity = plan.prepared.domains.capacity
    model = to_torch(
        assembled.haiku,
        outputs=assembled.outputs,
        trim=trim,
        refusal=REFUSAL.format(counts=capacity.counts, positions=capacity.positions),
        token_names=token_names,
        head_labels=assembled.head_labels,
        mlp_labels=assembled.mlp_labels,
        registers=registers(plan, assembled.haiku.residual_labels),
        extra={**(extra or {}), "tracr": tracr_size(assembled.haiku)},
    )
    object.__setattr__(model, "haiku", assembled.haiku)
    return model


def tracr_size(haiku: Any) -> dict[str, int]:
    """How large tracr's own model is, in which every layer is as large as the largest."""
    return {
        "layers": int(haiku.model_config.num_layers),
        "heads": int(haiku.model_config.num_heads),
        "key_size": int(haiku.model_config.key_size),
        "mlp": int(haiku.model_config.mlp_hidden_size),
        "d_model": len(haiku.residual_labels),
        "parameters": sum(int(w.size) for module in haiku.params.values() for w in module.values()),
    }


def registers(plan: Plan, labels: Sequence[str]) -> list[Register]:
    """Where each register lies in the residual stream; tracr sorts directions by name and value, so in one piece."""
    names = Names(plan)
    place = {label: column for column, label in enumerate(labels)}
    found = []
    for i in _kept(plan):
        start = place[str(names.value(i, plan.domain(i)[0]))]
        found.append(Register(names.title(i), start, start + len(plan.domain(i)), tuple(map(str, plan.domain(i)))))
    return found


def _kept(plan: Plan) -> list[int]:
    return [i for i in sorted(plan.times) if plan.graph.nodes[i].op != "full"]


def check_against_program(model: Transformer, plan: Plan, inputs: Iterable[Sequence[int] | np.ndarray]) -> None:
    """Raise `CompileError` with the first wrong operation if the model differs from the program on any of `inputs`."""
    views = {}
    for i, register in zip(_kept(plan), model.config.registers, strict=True):
        views[i] = {v: {register.start + place: 1.0} for place, v in enumerate(plan.domain(i))}
    readable: Any = SimpleNamespace(views=views)  # all that the check needs to know of a lowering
    for tokens in inputs:
        given = np.asarray(tokens, dtype=np.int64)[: plan.positions]
        check_input(model, readable, plan.prepared, given)
