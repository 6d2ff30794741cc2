"""Arrays as text inside a page: 8-bit attention, deflated and base64.

Each row of a pattern is divided by its largest weight before it is rounded, so that a head spread over a thousand
tokens keeps its shape; the largest weight and the key that has it are kept exactly. Only keys a head can see are kept.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

import numpy as np

LEVELS = (255, 63, 31, 15)  # tried in order until the text fits; what does not fit then is large but not wrong


@dataclass(frozen=True)
class Pattern:
    """One head: weights (T, start + T) of each token on the tokens put in front and on all others."""

    weights: np.ndarray
    window: int | None

    @property
    def visible(self) -> np.ndarray:
        """Where a query may look: not ahead, and no further back than the window."""
        rows, columns = self.weights.shape
        query = np.arange(rows)[:, None] + columns - rows
        behind = query - np.arange(columns)[None, :]
        return (behind >= 0) & (behind < (columns if self.window is None else self.window))


def pack(array: np.ndarray) -> str:
    """Little-endian bytes, deflated, in base64."""
    data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def unpack(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.dtype(dtype).newbyteorder("<"))


def pack_patterns(patterns: list[Pattern], most: int) -> dict[str, object]:
    """All heads one after the other, with as many levels (15 to 255) as fit into `most` characters."""
    peaks = [p.weights.max(axis=1, initial=0.0).astype(np.float32) for p in patterns]
    best = [p.weights.argmax(axis=1).astype(np.uint16) for p in patterns]
    shares = [_share_of_peak(p, peak) for p, peak in zip(patterns, peaks, strict=True)]
    flat = np.concatenate([*shares, np.zeros(0, np.float32)])
    for levels in LEVELS:
        weights = pack(np.rint(flat * levels).astype(np.uint8))
        if len(weights) <= most:
            break
    return {
        "levels": levels,
        "weights": weights,
        "peaks": pack(_joined(peaks, np.float32)),
        "best": pack(_joined(best, np.uint16)),
    }


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([*parts, np.zeros(0, dtype)]).astype(dtype)


def _share_of_peak(pattern: Pattern, peak: np.ndarray) -> np.ndarray:
    scaled = pattern.weights / np.maximum(peak, np.finfo(np.float32).tiny)[:, None]
    return scaled[pattern.visible].astype(np.float32)


def unpack_patterns(packed: dict[str, object], windows: list[int | None], tokens: int, start: int) -> list[np.ndarray]:
    """The matrices that the page sees, (tokens, start + tokens) each."""
    flat = unpack(str(packed["weights"]), "uint8")
    peaks = unpack(str(packed["peaks"]), "float32").reshape(len(windows), tokens)
    found, at = [], 0
    for peak, window in zip(peaks, windows, strict=True):
        weights = np.zeros((tokens, start + tokens), np.float32)
        visible = Pattern(weights, window).visible
        count = int(visible.sum())
        weights[visible] = flat[at : at + count] / np.float32(packed["levels"])  # type: ignore[arg-type]
        found.append(weights * peak[:, None])
        at += count
    return found
