#!/usr/bin/env python3
"""tests/models/test_greedy.py -- The most probable next token, against transformers running
the same file dequantized to f32: 10 prompts, 64 positions each, teacher-forced (every
position sees the reference's tokens, so one difference does not cause the next).

Default mode: at least 97 % equal, and where not, the reference holds our token for at most
0.3 nats less probable than its own. --exact: all equal, except where the reference's two best
are as good as tied."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

SHARE = 0.97
NATS = 0.3
TIE = 1e-4  # nats: less than f32 sums in two orders differ by

golden = burin.golden_json("smollm2-135m", "greedy.json")
weights = burin.smollm2_weights()
logits = burin.binary(f"tests/logits-{burin.SMOLLM2}")
report = burin.Report()


def compare(mode, *options):
    total = equal = 0
    worst = 0.0
    for row in golden["rows"]:
        first = row["n_prompt"] - 1
        ids = row["ids"][:-1]  # what follows the last is not asked
        lines = burin.run([logits, "-m", weights, "--argmax", "--from", first, *options],
                          input=(" ".join(map(str, ids)) + "\n").encode()).decode().splitlines()
        assert len(lines) == len(row["top_ids"]), (len(lines), len(row["top_ids"]))
        for line, top, log_probs in zip(lines, row["top_ids"], row["top_log_probs"]):
            position, ours, _ = line.split()
            total += 1
            if int(ours) == top[0]:
                equal += 1
                continue
            kept = dict(zip(top, log_probs))
            # Not among the kept ones: at least as far as the last of them.
            distance = log_probs[0] - kept.get(int(ours), log_probs[-1])
            worst = max(worst, distance)
            print(f"       {mode}: position {position} of {row['prompt'][:30]!r}: {ours} for "
                  f"{top[0]}, {distance:.4f} nats")
    return total, equal, worst


total, equal, worst = compare("default")
report.line(equal >= SHARE * total and worst <= NATS,
            f"default: {equal} of {total} equal ({100 * equal / total:.2f} %, at least "
            f"{100 * SHARE:.0f} %), differences up to {worst:.3f} nats (at most {NATS})")
for kv in ("f32", "bf16"):
    total, equal, worst = compare(f"--exact, KV {kv}", "--exact", "--kv-cache-dtype", kv)
    bound = TIE if kv == "f32" else NATS  # the cache is rounded to bf16
    report.line(worst <= bound, f"--exact, KV {kv}: {equal} of {total} equal, differences up "
                                f"to {worst:.5f} nats (at most {bound})")
report.close()
