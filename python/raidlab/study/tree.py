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
    rotation: NotRequired[str]
    """Where its parity lies from stripe to stripe."""
