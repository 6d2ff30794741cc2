"""Everything about a Transformer but its weights: a configuration is valid once it is made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from compile.transformer.annotations import Annotations, is_whole
from compile.transformer.encodings import ENCODINGS, Windows

DTYPES = ("float32", "float64")
NORMS = ("none", "layernorm", "rmsnorm")
ACTIVATIONS = ("relu", "gelu")

FIRST_FORMAT = ("head_labels", "mlp_labels", "registers")  # what the first format of files has for annotations

MOST_LAYERS = MOST_HEADS = 1_000
LARGEST_SIZE = 2**24  # of any one dimension
LONGEST_PREFIX = 4096  # start tokens; each is read before the first token of every input
MOST_PARAMETERS = 2**33  # 32 GB of float32: more is a damaged file or a mistake, not a model for this program


Setting = TypeVar("Setting")
PerHead = Sequence[Setting] | Sequence[Sequence[Setting]]  # the same in every layer, or per layer


class LayerShape(NamedTuple):
    windows: Windows  # one per head
    d_head: int
    d_mlp: int  # 0: no MLP in this layer
    slopes: tuple[float, ...] = ()  # one per head; none: the usual ones

    @property
    def heads(self) -> int:
        return len(self.windows)


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Everything about a Transformer but its weights. Sequences may be lists; they are kept as tuples."""

    vocabulary: int  # number of input tokens
    layers: int
    d_model: int
    heads: int | Sequence[int]  # the same in every layer, or one number per layer; 0: no attention
    d_head: int | Sequence[int] | None = None  # default d_model / heads
    d_mlp: int | Sequence[int] | None = None  # default 4 d_model
    windows: PerHead[int | None] = ()  # per head (same in every layer) or per layer per head; None and () are unbounded
    encoding: str = "hard_alibi"
    slopes: PerHead[float] = ()  # of encoding "alibi", laid out like the windows; default Press et al.'s
    norm: str = "layernorm"  # before attention, MLP and unembedding
    norm_epsilon: float = 1e-5
    activation: str = "gelu"
    gated: bool = False  # MLPs multiply what is activated by a second map of their input, as in GLU
    bias: bool = True  # on the linear maps inside the layers
    unembed_bias: bool = False
    parallel: bool = False  # attention and MLP both read the layer's input, as in GPT-NeoX
    scale: float | None = None  # of attention scores; default 1 / sqrt(d_head)
    rotary_fraction: float = 1.0  # of each head's dimensions, for encoding "rope"
    rotary_base: float = 10_000.0
    max_positions: int | None = None  # needed by "learned" and "randomized" (which draws from them); counts prepended
    first_token: int = 0  # the lowest token id, 0 or less: that of the embedding's first row
    prepend: int | None = None  # token put silently before every sequence; its own output is dropped
    prepend_count: int = 1  # how many of them
    refusal: str = ""  # the error when the model answers REFUSED; then inputs may not contain the prepended token
    outputs: Sequence[int] | None = None  # token (or number) that each logit stands for; default all tokens
    dtype: str = "float32"
    token_names: Sequence[str] = ()
    extra: Mapping[str, object] = field(default_factory=dict)  # JSON: machine, n, steps, backend, ...
    annotations: Annotations = Annotations()  # what a compiler knows about the weights

    def __post_init__(self) -> None:
        for name in ("heads", "d_head", "d_mlp", "windows", "slopes", "outputs", "token_names"):
            object.__setattr__(self, name, _as_tuples(getattr(self, name)))
        object.__setattr__(self, "extra", _as_json(self.extra))
        if not isinstance(self.annotations, Annotations):
            object.__setattr__(self, "annotations", Annotations.from_dict(self.annotations))
        _check_numbers(self)
        for name in ("norm_epsilon", "scale", "rotary_fraction", "rotary_base"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if value is None else float(value))
        _check_choices(self)
        _check_shapes(self)
        _check_names(self)

    @cached_property
    def shapes(self) -> tuple[LayerShape, ...]:
        """Heads with their windows, d_head and d_mlp of every layer."""
        heads = _per_layer("heads", self.heads, self.layers)
        for count in heads:
            need_size("heads", count, 0, MOST_HEADS)
        d_head = _per_layer("d_head", _default_d_head(self, heads) if self.d_head is None else self.d_head, self.layers)
        d_mlp = _per_layer("d_mlp", 4 * self.d_model if self.d_mlp is None else self.d_mlp, self.layers)
        windows = _per_head("windows", self.windows or tuple((None,) * h for h in heads), heads)
        slopes = _per_head("slopes", self.slopes, heads) if self.slopes else ((),) * self.layers
        return tuple(map(LayerShape, windows, d_head, d_mlp, slopes))

    @property
    def last_token(self) -> int:
        """The highest token id."""
        return self.first_token + self.vocabulary - 1

    def name_of(self, token: int) -> str:
        """A token's name, or its number if tokens have no names."""
        return self.token_names[token - self.first_token] if self.token_names else str(token)

    @property
    def output_count(self) -> int:
        return self.vocabulary if self.outputs is None else len(self.outputs)

    @property
    def rough_parameter_count(self) -> int:
        """Weights of the matrices, by arithmetic: known before anything is allocated."""
        inside = sum(4 * s.heads * s.d_head + (2 + self.gated) * s.d_mlp for s in self.shapes)
        ends = self.vocabulary + self.output_count
        ends += (self.max_positions or 0) * ENCODINGS[self.encoding].trains_positions
        return self.d_model * (inside + ends)

    def note(self, name: str, kind: type[Setting]) -> Setting:
        """What `extra` has under this name."""
        found = self.extra.get(name)
        if not isinstance(found, kind):
            raise ValueError(f"extra has {found!r} as {name!r}; expected {kind.__name__}.")
        return found

    def to_dict(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> TransformerConfig:
        """As `to_dict` wrote it; files of the first format have labels instead of annotations."""
        if "annotations" not in values:
            labels = [values.get(name, ()) for name in FIRST_FORMAT]
            values = {name: value for name, value in values.items() if name not in FIRST_FORMAT}
            values["annotations"] = Annotations.of_labels(*labels)
        unknown = sorted(set(values) - {f.name for f in fields(cls)})
        missing = sorted({"vocabulary", "layers", "d_model", "heads"} - set(values))
        if unknown or missing:
            raise ValueError(f"the configuration has unknown keys {unknown} and lacks {missing}; neither is expected.")
        return cls(**values)  # type: ignore[arg-type]  # whatever the file holds: it is checked as it is made


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(v) for v in value) if isinstance(value, list | tuple) else value


