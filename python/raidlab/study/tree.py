"""A tree of levels as the engine writes it: what every level has, and what some have."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class Tree(TypedDict):
    """A level over its children, or a member; what else a kind of level has stands beside it.

    Attributes
    ----------
    kind : str
        ``member``, or a level's word, such as ``stripe``.
    children : list of Tree, optional
        Of a level.
    chunk_bytes : int, optional
        Of a level that stripes.
    parities : int, optional
        Of a level with parity.
    rotation : str, optional
        Where its parity lies from stripe to stripe.
    """

    kind: str
    children: NotRequired[Annotated[list["Tree"], Field(min_length=1)]]
    chunk_bytes: NotRequired[Annotated[int, Field(ge=1)]]
    parities: NotRequired[Annotated[int, Field(ge=1)]]
    rotation: NotRequired[str]
