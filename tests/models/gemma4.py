#!/usr/bin/env python3
"""tests/models/gemma4.py VARIANT text|image|images|video -- A tiny Gemma 4 against transformers on
the same weights; tests/tests.cmake registers one test each.

text: prompts of 150 tokens and fewer, longer than the windows, in one chunk and in several. The
others: a prompt with pictures, whose tokens see each other in 26B-A4B and 31B, likewise."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin
import golden_logits

report = burin.Report()
variant, kind = sys.argv[1:]
name = f"gemma4_tiny-{variant}-bf16"
folder = burin.GOLDEN / name
info = json.loads(burin.run([burin.binary(name), "info", "--json"]))


def text(family):
    for options in ((1,), (2, "--batch-size", 13)):
        golden_logits.exact(report, name, folder, family, *options)
    clear, same, what = golden_logits.lower(
        report, name, folder, info["dims"]["n_vocab"], "--target", family)
    report.line(same == clear, what) # of e2b none is clear


def pictures(family):
    # A picture whose tokens see each other is never cut, and may have 70 of them.
    chunk = 13 if variant in ("e2b", "e4b") else 70
    for options in ((1,), (2, "--batch-size", chunk)):
        golden_logits.exact(report, name, folder, family, *options, "--frames", 4, kind=kind)


for family in golden_logits.families(info):
    (text if kind == "text" else pictures)(family)
report.close()
