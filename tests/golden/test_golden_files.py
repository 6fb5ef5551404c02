"""The committed golden files against a second, independent statement of the rules that md follows.

Nothing here is shared with the generator: content, hash, layouts and parity are written anew, so that a mistake would
have to be made twice. Every line of every file is predicted. The rules are those of ``README.md`` in this folder.
"""

from __future__ import annotations

import csv
import functools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
BLOCK_BYTES = 4096
MASK_64 = (1 << 64) - 1
REWRITE_BASE = 1_000_000
TOP_BITS = int.from_bytes(b"\x80" * BLOCK_BYTES, "little")

Row = tuple[str, str, str, str]


class Array(NamedTuple):
    """A line of ``index.csv``."""

    name: str
    level: str
    layout: str
    members: int
    chunk_blocks: int
    array_blocks: int
    member_blocks: int
    rewrite: bool


def read_index() -> list[Array]:
    """Return every array of the index."""
    with (HERE / "index.csv").open(newline="") as file:
        return [
            Array(
                line["name"],
                line["level"],
                line["layout"],
                int(line["members"]),
                int(line["chunk_bytes"] or BLOCK_BYTES) // BLOCK_BYTES,
                int(line["array_blocks"]),
                int(line["member_blocks"]),
                line["rewrite"] == "1",
            )
            for line in csv.DictReader(file)
        ]


ARRAYS = read_index()


@functools.cache
def content(number: int) -> int:
    """Return content block ``number`` as a little-endian integer of 4096 bytes."""
    words = []
    for seed in range(number * 512, number * 512 + 512):
        z = (seed + 0x9E3779B97F4A7C15) & MASK_64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK_64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK_64
        words.append(z ^ z >> 31)
    return int.from_bytes(struct.pack("<512Q", *words), "little")


@functools.cache
def fnv1a(block: int) -> str:
    """Return the 64-bit FNV-1a hash of a block, as 16 hexadecimal digits."""
    value = 0xCBF29CE484222325
    for byte in block.to_bytes(BLOCK_BYTES, "little"):
        value = (value ^ byte) * 0x100000001B3 & MASK_64
    return f"{value:016x}"


def double(block: int) -> int:
    """Multiply every byte by 2 in GF(2^8) with the polynomial 0x11d."""
    top = block & TOP_BITS
    return (block ^ top) << 1 ^ (top >> 7) * 0x1D


def xor(blocks: list[int]) -> int:
    """Return P."""
    return functools.reduce(int.__xor__, blocks)


def weighted(blocks: list[int]) -> int:
    """Return Q: block k has the coefficient 2^k."""
    return functools.reduce(lambda total, block: double(total) ^ block, reversed(blocks))


def parity_members(array: Array, stripe: int) -> list[int]:
    """Return the member of P, and for RAID 6 of Q behind it, in this stripe."""
    n, parities = array.members, {"raid5": 1, "raid6": 2}[array.level]
    match array.layout:
        case "left_symmetric" | "left_asymmetric":
            first = n - 1 - stripe % n
        case "right_symmetric" | "right_asymmetric":
            first = stripe % n
        case "parity_first":
            first = 0
        case "parity_last":
            first = n - parities
        case other:
            raise AssertionError(other)
    return [(first + k) % n for k in range(parities)]


def data_members(array: Array, stripe: int) -> list[int]:
    """Return the members of the data chunks of this stripe, in the order of array addresses."""
    n, parity = array.members, parity_members(array, stripe)
    if array.layout.endswith("_symmetric"):
        return [(parity[-1] + 1 + k) % n for k in range(n - len(parity))]
    return [member for member in range(n) if member not in parity]


def q_order(array: Array, stripe: int) -> list[int]:
    """Return the data members of a RAID 6 stripe by coefficient of Q: 1, 2, 4, ..."""
    _, q = parity_members(array, stripe)
    return [(q + 1 + k) % array.members for k in range(array.members - 2)]


def written(array: Array, block: int) -> int:
    """Return the content number that array block ``block`` holds in the end."""
    if not array.rewrite:
        return block
    start = block // 11 * 11
    pair = block % 11 in (3, 4) and start + 5 <= array.array_blocks
    return block + REWRITE_BASE if pair or block % 11 == 8 else block


