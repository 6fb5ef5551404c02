"""A tree of levels as the engine writes it: what every level has, and what some have."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class Tree(TypedDict):
    """A level over its children, or a member; what else a kind of level has stands beside it."""

    kind: str
    """``member``, or a level's word, such as ``stripe``."""
    children: NotRequired[Annotated[list["Tree"], Field(min_length=1)]]
    """Of a level."""
    chunk_bytes: NotRequired[Annotated[int, Field(ge=1)]]
    """Of a level that stripes."""
    parities: NotRequired[Annotated[int, Field(ge=1)]]
    """Of a level with parity."""
    width: NotRequired[Annotated[int, Field(ge=2)]]
    """Of declustered stripes: how many members each has, parity included."""
    spares: NotRequired[Annotated[int, Field(ge=1)]]
    """Beside declustered stripes: how many members' worth of space is spare."""
    rotation: NotRequired[str]
    """Where its parity lies from stripe to stripe."""
    layout: NotRequired[Annotated[str, Field(pattern=r"^(near|far|offset)[0-9]{1,9}$")]]
    """Of a level with copies of each chunk: where they lie, and how many there are."""


def copies_in(layout: str) -> tuple[str, int]:
    """Where the copies of a chunk lie, and how many there are.

    Examples
    --------
    >>> copies_in("far2")
    ('far', 2)
    """
    kind = layout.rstrip("0123456789")
    return kind, int(layout.removeprefix(kind))
