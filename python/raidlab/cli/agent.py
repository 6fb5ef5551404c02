"""``raidlab agent``: lets a controller that has the key load a storage from this machine."""

from __future__ import annotations

from typing import Annotated

from raidlab.cli.options import argument, flag, option
from raidlab.cli.terminal import say
from raidlab.errors import InputError


def agent(
    place: Annotated[
        str,
        argument(
            "PLACE", "Where files are written and read: a directory (mounted from the storage), or nfs://SERVER/EXPORT."
        ),
    ],
    listen: Annotated[str, option("HOST:PORT", "The one address it listens at (or unix:PATH).")],
    key: Annotated[str, option("FILE", "The key that the controller has too; mode 0600, 16 bytes or more.")],
    once: Annotated[bool, flag("--once", "End when the first controller with the key has gone.")] = False,
) -> None:
    """Write and read files in PLACE at the word of a controller that has the same key, and nothing else.

    The controller is `raidlab measure network`. Nothing else of this machine can be reached through it. Messages are
    authenticated and not encrypted, the data of copies are neither: only for a network that you trust.
    """
    from pathlib import Path

    from raidlab.network.agent import listen as listen_at
    from raidlab.network.agent import serve
    from raidlab.network.protocol import load_key, split_address
    from raidlab.network.store import store_at

    secret, address = load_key(Path(key)), split_address(listen, "--listen")
    store = store_at(place)
    try:
        listener = listen_at(*address)
    except OSError as error:
        raise InputError.one(
            "--listen", f"cannot listen: {error.strerror}", value=f"'{listen}'", accepted="an address of this machine"
        ) from None
    say(f"listening at {listen} for a controller with the key; files lie in {place}")
    with listener:
        try:
            serve(listener, secret, store, say, once=once)
        except KeyboardInterrupt:
            say("ended")
