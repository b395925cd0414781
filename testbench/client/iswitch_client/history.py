"""History hash of the exact sequence of sums that a member has (M-8)."""

MASK = (1 << 64) - 1


def mix(x: int) -> int:
    """Computes the output function of SplitMix64, which adds the golden gamma first."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def begin(boot: int, job: int, round: int) -> int:
    """Returns the history of a job that begins at a round."""
    return mix(mix(boot) ^ job << 32 ^ round) or 1


def after(history: int, boot: int, round: int) -> int:
    """Returns the history extended by the sum of a round."""
    return mix(mix(history ^ boot) ^ round) or 1
