"""A model's card: what it computes, how large it is, what each part does, and how to use it."""

from __future__ import annotations

from collections.abc import Iterable

from compile.circuits import Circuit, Wiring
from compile.transformer import Transformer
from experiments.zoo.catalogue import ZooEntry

TEMPLATE = """---
library_name: turing-programs
license: mit
tags: [interpretability, circuits, RASP, {family}]
---
# {name}

{description} ({family}, backend {backend}).

```python
from experiments.zoo import load_zoo

zoo = load_zoo("{name}")
zoo.model.predict(zoo.example)    # what it says at every position
zoo.circuit.edges                 # all that the answers can depend on
```

{layers} layers, heads per layer {heads}, d_model {d_model}, {parameters:,} parameters ({nonzero:,} not zero).
{capacity}

## Circuit

Of {possible} edges that lead from one component to a port of a later one, {inside} are in the circuit: ablating any of
them changes the answer at the input and position that `circuit.json` names as its witness. There {cut} are cut, and
along {moved} something is moved from one position to another.{guards}{unwitnessed}

No answer to any input depends on another edge, because of zeros in the weights.

| component | role | what it does |
| --- | --- | --- |
{components}

## Source

```python
{source}
```
{twin}"""


def card(entry: ZooEntry, model: Transformer, wiring: Wiring, circuit: Circuit) -> str:
    config = model.config
    return TEMPLATE.format(
        name=entry.name,
        family=entry.family,
        description=entry.description[:1].upper() + entry.description[1:].rstrip("."),
        backend=entry.recipe["backend"],
        layers=config.layers,
        heads=[shape.heads for shape in config.shapes],
        d_model=config.d_model,
        parameters=model.parameter_count(),
        nonzero=model.nonzero_count(),
        capacity=f"It refuses where {config.refusal}." if config.refusal else "It never refuses.",
        possible=len(wiring.edges),
        inside=len(circuit.edges),
        cut=len(circuit.of_kind("cut")),
        moved=len(circuit.of_kind("moved")),
        guards=GUARDS.format(len(circuit.of_kind("guard"))) if circuit.of_kind("guard") else "",
        unwitnessed=UNWITNESSED.format(len(circuit.unwitnessed)) if circuit.unwitnessed else "",
        components="\n".join(_rows(wiring, circuit)),
        source=entry.source.rstrip(),
        twin=TWIN if entry.twin else "",
    )


GUARDS = "\n{} are guards: no input was found that needs them alone, but some do once another edge is ablated."
UNWITNESSED = "\n{} are unwitnessed: no input was found that needs them."
TWIN = """
## Learned twin

`learned/` has a transformer that was trained on the same task (`load_zoo(...).learned`). Its circuit is not known: what
is known is the circuit of the compiled model that computes the same function.
"""


def _rows(wiring: Wiring, circuit: Circuit) -> Iterable[str]:
    for component in wiring.components:
        unused = "" if component.name in circuit.components else " (not in the circuit)"
        label = component.fact.label.replace("|", "\\|")
        yield f"| {component.name} | {component.fact.role or component.kind} | {label}{unused} |"
