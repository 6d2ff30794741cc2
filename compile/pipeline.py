"""RASP-L programs to transformers: the stages, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from compile.domains import Capacity
from compile.errors import CompileError
from compile.front import prepare

BACKENDS = ("hard_alibi", "tracr")
DTYPES, ACTIVATIONS = ("float32", "float64"), ("relu", "gelu")


def compile_program(
    program: Callable[[Any], Any], vocabulary: Iterable[int], backend: str = "hard_alibi", **options: Any
) -> Any:
    """A model whose `predict` is the program, for inputs over `vocabulary`; what cannot be exact is refused.

    `counts` is the largest number a `sel_width` may reach (and the most values a `mean` may be taken of), `positions`
    the longest input if the program uses `indices` other than to shift. Further options are the backend's.
    """
    if backend == "hard_alibi":
        return compile_hard_alibi(program, vocabulary, **options)
    if backend == "tracr":
        from compile.tracr_backend import compile_tracr

        return compile_tracr(program, vocabulary, **options)
    raise CompileError(f"backend {backend!r} is not one of {', '.join(BACKENDS)}")


def check_numbers(dtype: str, activation: str) -> None:
    for name, given, known in (("dtype", dtype, DTYPES), ("activation", activation, ACTIVATIONS)):
        if given not in known:
            raise CompileError(f"{name} {given!r} is not one of {', '.join(known)}")


def compile_hard_alibi(
    program: Callable[[Any], Any],
    vocabulary: Iterable[int],
    *,
    counts: int = 64,
    positions: int | None = None,
    dtype: str = "float32",
    activation: str = "relu",
    check: bool = True,
    examples: Iterable[Sequence[int]] = (),
    token_names: Sequence[str] = (),
    extra: dict[str, Any] | None = None,
) -> Any:
    """trace -> rewrite -> domains -> factor -> schedule -> lower -> assemble -> validate."""
    check_numbers(dtype, activation)
    from compile.assemble import assemble
    from compile.digits import split_counts
    from compile.lower import lower
    from compile.schedule import schedule
    from compile.validate import validate

    prepared = prepare(program, vocabulary, Capacity(counts, positions))
    prepared = split_counts(prepared)
    plan = schedule(prepared.graph, prepared.domains, short_counts=True)
    lowered = lower(plan, dtype)
    model = assemble(lowered.network, activation=activation, token_names=token_names, extra=extra)
    if check:
        validate(model, lowered, prepared, examples)
    return model
