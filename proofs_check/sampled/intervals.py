"""What a sample says about a probability."""

from __future__ import annotations


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact two-sided interval for a probability; one-sided at 0 and at 1, where the other end is certain."""
    from scipy.special import betaincinv

    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials: expected 0 <= successes <= trials")
    if trials == 0:
        return 0.0, 1.0
    tail = 1 - confidence if successes in (0, trials) else (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - tail))
    return low, high
