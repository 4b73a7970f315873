#!/usr/bin/env python3
"""tests/models/test_perplexity.py -- Perplexity against transformers running the same file
dequantized to f32: within 0.5 % in default mode, within 0.05 % with --exact.

Two texts in windows of 512 tokens, each alone, every token but a window's first scored.
By itself it takes the first windows of each text; --full takes all of both (minutes)."""
import gzip
import hashlib
import json
import math
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

MODES = [  # options, tolerance, windows of each text
    ([], 0.005, 30),
    (["--exact"], 0.0005, 10),
]

full = "--full" in sys.argv[1:]
golden = burin.golden_json("smollm2-135m", "perplexity.json")
binary, weights = burin.binary(burin.SMOLLM2), burin.smollm2_weights()
report = burin.Report()


def read(text):
    """The text as it was scored, or None where this machine has another one."""
    path = Path(text["path"])
    if not path.exists():
        return None
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return raw if hashlib.sha256(raw).hexdigest() == text["sha256"] else None


def compare(text, raw, options, tolerance, most):
    n = text["n_windows"] if full else min(most, text["n_windows"])
    scored = n * (text["window"] - 1)
    expected = math.exp(sum(text["nll"][:n]) / scored)
    with tempfile.NamedTemporaryFile() as part:
        # Cut inside the window behind the last: the tokens before it stay as they are.
        ends = text["window_ends"]
        part.write(raw if n == text["n_windows"] else raw[:(ends[n - 1] + ends[n]) // 2])
        part.flush()
        found = json.loads(burin.run([
            binary, "eval", "-m", weights, "--text", part.name, "--window", text["window"],
            *options, "--json"]))
    assert found["windows"] == n and found["scored"] == scored, (found, n, scored)
    error = found["perplexity"] / expected - 1
    report.line(abs(error) <= tolerance, f"{text['text']}, {' '.join(options) or 'default'}, "
                f"{n} windows: {found['perplexity']:.4f}, transformers {expected:.4f}: "
                f"{100 * error:+.4f} % (at most {100 * tolerance} %), "
                f"{found['tokens_per_second']:.0f} tokens/s")


compared = 0
for text in golden["texts"]:
    raw = read(text)
    if raw is None:
        print(f"[skip] {text['path']} is not here, or not the text that was scored")
        continue
    compared += 1
    for options, tolerance, most in MODES:
        compare(text, raw, options, tolerance, most)
if not compared:
    burin.skip("none of the texts is here")
report.close()
