"""The simulator compiled for browsers: `crates/web` by cargo, with what Rust there is.

    python docs/site/simulator/compile.py

Prints the path of the compiled module; status 3, and why, where this Rust cannot compile for browsers. With rustup the
target is a component; Debian has none, but the source of the standard library, which cargo then compiles too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TARGET = "wasm32-unknown-unknown"
MODULE = ROOT / "target" / TARGET / "web" / "raidlab_web.wasm"
CANNOT = 3
MISSING = (
    f"this Rust cannot compile for browsers; with rustup: rustup target add {TARGET}; on Debian: apt-get install "
    "--no-install-recommends rustc-web cargo-web rust-web-src"
)


def told(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def command_for(rustlib: Path) -> tuple[list[str], dict[str, str]] | None:
    """The words of cargo and the variables with which the toolchain of a `rustlib` compiles; None where it cannot."""
    command = ["cargo", "build", "--locked", "--quiet", "-p", "raidlab-web", "--profile", "web", "--target", TARGET]
    if any((rustlib / TARGET / "lib").glob("libstd-*.rlib")):
        return command, {}
    if not (rustlib / "src" / "rust" / "library" / "std").is_dir():
        return None
    # A stable compiler is let do what cargo calls unstable: to compile its own standard library.
    variables = {"RUSTC_BOOTSTRAP": "1"}
    linkers = sorted(rustlib.glob("*/bin/rust-lld"))
    if linkers:
        variables["CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER"] = str(linkers[0])
    return [*command, "-Zbuild-std=std,panic_abort"], variables


def main() -> int:
    """Compile, where that can be done."""
    try:
        rustlib = Path(told("rustc", "--print", "sysroot")) / "lib" / "rustlib"
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"rustc does not answer: {error}", file=sys.stderr)
        return CANNOT
    found = command_for(rustlib)
    if found is None:
        print(MISSING, file=sys.stderr)
        return CANNOT
    command, variables = found
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False)
    if done.returncode == 0:
        print(MODULE)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
