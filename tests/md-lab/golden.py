#!/usr/bin/env python3
"""Regenerate the golden maps and parity in ``tests/golden`` by running real Linux md in the lab kernel.

``golden.py --check`` makes them in a temporary folder and compares them with the committed ones (exit status 1 when
they differ); ``golden.py --write`` replaces the committed ones. Exit status 2: the lab could not run, and why.

The rule of every file is: what md wrote, looked at block by block, without any knowledge of layouts. A block is
``data`` when its bytes are those of a content block, ``empty`` when it is all zeros, and otherwise parity: ``p`` when
it is the exclusive or of the data blocks at the same offset of the other members, ``q`` when another member holds that
``p``, ``parity`` when neither. See ``tests/golden/README.md`` for the format.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab import LabError, boot_lab, need_lab

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
MADE_WITH = "made-with.txt"

BLOCK_BYTES = 4096
WORDS_PER_BLOCK = BLOCK_BYTES // 8
REWRITE_BASE = 1_000_000
"""Content number of block ``i`` when it is written a second time: ``REWRITE_BASE + i``."""

MASK_64 = (1 << 64) - 1
ROTATIONS = ("left_symmetric", "left_asymmetric", "right_symmetric", "right_asymmetric", "parity_first", "parity_last")
FIXED_ROTATIONS = ("parity_first", "parity_last")
CHUNKS_KIB = (4, 16, 64)
COPIES = {
    "near2": (3, 5),
    "near3": (4, 5, 6),
    "far2": (2, 3, 4, 5),
    "far3": (4, 5),
    "offset2": (2, 3, 4, 5),
    "offset3": (4, 5),
}
"""Layouts of RAID 10 beside pairs, each over so many members."""
PARITY_MEMBERS = {"raid5": 1, "raid6": 2}


@dataclass(frozen=True)
class Case:
    """One array that md is asked to make."""

    level: str
    rotation: str
    members: int
    chunk_kib: int
    stripes: int
    rewrite: bool = False

    @property
    def name(self) -> str:
        """Name of the golden file, without ``.csv``."""
        parts = [self.level]
        if self.rotation:
            parts.append(self.rotation)
        parts.append(f"n{self.members}")
        if self.chunked:
            parts.append(f"c{self.chunk_kib}k")
        if self.rewrite:
            parts.append("rewrite")
        return "-".join(parts)

    @property
    def chunked(self) -> bool:
        """Whether the level has chunks at all."""
        return self.level != "raid1"

    @property
    def chunk_blocks(self) -> int:
        """Blocks of a chunk."""
        return self.chunk_kib * 1024 // BLOCK_BYTES

    @property
    def copies(self) -> int:
        """Copies of each chunk of RAID 10."""
        return int(self.rotation.lstrip("nearfost"))

    @property
    def data_members(self) -> int:
        """Chunks of a stripe that hold different data."""
        if self.level == "raid1":
            return 1
        return self.members - PARITY_MEMBERS.get(self.level, 0)

    @property
    def array_blocks(self) -> int:
        """Blocks of the array that are written: whole stripes."""
        if self.level == "raid10":
            return self.stripes * self.members // self.copies * self.chunk_blocks
        return self.stripes * self.data_members * self.chunk_blocks

    @property
    def member_blocks(self) -> int:
        """Blocks of each member that are looked at: the written stripes and one more, which must be empty."""
        return (self.stripes + 1) * self.chunk_blocks

    @property
    def size_kib(self) -> int | None:
        """How much of each member is used, where that decides where copies lie."""
        return self.stripes * self.chunk_kib if self.rotation.startswith("far") else None

    @property
    def md_layout(self) -> str:
        """What mdadm calls the layout, or ``-``."""
        if self.level == "raid10":
            return f"{self.rotation[0]}{self.copies}"
        return self.rotation.replace("_", "-") if self.rotation else "-"


def cases() -> list[Case]:
    """Every array of the golden set, in the order of the index."""
    made = [Case("raid0", "", members, chunk, 4) for members in (2, 3, 5) for chunk in CHUNKS_KIB]
    made += [Case("raid1", "", members, 4, 32) for members in (2, 3)]
    made += [Case("raid10", "near2", members, chunk, 4) for members in (2, 4, 6) for chunk in CHUNKS_KIB]
    for layout, counts in COPIES.items():
        # As many stripes as bring the copies back to the first member.
        stripes = 2 * int(layout[-1])
        made += [Case("raid10", layout, members, chunk, stripes) for members in counts for chunk in CHUNKS_KIB]
    for level, counts, rewrite_counts in (("raid5", [3, 4, 5, 7], [5]), ("raid6", [4, 5, 6, 8], [6, 8])):
        for rotation in ROTATIONS:
            for members in counts:
                # Two full cycles of the rotation.
                stripes = 4 if rotation in FIXED_ROTATIONS else 2 * members
                made += [Case(level, rotation, members, chunk, stripes) for chunk in CHUNKS_KIB]
                if members in rewrite_counts:
                    made.append(Case(level, rotation, members, 16, stripes, rewrite=True))
    return made


def rewrite_requests(array_blocks: int) -> list[tuple[int, int]]:
    """Return (first block, blocks) of each second write: of every 11 blocks, the pair 3 and 4, and block 8 alone."""
    requests: list[tuple[int, int]] = []
    for start in range(0, array_blocks, 11):
        requests += [(start + 3, 2), (start + 8, 1)]
    return [(first, count) for first, count in requests if first + count <= array_blocks]


def splitmix64(seed: int) -> int:
    """Return the first output of SplitMix64 with this seed."""
    z = (seed + 0x9E3779B97F4A7C15) & MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK_64
    return z ^ (z >> 31)


def content_block(number: int) -> bytes:
    """Return the 4 KiB of content ``number``: 512 little-endian u64, each ``splitmix64(512 * number + j)``."""
    first = number * WORDS_PER_BLOCK
    return struct.pack(f"<{WORDS_PER_BLOCK}Q", *map(splitmix64, range(first, first + WORDS_PER_BLOCK)))


@functools.cache
def fnv1a_64(data: bytes) -> int:
    """Return the 64-bit FNV-1a hash of ``data``."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK_64
    return value