@functools.cache
def copies(array: Array) -> dict[tuple[int, int], int]:
    """Return the array chunk by member and stripe of each of its copies, of a RAID 10."""
    kind, count = array.layout.rstrip("0123456789"), int(array.layout.lstrip("nearfost"))
    n, part = array.members, (array.member_blocks // array.chunk_blocks - 1) // count
    places = {}
    for k in range(array.array_blocks // array.chunk_blocks):
        for copy in range(count):
            match kind:
                case "near":
                    stripe, member = divmod(k * count + copy, n)
                case "far":
                    stripe, member = copy * part + k // n, (k + copy) % n
                case _:
                    stripe, member = k // n * count + copy, (k + copy) % n
            places[member, stripe] = k
    return places


def stripe_blocks(array: Array, stripe: int, row: int) -> dict[int, tuple[str, int]]:
    """Return (kind, content number or bytes) of the block ``row`` of this stripe's chunk on every member."""
    n, chunk = array.members, array.chunk_blocks

    def number(chunk_of_array: int) -> int:
        return written(array, chunk_of_array * chunk + row)

    match array.level:
        case "raid0":
            return {member: ("data", number(stripe * n + member)) for member in range(n)}
        case "raid1":
            return {member: ("data", number(stripe)) for member in range(n)}
        case "raid10":
            return {member: ("data", number(k)) for (member, at), k in copies(array).items() if at == stripe}
    order = data_members(array, stripe)
    blocks = {member: ("data", number(stripe * len(order) + k)) for k, member in enumerate(order)}
    p, *q = parity_members(array, stripe)
    result = dict(blocks)
    result[p] = ("p", xor([content(blocks[member][1]) for member in order]))
    for member in q:
        result[member] = ("q", weighted([content(blocks[other][1]) for other in q_order(array, stripe)]))
    return result


def predicted(array: Array) -> Iterator[Row]:
    """Yield the rows that the rules predict, by block and then by member."""
    for block in range(array.member_blocks):
        stripe, row = divmod(block, array.chunk_blocks)
        last = block + array.chunk_blocks >= array.member_blocks
        made = {} if last else stripe_blocks(array, stripe, row)
        for member in range(array.members):
            kind, value = made.get(member, ("empty", 0))
            text = {"empty": "", "data": str(value)}[kind] if kind in ("empty", "data") else fnv1a(value)
            yield str(member), str(block), kind, text


def committed(array: Array) -> list[Row]:
    """Return the rows of the golden file."""
    with (HERE / "layout" / f"{array.name}.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["member", "block", "kind", "value"]
    return [(member, block, kind, value) for member, block, kind, value in rows]


@pytest.mark.parametrize("array", ARRAYS, ids=[array.name for array in ARRAYS])
def test_every_line_is_predicted(array: Array) -> None:
    """Map, P and Q of the file are exactly those of the rules."""
    rows = committed(array)
    assert rows == sorted(rows, key=lambda row: (int(row[0]), int(row[1]))), "rows go by member and then by block"
    assert sorted(rows) == sorted(predicted(array))


@pytest.mark.parametrize("array", ARRAYS, ids=[array.name for array in ARRAYS])
def test_every_array_block_is_there(array: Array) -> None:
    """Each array block is on one member, or on every copy."""
    count = array.members if array.level == "raid1" else int(array.layout[-1]) if array.level == "raid10" else 1
    numbers = [int(value) % REWRITE_BASE for _, _, kind, value in committed(array) if kind == "data"]
    assert sorted(numbers) == [block for block in range(array.array_blocks) for _ in range(count)]


def test_index_and_files_agree() -> None:
    """Every file is in the index once, and the other way round; the set is complete and stays small."""
    files = list((HERE / "layout").iterdir())
    assert sorted(file.name for file in files) == sorted(f"{array.name}.csv" for array in ARRAYS)
    assert sum(file.stat().st_size for file in files) < 1_500_000
    rotations = {
        "left_symmetric",
        "left_asymmetric",
        "right_symmetric",
        "right_asymmetric",
        "parity_first",
        "parity_last",
    }
    for level in ("raid5", "raid6"):
        assert {array.layout for array in ARRAYS if array.level == level} == rotations


def test_two_rotation_cycles_are_covered() -> None:
    """Rotating parity goes twice around."""
    for array in ARRAYS:
        if array.layout.startswith(("left", "right")):
            assert array.member_blocks // array.chunk_blocks - 1 == 2 * array.members, array.name


@pytest.mark.parametrize("layout", ["left_asymmetric", "right_asymmetric"])
def test_files_tell_q_order_from_data_order(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files refuse the likeliest mistake: coefficients of Q in the order of the data."""
    array = next(a for a in ARRAYS if a.level == "raid6" and a.layout == layout and a.members == 5)
    monkeypatch.setitem(globals(), "q_order", data_members)
    assert sorted(committed(array)) != sorted(predicted(array))


def test_polynomial() -> None:
    """2 * 0x80 is the polynomial without its top bit; and known values of the other two functions."""
    assert double(0x80) == 0x1D and double(0x8001) == 0x1D02
    assert content(0) & MASK_64 == 0xE220A8397B1DCDAF, "SplitMix64 with seed 0"
    assert fnv1a(0) == f"{0xCBF29CE484222325 * pow(0x100000001B3, BLOCK_BYTES, 1 << 64) & MASK_64:016x}"
