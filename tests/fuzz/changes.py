"""Files with something changed by chance, and what a refusal must be like."""

from __future__ import annotations

import numpy as np

ODD = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\t",
    b"'",
    b'"',
    b"{",
    b"]",
    b"&a",
    b"*a",
    b"- ",
    b"1e999",
    "é🂡".encode(),
    b"null",
)
MOST_CHARACTERS = 700  # of a sentence


def changed_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """One to three changes: a stretch lost, doubled or replaced, two exchanged, the rest cut off, odd bytes put in."""
    for _ in range(int(rng.integers(1, 4))):
        data = _changed(rng, data)
    return data


def _changed(rng: np.random.Generator, data: bytes) -> bytes:
    at, other = sorted(int(rng.integers(0, len(data) + 1)) for _ in range(2))
    end = min(len(data), at + int(rng.geometric(0.2)))
    match int(rng.integers(7)):
        case 0:
            return data[:at] + data[end:]
        case 1:
            return data[:end] + data[at:]
        case 2:
            return data[:at]
        case 3:
            return data[:at] + ODD[rng.integers(len(ODD))] + data[at:]
        case 4:
            return data[:at] + bytes(rng.integers(0, 256, end - at).astype(np.uint8)) + data[end:]
        case 5:
            return data[:at] + data[other : other + end - at] + data[end:]
    lines = data.split(b"\n")
    i, j = (int(rng.integers(len(lines))) for _ in range(2))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def sentence_faults(text: str) -> list[str]:
    """What is wrong with the words of a refusal: it is one sentence that a person can read on a terminal."""
    faults = [] if text.strip() else ["an empty sentence"]
    faults += [] if text.isprintable() else [f"a sentence that cannot be printed: {text!r:.300}"]
    return faults + ([] if len(text) <= MOST_CHARACTERS else [f"a sentence of {len(text)} characters: {text:.300}"])
