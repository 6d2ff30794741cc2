"""RASP-L programs to transformers: the stages, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compile.backends import find_backend, read_options
from compile.front.digits import split_counts
from compile.front.domains import infer_domains
from compile.front.factor import factor
from compile.front.schedule import Placements, schedule
from compile.front.steps import split_maps
from compile.front.trace import check_vocabulary, rewrite, trace
from compile.source import Backend, Option, Source, Tokens, WholeBackend
from compile.transformer import Transformer
from compile.validate import validate
from rasp.core import Program


def compile_program(
    program: Program,
    vocabulary: Iterable[int],
    backend: str = "hard_alibi",
    *,
    examples: Iterable[Tokens] = (),
    token_names: Sequence[str] = (),
    extra: Mapping[str, object] | None = None,
    **options: Option,
) -> Transformer:
    """A model whose `predict` is the program, for inputs over `vocabulary`; what cannot be exact is refused.

    Options are the backend's (`HardAlibiOptions`, `TracrOptions`): `counts`, how far it counts, `positions`, how long
    inputs are, and `check`, whether it is compared with the program on inputs made to hurt and on `examples`.
    """
    source = Source(program, check_vocabulary(vocabulary), tuple(examples), token_names, extra or {})
    return compile_source(source, backend, options)


def compile_source(source: Source, backend: str, options: Mapping[str, Option]) -> Transformer:
    chosen = find_backend(backend)
    settings = read_options(chosen, options)
    if isinstance(chosen, WholeBackend):
        return chosen.compile(source, settings)
    return run_stages(source, chosen, settings)


def plan_stages(source: Source, backend: Backend[Any, Any], options: Any) -> Placements:
    """trace -> rewrite -> infer domains -> factor -> split counts -> split maps -> schedule."""
    graph = rewrite(trace(source.program))
    domains = infer_domains(graph, source.vocabulary, backend.capacity(options))
    program = factor(graph, domains)
    if backend.splits_counts:
        program = split_counts(program)
    return schedule(split_maps(program), short_counts=backend.splits_counts)


def run_stages(source: Source, backend: Backend[Any, Any], options: Any) -> Transformer:
    """plan (its stages are above) -> lower -> assemble -> validate."""
    plan = plan_stages(source, backend, options)
    lowered = backend.lower(plan, options)
    built = backend.assemble(lowered, source, options)
    if options.check:
        validate(built, plan.program, source.examples, backend.longest(options))
    return built.model