def xor_blocks(blocks: list[bytes]) -> bytes:
    """Return the exclusive or of blocks of 4 KiB."""
    total = 0
    for block in blocks:
        total ^= int.from_bytes(block, "little")
    return total.to_bytes(BLOCK_BYTES, "little")


def classify(dump: bytes, members: int, member_blocks: int, known: dict[bytes, int]) -> list[tuple[int, int, str, str]]:
    """Name every block of a dump: rows (member, block, kind, value), by member and then by block."""
    if len(dump) != members * member_blocks * BLOCK_BYTES:
        raise LabError(f"a dump has {len(dump)} bytes where {members * member_blocks * BLOCK_BYTES} were expected.")
    zeros = bytes(BLOCK_BYTES)
    rows: list[tuple[int, int, str, str]] = []
    for block in range(member_blocks):
        starts = [(member * member_blocks + block) * BLOCK_BYTES for member in range(members)]
        row = [dump[start : start + BLOCK_BYTES] for start in starts]
        data = [piece for piece in row if piece in known]
        parity = [piece for piece in row if piece not in known and piece != zeros]
        p_block = xor_blocks(data)
        p_found = parity.count(p_block) == 1
        for member, piece in enumerate(row):
            if piece == zeros:
                rows.append((member, block, "empty", ""))
            elif piece in known:
                rows.append((member, block, "data", str(known[piece])))
            else:
                kind = ("p" if piece == p_block else "q") if p_found else "parity"
                rows.append((member, block, kind, f"{fnv1a_64(piece):016x}"))
    return sorted(rows)


def run_lab(work: Path, arrays: list[Case]) -> None:
    """Boot the lab kernel once; it leaves a dump of every array in ``work``."""
    need_lab()
    most = max(case.array_blocks for case in arrays)
    content = [content_block(number) for number in range(most)]
    (work / "content").write_bytes(b"".join(content))
    sources: dict[int, int] = {}
    plan: list[str] = []
    for case in arrays:
        rewrite = "-"
        if case.rewrite:
            rewrite = f"requests-{case.name}"
            lines = []
            for first, count in rewrite_requests(case.array_blocks):
                lines.append(f"{first} {first} {count}\n")
                sources.update((block, REWRITE_BASE + block) for block in range(first, first + count))
            (work / rewrite).write_text("".join(lines))
        plan.append(
            f"{case.name} {case.level} {case.chunk_kib if case.chunked else '-'} {case.md_layout} {case.members}"
            f" {case.array_blocks * BLOCK_BYTES} {case.member_blocks * BLOCK_BYTES} {rewrite} {case.size_kib or '-'}\n"
        )
    with (work / "content-rewrite").open("wb") as file:
        for block, number in sources.items():
            file.seek(block * BLOCK_BYTES)
            file.write(content_block(number))
    (work / "plan").write_text("".join(plan))
    disks = max(case.members for case in arrays)
    boot_lab("md-golden.sh", work, disks=disks, service_ns=0, size_mb=16, memory_mb=1024, limit_s=900)
    for case, line in zip(arrays, (work / "seen").read_text().splitlines(), strict=True):
        # Name, level, md's number of the layout, chunk bytes, members: the kernel's own words.
        name, level, _, chunk_bytes, members = line.split()
        if (name, level, int(members)) != (case.name, case.level, case.members) or (
            case.chunked and int(chunk_bytes) != case.chunk_kib * 1024
        ):
            raise LabError(f"md made another array than {case.name}: {line}")


