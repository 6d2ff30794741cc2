"""Positional encodings, one class each: what position adds to scores, to queries and keys, or to the embedding.

Every additive encoding is a function b(i, j) per head. A window of m (Hard-ALiBi) is the one that is -inf for
j <= i - m and 0 for j > i - m; no window at all is NoPE. `ENCODINGS` has them by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Windows = tuple[int | None, ...]  # one per head; None sees everything before it
Rotation = tuple[Tensor, Tensor]  # cosines and sines

T5_BUCKETS, T5_FURTHEST = 32, 128
FIRE_WIDTH, FIRE_THRESHOLD = 32, 512.0
SPREAD = 4  # "randomized" has so many places for each token it can be given

# Sines have amplitude 1 and fresh embeddings a spread of 0.02: unscaled, position would drown the token.
SINUSOID_SCALE = 0.02 * math.sqrt(2)


class HeadGroup(nn.Module):
    """Heads of one layer that look about equally far back, so that they can be computed (and cached) together."""

    windows: Tensor
    index: Tensor

    def __init__(self, heads: Sequence[int], windows: Windows) -> None:
        super().__init__()
        bounded = [m for m in windows if m is not None]
        self.heads, self.key = tuple(heads), windows
        self.reach = max(bounded) if bounded else None  # tokens seen by the furthest-looking head; None: all
        self.register_buffer("windows", torch.tensor(bounded, dtype=torch.long), persistent=False)
        self.register_buffer("index", torch.tensor(self.heads, dtype=torch.long), persistent=False)


def group_heads(windows: Windows) -> list[HeadGroup]:
    """Short windows together, longer ones by powers of two, unbounded heads last."""
    members: dict[float, list[int]] = {}
    for head, window in enumerate(windows):
        reach = math.inf if window is None else max(64, 1 << (window - 1).bit_length())
        members.setdefault(reach, []).append(head)
    return [HeadGroup(heads, tuple(windows[h] for h in heads)) for _, heads in sorted(members.items())]


# --- what is added to scores ------------------------------------------------------------------------------------------


class ScoreBias(nn.Module):
    """b(i, j) for the heads of one layer: -inf where a head does not look, and 0 elsewhere."""

    additive = False  # whether the encoding has a term of its own
    relative = True  # whether b depends on i - j alone

    def forward(self, distance: Tensor, query: Tensor, group: HeadGroup, dtype: torch.dtype) -> Tensor:
        """`distance` is i - j in any shape S, `query` is i and broadcasts to S; returns (heads, *S), or (1, *S)."""
        hidden = (distance < 0).unsqueeze(0)
        if group.reach is not None:
            hidden = hidden | (distance >= group.windows.view(-1, *[1] * distance.dim()))
        if not self.additive:
            return torch.zeros_like(hidden, dtype=dtype).masked_fill_(hidden, -math.inf)
        term = self.term(distance.clamp(min=0), query)  # (*S, all heads of the layer)
        return term.movedim(-1, 0)[group.index].masked_fill(hidden, -math.inf).to(dtype)

    def term(self, distance: Tensor, query: Tensor) -> Tensor:
        raise NotImplementedError("only encodings that add to scores have a term")


class AlibiBias(ScoreBias):
    """Minus slope times distance (Press et al.)."""

    slopes: Tensor

    def __init__(self, heads: int, slopes: Sequence[float] = ()) -> None:
        super().__init__()
        self.additive = not slopes or any(slopes)
        chosen = torch.tensor(slopes, dtype=torch.float32) if slopes else alibi_slopes(heads)
        self.register_buffer("slopes", chosen, persistent=False)

    def term(self, distance: Tensor, query: Tensor) -> Tensor:
        return -distance.unsqueeze(-1) * self.slopes


class T5Bias(ScoreBias):
    """A learned number per bucket of distances (Raffel et al.)."""

    additive = True

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(T5_BUCKETS, heads))

    def term(self, distance: Tensor, query: Tensor) -> Tensor:
        return F.embedding(t5_bucket(distance), self.table)


class FireBias(ScoreBias):
    additive, relative = True, False

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.fire = Fire(heads)

    def term(self, distance: Tensor, query: Tensor) -> Tensor:
        return self.fire(distance, query)


def alibi_slopes(heads: int) -> Tensor:
    """Press et al.'s: the steeper, the nearer a head looks; 0 would be NoPE."""
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1) / max(heads, 1))


def t5_bucket(distance: Tensor) -> Tensor:
    """Distances below half the buckets have one each; beyond, buckets widen logarithmically up to T5_FURTHEST."""
    exact = T5_BUCKETS // 2
    ratio = torch.log(distance.clamp(min=exact) / exact) / math.log(T5_FURTHEST / exact)
    return torch.where(distance < exact, distance, (exact + ratio * exact).long().clamp(max=T5_BUCKETS - 1))


class Fire(nn.Module):
    """FIRE (Li et al.): a small network of log-distance, divided by the log-position of the query once that is far."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.up = nn.Linear(1, FIRE_WIDTH)
        self.down = nn.Linear(FIRE_WIDTH, heads)
        self.curve = nn.Parameter(torch.tensor(0.1))
        self.threshold = nn.Parameter(torch.tensor(1.0))  # in units of FIRE_THRESHOLD

    def forward(self, distance: Tensor, query: Tensor) -> Tensor:
        far = torch.maximum(query.to(self.curve.dtype), (self.threshold * FIRE_THRESHOLD).abs())
        progress = torch.log1p(self.curve.abs() * distance) / torch.log1p(self.curve.abs() * far)
        return self.down(F.relu(self.up(progress.unsqueeze(-1))))


# --- what turns queries and keys --------------------------------------------------------------------------------------


def rotary_angles(positions: Tensor, width: int, base: float, dtype: torch.dtype) -> Rotation:
    """Cosines and sines (*positions, width) that turn the first `width` dimensions of q and k of every head."""
    exact = torch.promote_types(dtype, torch.float32)  # angles of far positions need more than half precision
    speeds = base ** -(torch.arange(0, width, 2, device=positions.device, dtype=exact) / width)
    angles = positions.unsqueeze(-1) * speeds  # (*positions, width / 2)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Turn the first `width` entries of x's last dimension; entry d is paired with d + width / 2."""
    cos, sin = (angles.to(x.dtype) for angles in rotation)
    width = cos.shape[-1]
    turned, rest = x[..., :width], x[..., width:]
    left, right = turned.chunk(2, dim=-1)
    turned = turned * cos + torch.cat((-right, left), dim=-1) * sin
    return torch.cat((turned, rest), dim=-1) if rest.shape[-1] else turned


