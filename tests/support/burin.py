"""tests/support/burin.py -- What the scripts of tests/models share: where binaries, weights
and golden data are, and how a test is skipped."""
import array
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
BIN = Path(os.environ.get("BURIN_BIN", ROOT / "build" / "bin"))
SMOLLM2 = "llama-smollm2-135m-q4_1"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def binary(name):
    path = BIN / name
    if not path.exists():
        skip(f"{path} is not built")
    return str(path)


def smollm2_weights():
    found = sorted((ROOT / "build" / "weights").rglob("SmolLM2-135M-Instruct.Q4_1.gguf"))
    if not found:
        skip("no weights: tools/demo-weights smollm2-135m")
    return str(found[0])


def run(command, **how):
    """The standard output of a command that must succeed."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, **how)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}")
    return done.stdout


def golden_json(*path):
    return json.loads(GOLDEN.joinpath(*path).read_text())


def floats(raw):
    values = array.array("f")
    values.frombytes(raw)
    return values


class Report:
    """Prints a line for each thing compared, and fails at the end if one did not hold."""

    def __init__(self):
        self.failed = 0

    def line(self, holds, text):
        self.failed += not holds
        print(f"[{' ok ' if holds else 'FAIL'}] {text}", flush=True)

    def close(self):
        sys.exit(1 if self.failed else 0)
