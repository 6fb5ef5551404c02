"""How much a Parquet file takes when it is decoded, told by its own headers: so a bomb is refused and not decoded.

A file of some kilobytes may decode to gigabytes. The footer says how many rows there are and where the pages of each
column lie; the header before each page says how much is allocated for it.

Invariant: nothing is decoded, nothing kept but a place in the file, and no number found in it is used unchecked.

Reference: Apache Parquet, `parquet.thrift`; Apache Thrift, *Thrift Compact protocol encoding*.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

# A file in memory, or one that is mapped there.
Content: TypeAlias = bytes | mmap.mmap

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4
# The footer of a table as large as may be read has some hundred KiB.
_MOST_FOOTER_BYTES = 16 << 20
_DEEPEST = 16
_MOST_BITS = 64
# Ids of fields: of the file's metadata, a group of rows, a chunk of a column, its metadata, the header of a page.
_ROW_GROUPS = 4
_COLUMNS, _ROWS = 1, 3
_META_DATA = 3
_STORED_BYTES, _DATA_PAGES, _DICTIONARY_PAGE = 7, 9, 11
_PAGE_DECODED_BYTES, _PAGE_STORED_BYTES = 2, 3
# What the header says of a page of one kind: of data, of a dictionary, of data as version 2 has it. Its first field is
# how many values there are, and all others that are numbers count something, too.
_PAGE_KINDS = (5, 7, 8)
_VALUES = 1
# Of a value in memory, however few bits it takes in the file.
_VALUE_BYTES = 8
# Types of the compact protocol; a truth value among fields has none of its own.
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12


@dataclass(frozen=True)
class DecodedSize:
    """What decoding takes: how many rows there are, the bytes of all their pages, and how many values these have.

    Of a group of rows, at most. Equal values and missing ones are counted, not written one by one: a page of some bytes
    may have millions.
    """

    rows: int
    page_bytes: int
    values: int
    group_rows: int
    group_page_bytes: int
    group_values: int

    def held_bytes(self, row_bytes: int) -> int:
        """The most that all of it may take in memory, where a row takes so much."""
        return max(self.page_bytes, self.rows * row_bytes, self.values * _VALUE_BYTES)

    def group_held_bytes(self, row_bytes: int) -> int:
        """The same of the largest group of rows."""
        return max(self.group_page_bytes, self.group_rows * row_bytes, self.group_values * _VALUE_BYTES)


def decoded_size(content: Content) -> DecodedSize:
    """What decoding a file would take; a `ValueError` where it is no Parquet file."""
    end = len(content) - _LENGTH_BYTES - len(_MAGIC)
    length = int.from_bytes(content[end : end + _LENGTH_BYTES], "little") if end > 0 else 0
    is_whole = content[:4] == _MAGIC == content[-4:] and 0 < length <= min(end - len(_MAGIC), _MOST_FOOTER_BYTES)
    if not is_whole:
        raise ValueError("is no Parquet file")
    rows, page_bytes, values, chunk_bytes = [0], [0], [0], 0
    try:
        for group in _Reader(content, end - length).structs(_ROW_GROUPS):
            for number, kind in group.fields():
                if number == _ROWS:
                    rows.append(group.count())
                elif number == _COLUMNS:
                    group_bytes = group_values = 0
                    for chunk in group.items():
                        begin, past = _pages(chunk)
                        chunk_bytes += past - begin
                        # They lie one behind the other; the same pages again and again would take for ever.
                        if chunk_bytes > len(content):
                            raise ValueError("is no Parquet file: its columns take more than all of it")
                        sizes = _page_sizes(content, begin, past)
                        group_bytes, group_values = group_bytes + sizes[0], group_values + sizes[1]
                    page_bytes.append(group_bytes)
                    values.append(group_values)
                else:
                    group.skip(kind)
    except IndexError:
        raise ValueError("is no Parquet file: its headers end early") from None
    return DecodedSize(sum(rows), sum(page_bytes), sum(values), max(rows), max(page_bytes), max(values))


def _pages(chunk: _Reader) -> tuple[int, int]:
    """Where the pages of a chunk begin and end."""
    begins, stored = [], 0
    for number, kind in chunk.fields():
        if number != _META_DATA:
            chunk.skip(kind)
            continue
        for inner, inner_kind in chunk.fields():
            if inner in (_DATA_PAGES, _DICTIONARY_PAGE):
                begins.append(chunk.count())
            elif inner == _STORED_BYTES:
                stored = chunk.count()
            else:
                chunk.skip(inner_kind)
    # A writer may leave the place of a dictionary that is not there at 0.
    begin = min((place for place in begins if place), default=0)
    return begin, begin + stored


def _page_sizes(content: Content, begin: int, end: int) -> tuple[int, int]:
    """What is allocated for all pages between two places, and how many values they have."""
    decoded = values = 0
    while begin < end:
        header = _Reader(content, begin)
        stored = 0
        for number, kind in header.fields():
            if number == _PAGE_DECODED_BYTES:
                decoded += header.count()
            elif number == _PAGE_STORED_BYTES:
                stored = header.count()
            elif number in _PAGE_KINDS and kind == _STRUCT:
                values += _values(header)
            else:
                header.skip(kind)
        begin = header.place + stored
    return decoded, values


def _values(header: _Reader) -> int:
    """How many values a page has; what else is counted in its header is made sure of."""
    values = 0
    for number, kind in header.fields():
        if kind in _INTEGERS:
            count = header.count()
            values = count if number == _VALUES else values
        else:
            header.skip(kind)
    return values


class _Reader:
    """Reads structs of the compact protocol from a place on; ``IndexError`` where they would go on beyond the end."""

    def __init__(self, content: Content, place: int) -> None:
        self.content = content
        self.place = place

    def fields(self) -> Iterator[tuple[int, int]]:
        """The id and the type of each field; whoever takes one reads or skips it before the next."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15

    def structs(self, wanted: int) -> Iterator[_Reader]:
        """The structs in the list that is one field of this struct."""
        for number, kind in self.fields():
            if number == wanted:
                yield from self.items()
            else:
                self.skip(kind)

    def items(self) -> Iterator[_Reader]:
        """The structs of a list, one by one; this reader stands at each."""
        count, kind = self._list_head()
        if kind != _STRUCT:
            raise ValueError("is no Parquet file: its headers are of other types")
        for _ in range(count):
            yield self

    def count(self) -> int:
        """A whole number that is not negative."""
        value = self._integer()
        if value < 0:
            raise ValueError("is no Parquet file: a length in it is negative")
        return value

    def skip(self, kind: int, depth: int = 0) -> None:
        """Go on behind a value."""
        if depth > _DEEPEST:
            raise ValueError("is no Parquet file: its headers nest too deeply")
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BYTE:
            self._byte()
        elif kind == _DOUBLE:
            self.place += 8
        elif kind == _BINARY:
            length = self._varint()
            self.place += length
        elif kind in _LISTS:
            count, inner = self._list_head()
            for _ in range(count):
                # Among items a truth value takes a byte.
                self.skip(_BYTE if inner in _BOOLEANS else inner, depth + 1)
        elif kind == _MAP:
            self._skip_map(depth)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind not in _BOOLEANS:
            raise ValueError("is no Parquet file: its headers are of other types")

    def _skip_map(self, depth: int) -> None:
        count = self._fitting(self._varint())
        kinds = self._byte() if count else 0
        for _ in range(count):
            for kind in (kinds >> 4, kinds & 15):
                self.skip(_BYTE if kind in _BOOLEANS else kind, depth + 1)

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        return self._fitting(head >> 4 if head >> 4 < 15 else self._varint()), head & 15

    def _fitting(self, count: int) -> int:
        """A number of items, each of which takes a byte at least: those only passed over have no other end."""
        if count > len(self.content) - self.place:
            raise IndexError
        return count

    def _byte(self) -> int:
        value = self.content[self.place]
        self.place += 1
        return value

    def _varint(self) -> int:
        value = 0
        for shift in range(0, _MOST_BITS + 6, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("is no Parquet file: a number in it has no end")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