def csv_text(header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """Return rows as CSV with Unix line ends."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def generate(target: Path, keep: Path | None = None) -> None:
    """Make the whole golden set under ``target``; ``keep`` receives the dumps and logs of the lab."""
    arrays = cases()
    (target / "layout").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="md-golden.") as folder:
        work = Path(folder)
        run_lab(work, arrays)
        if keep:
            shutil.copytree(work, keep, dirs_exist_ok=True)
        once = range(max(case.array_blocks for case in arrays))
        twice = range(REWRITE_BASE, REWRITE_BASE + max(case.array_blocks for case in arrays if case.rewrite))
        known = {content_block(number): number for number in (*once, *twice)}
        index: list[tuple[object, ...]] = []
        for case in arrays:
            dump = (work / f"dump-{case.name}").read_bytes()
            rows = classify(dump, case.members, case.member_blocks, known)
            (target / "layout" / f"{case.name}.csv").write_text(csv_text(("member", "block", "kind", "value"), rows))
            chunk_bytes = case.chunk_kib * 1024 if case.chunked else ""
            array = (case.name, case.level, case.rotation, case.members, chunk_bytes)
            index.append((*array, case.array_blocks, case.member_blocks, int(case.rewrite)))
        header = ("name", "level", "layout", "members", "chunk_bytes", "array_blocks", "member_blocks", "rewrite")
        (target / "index.csv").write_text(csv_text(header, index))
        (target / MADE_WITH).write_text((work / "versions").read_text())


def golden_files(root: Path) -> dict[str, str]:
    """Return the text of every golden file under ``root``, by its relative name."""
    files = [root / "index.csv", *sorted((root / "layout").glob("*.csv"))]
    return {str(file.relative_to(root)): file.read_text() for file in files if file.exists()}


def first_difference(committed: str, made: str) -> str:
    """Say where two different texts part."""
    old, new = committed.splitlines(), made.splitlines()
    for number, (a, b) in enumerate(zip(old, new, strict=False), start=1):
        if a != b:
            return f"line {number}: committed {a!r}, md wrote {b!r}"
    return f"committed {len(old)} lines, md wrote {len(new)}"


def check(made_root: Path) -> list[str]:
    """Compare a freshly made set with the committed one; one line a difference."""
    committed, made = golden_files(GOLDEN), golden_files(made_root)
    differences = [f"{name}: not committed" for name in made.keys() - committed.keys()]
    differences += [f"{name}: committed, but not made" for name in committed.keys() - made.keys()]
    for name in made.keys() & committed.keys():
        if made[name] != committed[name]:
            differences.append(f"{name}: {first_difference(committed[name], made[name])}")
    return sorted(differences)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Golden maps and parity from real Linux md.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="make them anew and compare; status 1 if they differ")
    action.add_argument("--write", action="store_true", help="make them anew and replace the committed ones")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="also keep the dumps and logs of the lab in DIR")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="golden.") as folder:
            made_root = Path(folder)
            generate(made_root, arguments.keep)
            made_with = ", ".join((made_root / MADE_WITH).read_text().splitlines())
            count = len(golden_files(made_root))
            if arguments.check:
                differences = check(made_root)
                agreed = f"{count} golden files are what md writes ({made_with})."
                print("\n".join(differences) if differences else agreed)
                return 1 if differences else 0
            shutil.rmtree(GOLDEN / "layout", ignore_errors=True)
            shutil.copytree(made_root, GOLDEN, dirs_exist_ok=True)
            print(f"wrote {count} golden files to {GOLDEN} ({made_with}).")
            return 0
    except LabError as error:
        print(f"golden.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
