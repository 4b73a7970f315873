"""tests/support/gemma4.py -- What the tests of tiny Gemma 4 share, tests/models/test_gemma4_*.py."""
import json

import burin
import golden_logits


def text(variant):
    """Prompts of 150 tokens and fewer, longer than the windows, in one chunk and in several."""
    report = burin.Report()
    name = f"gemma4_tiny-{variant}-bf16"
    folder = burin.GOLDEN / name
    info = json.loads(burin.run([burin.binary(name), "info", "--json"]))
    for family in golden_logits.families(info):
        for options in ((1,), (2, "--batch-size", 13)):
            golden_logits.exact(report, name, folder, family, *options)
        clear, same, text = golden_logits.lower(
            report, name, folder, family, info["dims"]["n_vocab"])
        report.line(same == clear, text) # of e2b none is clear
    report.close()
