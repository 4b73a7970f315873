#!/usr/bin/env python3
"""tests/models/test_memory.py -- The plan against what a run obtains.

Weights, arena, KV, tokenizer, threads: obtained is planned, to the byte; and the process'
anonymous memory is never more than 32 MiB above the plan: packing streams rows and holds no second
copy of a tensor."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin
import memory

MARGIN = 32 << 20  # libc, stacks of the process, page tables

binary = burin.binary(burin.SMOLLM2)
weights = burin.smollm2_weights()
report = burin.Report()
for options in (["--threads", "1"], ["--threads", "2"], ["--threads", "2", "--exact"],
                ["--threads", "2", "--ctx-size", "1024", "--kv-cache-dtype", "f32"]):
    memory.compare(
        report, " ".join(options), [binary, "plan", "-m", weights, *options, "--json"],
        [binary, "run", "-m", weights, *options, "--json", "-n", "64", "--ignore-eos",
         "Why is the sky blue?"], MARGIN)
report.close()
