"""What a compiler knows about the weights it wrote: facts as data, saved with the model; labels are for eyes.

A learned model has none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

HEAD_ROLES = ("shift", "count", "mean", "match", "overflow", "unused", "")
MLP_ROLES = ("compute", "")
REGISTER_ROLES = ("start", "tokens", "value", "count", "share", "mean", "overflow", "")


class Register(NamedTuple):
    """A named piece [start, stop) of the residual stream, and what each of its dimensions stands for."""

    name: str
    start: int
    stop: int
    values: tuple[str, ...] = ()
    role: str = ""
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fact:
    """What a head, an MLP or a register is for: its role, the operations of the program it computes, and a label."""

    role: str = ""
    label: str = ""
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Operation:
    """A node of the program: what kind of operation it is, on which nodes, and in words."""

    kind: str
    inputs: tuple[int, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ProgramGraph:
    """The program that was compiled; `nodes` of facts are places in `operations`."""

    operations: tuple[Operation, ...]
    output: int


@dataclass(frozen=True)
class Annotations:
    heads: tuple[tuple[Fact, ...], ...] = ()  # per layer, per head
    mlps: tuple[Fact, ...] = ()  # per layer
    registers: tuple[Register, ...] = ()
    program: ProgramGraph | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> Annotations:
        """As `to_dict` wrote it, and an error about anything else."""
        _need_fields("annotations", values, ("heads", "mlps", "registers", "program"))
        program = values["program"]
        return cls(
            tuple(tuple(map(_fact, layer)) for layer in _list("heads", values["heads"])),
            tuple(map(_fact, _list("mlps", values["mlps"]))),
            tuple(map(as_register, _list("registers", values["registers"]))),
            None if program is None else _program(program),
        )

    @classmethod
    def of_labels(cls, heads: Any, mlps: Any, registers: Any) -> Annotations:
        """From the lists of labels that files of the first format have."""
        return cls(
            tuple(tuple(Fact(label=_text(t)) for t in _list("head_labels", layer)) for layer in _list("heads", heads)),
            tuple(Fact(label=_text(t)) for t in _list("mlp_labels", mlps)),
            tuple(map(as_register, _list("registers", registers))),
        )

    def check(self, heads: Sequence[int], d_model: int) -> None:
        """Raise if these are not annotations of a model with so many heads per layer and dimensions."""
        if self.heads and [len(layer) for layer in self.heads] != list(heads):
            raise ValueError(f"heads of annotations do not fit {list(heads)} heads per layer; give one fact per head.")
        if self.mlps and len(self.mlps) != len(heads):
            raise ValueError(f"{len(self.mlps)} facts about MLPs were given for {len(heads)} layers; give one each.")
        _check_roles("head", HEAD_ROLES, (fact.role for layer in self.heads for fact in layer))
        _check_roles("MLP", MLP_ROLES, (fact.role for fact in self.mlps))
        _check_roles("register", REGISTER_ROLES, (register.role for register in self.registers))
        for name, start, stop, values, *_ in self.registers:
            if not 0 <= start <= stop <= d_model or (values and len(values) != stop - start):
                raise ValueError(
                    f"register {name!r} [{start}, {stop}) of {len(values)} values does not fit the residual."
                )
        self._check_nodes()

    def _check_nodes(self) -> None:
        lists = [fact.nodes for layer in (*self.heads, self.mlps) for fact in layer]
        lists += [register.nodes for register in self.registers]
        most = len(self.program.operations) if self.program else 0
        wrong = [node for nodes in lists for node in nodes if not 0 <= node < most]
        if wrong:
            raise ValueError(f"node {wrong[0]} is none of the {most} operations of the program.")


def as_register(value: Any) -> Register:
    form = f"register {value!r} is not (name, start, stop, names of values, role, nodes); give it that form."
    if not isinstance(value, list | tuple) or not 3 <= len(value) <= 6:
        raise ValueError(form)
    fields: list[Any] = [tuple(v) if isinstance(v, list) else v for v in value]
    register = Register(*fields)
    lists = isinstance(register.values, tuple) and isinstance(register.nodes, tuple)
    if not lists or not isinstance(register.name, str) or not isinstance(register.role, str):
        raise ValueError(form)
    if not all(is_whole(x) for x in (register.start, register.stop, *register.nodes)):
        raise ValueError(form)
    return register


def _fact(value: Any) -> Fact:
    _need_fields("a fact", value, ("role", "label", "nodes"))
    return Fact(_text(value["role"]), _text(value["label"]), _nodes(value["nodes"]))


def _program(value: Any) -> ProgramGraph:
    _need_fields("program", value, ("operations", "output"))
    operations = []
    for entry in _list("operations", value["operations"]):
        _need_fields("an operation", entry, ("kind", "inputs", "lines"))
        lines = tuple(map(_text, _list("lines", entry["lines"])))
        operations.append(Operation(_text(entry["kind"]), _nodes(entry["inputs"]), lines))
    known = range(len(operations))
    late = [i for i, operation in enumerate(operations) if any(not 0 <= j < i for j in operation.inputs)]
    if late or value["output"] not in known:
        raise ValueError("the program's operations are not in order, or its output is none of them.")
    return ProgramGraph(tuple(operations), value["output"])


def _nodes(value: Any) -> tuple[int, ...]:
    nodes = tuple(_list("nodes", value))
    if not all(map(is_whole, nodes)):
        raise ValueError(f"nodes are {value!r}; expected whole numbers.")
    return nodes


def _list(name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} is {value!r}; expected a list.")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text.")
    return value


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _need_fields(name: str, values: Any, fields: Sequence[str]) -> None:
    if not isinstance(values, Mapping) or set(values) != set(fields):
        raise ValueError(f"{name} is {values!r:.80}; expected {', '.join(fields)}.")


def _check_roles(owner: str, known: Sequence[str], roles: Iterable[str]) -> None:
    for role in roles:
        if role not in known:
            raise ValueError(f"role {role!r} of a {owner} is unknown; expected one of {', '.join(known[:-1])}.")
