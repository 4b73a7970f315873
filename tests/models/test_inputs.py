#!/usr/bin/env python3
"""tests/models/test_inputs.py -- Large and hard texts: tokenized in seconds, loading included,
and refused with both numbers where they are longer than the context."""
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

SECONDS = 5

binary = burin.binary(burin.SMOLLM2)
weights = burin.smollm2_weights()
report = burin.Report()


def call(command, text, *options):
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        begin = time.monotonic()
        done = subprocess.run([binary, command, "-m", weights, "-f", file.name, *options],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
        return done, time.monotonic() - begin


texts = {
    "a word of 100,000 letters": ("pneumonoultramicroscopic" * 4200)[:100_000],
    "100,000 times the same letter": "a" * 100_000,
    "1 MB of emoji": "😀🦙👩‍🚀🇫🇷" * 32_000,
    "1 MB of spaces": " " * 1_000_000,
    "100,000 newlines": "\n" * 100_000,
    "a number of 10,000 digits": "1234567890" * 1000,
    "nothing": "",
}
for name, text in texts.items():
    done, seconds = call("tokenize", text, "--ids")
    report.line(done.returncode == 0 and seconds < SECONDS,
                f"{name}: {len(done.stdout.split())} tokens in {seconds:.2f} s")
    if not text:
        continue
    n_tokens = len(done.stdout.split())
    done, seconds = call("run", text, "-n", "1", "--ctx-size", "256", "--raw")
    said = done.stderr.decode()
    by_bytes = f"more than {256 * 81} bytes, which is 256 tokens of 81"  # the longest token's
    report.line(done.returncode == 1 and seconds < SECONDS and "256" in said
                and (by_bytes in said or f"has {n_tokens} tokens" in said),
                f"{name}, as a prompt beyond the context: {said.strip()[:120]!r}")
report.close()