def _as_json(extra: Any) -> dict[str, Any]:
    """A private copy that a file can hold, so that a saved and loaded configuration equals this one."""
    if not isinstance(extra, Mapping):
        raise ValueError(f"extra is a {type(extra).__name__}; expected a dictionary of JSON values.")
    try:
        return json.loads(json.dumps(dict(extra), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"extra cannot be written as JSON ({error}); keep only strings, numbers and lists.") from None


def need_size(name: str, value: Any, smallest: int = 1, largest: int = LARGEST_SIZE) -> None:
    if not is_whole(value) or not smallest <= value <= largest:
        raise ValueError(f"{name} is {value!r}; expected a whole number from {smallest} to {largest}.")


def _need_real(name: str, value: Any, above: float = -math.inf, most: float = math.inf) -> None:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or not above < value <= most:
        raise ValueError(f"{name} is {value!r}; expected a finite number above {above} and at most {most}.")


def _per_layer(name: str, value: Any, layers: int) -> tuple[int, ...]:
    values = value if isinstance(value, tuple) else (value,) * layers
    if len(values) != layers:
        raise ValueError(f"{name} has {len(values)} entries for {layers} layers; give one number, or one per layer.")
    return values


def _default_d_head(config: TransformerConfig, heads: tuple[int, ...]) -> tuple[int, ...]:
    if any(h and config.d_model % h for h in heads):
        raise ValueError(f"d_model {config.d_model} is not a multiple of {heads} heads; give d_head.")
    return tuple(config.d_model // h if h else 1 for h in heads)


def _per_head(name: str, values: Any, heads: tuple[int, ...]) -> tuple[Any, ...]:
    """Per layer, per head, from that or from the heads of every layer."""
    nested = all(isinstance(v, tuple) for v in values)
    layers = values if nested else (values,) * len(heads)
    if [len(v) for v in layers] != list(heads):
        raise ValueError(f"{name} are for {[len(v) for v in layers]} heads per layer but heads are {list(heads)}.")
    return layers


def _check_numbers(config: TransformerConfig) -> None:
    need_size("vocabulary", config.vocabulary)
    need_size("first_token", config.first_token, 1 - config.vocabulary, 0)
    need_size("layers", config.layers, 0, MOST_LAYERS)
    need_size("d_model", config.d_model)
    _need_real("norm_epsilon", config.norm_epsilon, above=0)
    _need_real("rotary_fraction", config.rotary_fraction, above=0, most=1)
    _need_real("rotary_base", config.rotary_base, above=0)
    if config.scale is not None:
        _need_real("scale", config.scale)
    if config.max_positions is not None:
        need_size("max_positions", config.max_positions)
    if config.prepend is not None:
        need_size("prepend", config.prepend, config.first_token, config.last_token)
    need_size("prepend_count", config.prepend_count, largest=LONGEST_PREFIX)
    for token in config.outputs or ():
        need_size("an output", token, -(2**62), 2**62)


def _check_choices(config: TransformerConfig) -> None:
    choices = {"encoding": ENCODINGS, "norm": NORMS, "activation": ACTIVATIONS, "dtype": DTYPES}
    for name, known in choices.items():
        if getattr(config, name) not in tuple(known):  # a tuple: what is given may be a list, which has no hash
            raise ValueError(f"{name} is {getattr(config, name)!r}; choose one of {', '.join(known)}.")
    for name in ("gated", "bias", "unembed_bias", "parallel"):
        if not isinstance(getattr(config, name), bool):
            raise ValueError(f"{name} is {getattr(config, name)!r}; expected true or false.")
    if config.outputs == ():
        raise ValueError("outputs is empty; leave it out, or name at least one token.")
    room = ENCODINGS[config.encoding].room
    if (config.max_positions or 0) < room:
        raise ValueError(
            f"encoding {config.encoding!r} has a given number of positions, at least {room}; say how many with "
            "max_positions."
        )


def _check_shapes(config: TransformerConfig) -> None:
    for layer, shape in enumerate(config.shapes):
        need_size(f"d_head of layer {layer}", shape.d_head)
        need_size(f"d_mlp of layer {layer}", shape.d_mlp, 0)
        for window in shape.windows:
            if window is not None:
                need_size(f"a window of layer {layer}", window)
        ENCODINGS[config.encoding].check_layer(shape.windows, shape.d_head, config.rotary_fraction)
        for slope in shape.slopes:
            _need_real(f"a slope of layer {layer}", slope)
    if config.slopes and not ENCODINGS[config.encoding].has_slopes:
        raise ValueError(f"slopes were given for encoding {config.encoding!r}; only 'alibi' has them.")
    if config.rough_parameter_count > MOST_PARAMETERS:
        count = f"{config.rough_parameter_count:.3g}"
        raise ValueError(f"these sizes make {count} parameters; at most {MOST_PARAMETERS:.3g} are allowed.")


def _check_names(config: TransformerConfig) -> None:
    config.annotations.check([shape.heads for shape in config.shapes], config.d_model)
    if config.token_names and len(config.token_names) != config.vocabulary:
        raise ValueError(f"{len(config.token_names)} token_names were given for {config.vocabulary} tokens; name all.")