# --- what is added to the embedding -----------------------------------------------------------------------------------


class LearnedPositions(nn.Embedding):
    def forward(self, positions: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        return super().forward(positions)


class Sinusoids(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        return sinusoids(positions, self.d_model, dtype)


class RandomizedPositions(Sinusoids):
    """Sinusoids of places that are drawn by chance, in order (Ruoss et al.)."""

    places: Tensor

    def __init__(self, d_model: int, most: int) -> None:
        super().__init__(d_model)
        self.most = most
        self.register_buffer("places", draw_places(most, seed=0), persistent=False)

    def forward(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        return super().forward(self.places[positions], dtype)

    def draw(self, seed: int) -> None:
        self.places.copy_(draw_places(self.most, seed))


def sinusoids(positions: Tensor, d_model: int, dtype: torch.dtype) -> Tensor:
    """Sines and cosines of geometrically spaced frequencies, (*positions, d_model)."""
    exact = torch.promote_types(dtype, torch.float32)
    rates = 1e4 ** -(torch.arange(0, d_model, 2, device=positions.device, dtype=exact) / d_model)
    angles = positions.unsqueeze(-1) * rates
    waves = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[..., :d_model]
    return (waves * SINUSOID_SCALE).to(dtype)


def draw_places(most: int, seed: int) -> Tensor:
    """Where the tokens of all sequences stand among `most` places: at some of them by chance, in order (Ruoss et al.).

    Drawn anew in every step, they teach a model not to rely on how far apart two tokens are. Here a text has no more
    room than a training row, since places must be known before it is known how long a text will be.
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(most, generator=generator)[: most // SPREAD].sort().values


# --- the encodings ----------------------------------------------------------------------------------------------------


class Encoding:
    """No encoding: heads tell near from far by their windows alone, or not at all."""

    name = ""
    room = 0  # places of `max_positions` that each token takes; 0: inputs may be of any length
    trains_positions = False  # a vector for each position is among the weights
    has_slopes = False

    def check_layer(self, windows: Windows, d_head: int, rotary_fraction: float) -> None:
        """Raise if a layer of this shape cannot have this encoding."""

    def score_bias(self, heads: int, slopes: Sequence[float]) -> ScoreBias:
        return ScoreBias()

    def rotation(self, positions: Tensor, width: int, base: float, dtype: torch.dtype) -> Rotation | None:
        return None

    def position_vectors(self, d_model: int, max_positions: int) -> nn.Module | None:
        return None


class HardAlibi(Encoding):
    """The paper's: windows."""

    name = "hard_alibi"


class Nope(Encoding):
    name = "nope"

    def check_layer(self, windows: Windows, d_head: int, rotary_fraction: float) -> None:
        if any(window is not None for window in windows):
            raise ValueError("encoding 'nope' has no windows; use 'hard_alibi' for heads with windows.")


class Alibi(Encoding):
    name, has_slopes = "alibi", True

    def score_bias(self, heads: int, slopes: Sequence[float]) -> ScoreBias:
        return AlibiBias(heads, slopes)


class Rope(Encoding):
    name = "rope"

    def check_layer(self, windows: Windows, d_head: int, rotary_fraction: float) -> None:
        if int(d_head * rotary_fraction) % 2 or d_head < 2:
            raise ValueError(f"rope turns pairs, but {rotary_fraction} of d_head {d_head} is not even.")

    def rotation(self, positions: Tensor, width: int, base: float, dtype: torch.dtype) -> Rotation | None:
        return rotary_angles(positions, width, base, dtype)


class Absolute(Encoding):
    name = "absolute"

    def position_vectors(self, d_model: int, max_positions: int) -> nn.Module | None:
        return Sinusoids(d_model)


class Learned(Encoding):
    name, room, trains_positions = "learned", 1, True

    def position_vectors(self, d_model: int, max_positions: int) -> nn.Module | None:
        return LearnedPositions(max_positions, d_model)


class Randomized(Encoding):
    name, room = "randomized", SPREAD

    def position_vectors(self, d_model: int, max_positions: int) -> nn.Module | None:
        return RandomizedPositions(d_model, max_positions)


class T5(Encoding):
    name = "t5"

    def score_bias(self, heads: int, slopes: Sequence[float]) -> ScoreBias:
        return T5Bias(heads)


class FireEncoding(Encoding):
    name = "fire"

    def score_bias(self, heads: int, slopes: Sequence[float]) -> ScoreBias:
        return FireBias(heads)


ENCODINGS: dict[str, Encoding] = {
    encoding.name: encoding
    for encoding in (
        HardAlibi(),
        Nope(),
        Alibi(),
        Rope(),
        Absolute(),
        Learned(),
        Randomized(),
        T5(),
        FireEncoding(),
    )
}
ROOMS = {name: encoding.room for name, encoding in ENCODINGS.items() if encoding.room}
