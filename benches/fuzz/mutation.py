"""Inputs made from examples: cut, doubled, spliced, and with words put in at which parsers have their limits."""

from __future__ import annotations

from random import Random

_MOST_BYTES = 1 << 16


def mutated(examples: list[bytes], words: tuple[bytes, ...], random: Random) -> bytes:
    """One of the examples, changed in a few places; the first byte stays more often than others."""
    data = bytearray(random.choice(examples))
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        start = random.randrange(len(data) + 1) if random.random() < 0.95 else 0
        end = min(len(data), start + int(random.expovariate(0.1)))
        what = random.randrange(6)
        if what == 0:
            del data[start:end]
        elif what == 1:
            data[start:start] = data[start:end] * random.choice((1, 2, 50))
        elif what == 2:
            data[start:end] = random.choice(words)
        elif what == 3:
            data[start:start] = random.choice(words)
        elif what == 4:
            other = random.choice(examples)
            cut = random.randrange(len(other) + 1)
            data[start:end] = other[cut : cut + int(random.expovariate(0.05))]
        elif start < len(data):
            data[start] ^= 1 << random.randrange(8)
    return bytes(data[:_MOST_BYTES])
