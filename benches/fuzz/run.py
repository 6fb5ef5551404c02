"""All parsers given what strangers might have written: does any end otherwise than with a result or a refusal?

Purpose: a study, a trace, a job file, a device or a run folder may be anybody's. For each parser
(`targets.py`) inputs are made from good examples, guided by what code they reach (atheris, which is libFuzzer), in a
process of its own, for its share of the time. The parsers in Rust are called through the compiled module.

Verdict: a parser fails that raises what is not raidlab's own error, ends the process, takes more than 10 seconds
of a processor or 300 of the clock for one input, or more than 2 GiB. The input at fault is kept in OUT/NAME and named.

    .venv/bin/pip install --require-hashes -r benches/fuzz/requirements.lock
    .venv/bin/python benches/fuzz/run.py --hours 8 [--only trace] [--out fuzz-corpus] [--json FILE]

Ends with 0 when none fails, 1 otherwise. What was found to be new is kept in OUT, and the next run begins with it.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

_SLOW_S = 10
# A machine beside other work takes its processors away for seconds; what hangs without using one is found later.
_HANGS_S = 300
_MOST_MB = 2048
_LONGEST_BYTES = 1 << 16


def fuzz_one(name: str, corpus: Path, seconds: int) -> None:
    """Fuzz one parser in this process until the time is over; libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["raidlab", "tomllib"]):
        from targets import TARGETS, WORDS

    target = next(target for target in TARGETS if target.name == name)
    for number, example in enumerate(target.examples()):
        (corpus / f"example-{number}").write_bytes(example)
    words = corpus.parent / f"{name}.words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS if 0 < len(word) <= 64))
    base = Path("/dev/shm") if Path("/dev/shm").is_dir() else None

    def test(data: bytes) -> None:
        folder = Path(tempfile.mkdtemp(dir=base, prefix="raidlab-fuzz-"))
        begin_s = time.process_time()
        try:
            target.check(data, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        took_s = time.process_time() - begin_s
        if took_s > _SLOW_S:
            raise AssertionError(f"{name}: one input took {took_s:.1f} s of a processor, more than {_SLOW_S}")

    arguments = [sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-timeout={_HANGS_S}"]
    arguments += [f"-rss_limit_mb={_MOST_MB}", f"-max_len={_LONGEST_BYTES}", f"-dict={words}"]
    arguments += [f"-artifact_prefix={corpus.parent}/{name}-", "-print_final_stats=1"]
    atheris.Setup(arguments, test)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def fuzz(name: str, out: Path, seconds: int) -> dict[str, Any]:
    """Fuzz one parser in a process of its own; what came of it."""
    corpus = out / name
    corpus.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--one", name, "--out", str(out), "--seconds", str(seconds)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = ended.stderr + ended.stdout
    runs = re.findall(r"number_of_executed_units: (\d+)|^#(\d+)", told, re.MULTILINE)
    log = out / f"{name}.log"
    log.write_text(told)
    return {
        "name": name,
        "inputs": max((int(first or second) for first, second in runs), default=0),
        "processor_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "failed": ended.returncode != 0,
        "log": str(log),
    }


def main() -> int:
    """Run all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, help="for all parsers together, one after another")
    parser.add_argument("--seconds", type=int, help="for each parser instead")
    parser.add_argument("--only", action="append", help="this parser; may be given several times")
    parser.add_argument("--out", type=Path, default=Path("fuzz-corpus"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        fuzz_one(chosen.one, chosen.out / chosen.one, chosen.seconds)
        return 0
    from targets import TARGETS

    names = [target.name for target in TARGETS if not chosen.only or target.name in chosen.only]
    seconds = chosen.seconds or int((chosen.hours or 0.1) * 3600 / len(names))
    rows = []
    for name in names:
        row = fuzz(name, chosen.out, seconds)
        rows.append(row)
        verdict = f"FAILED, see {row['log']}" if row["failed"] else "clean"
        print(
            f"{name:14} {row['inputs']:>10,} inputs {row['processor_s']:>9,.1f} s of a processor  {verdict}", flush=True
        )
    total_h = sum(row["processor_s"] for row in rows) / 3600
    print(f"{total_h:.2f} hours of a processor; {sum(row['failed'] for row in rows)} of {len(rows)} parsers failed")
    if chosen.json:
        chosen.json.write_text(json.dumps({"parsers": rows, "processor_h": total_h}, indent=1) + "\n")
    return int(any(row["failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
