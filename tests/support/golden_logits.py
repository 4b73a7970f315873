"""tests/support/golden_logits.py -- A tiny checkpoint's logits against those of transformers on
the same weights, in f32 and in lower precision: what tests/models/test_tiny_logits.py and
gemma4.py share. A folder of tests/golden holds model.*, prompts.txt, logits.f32 and
reference.json; prompts_KIND.txt and logits_KIND.f32 where there are prompts of several kinds."""
import json
import math

import burin

# Both sides sum some hundred products of size one in f32, in another order.
TOLERANCE = 1e-4

# Transformers in bf16 keeps 8 bits of everything: weights, sums, the stream between layers. We
# keep f32 but for the KV cache in bf16 (a quarter of its error), and for what goes into a product
# with bf16 weights: bf16 (half of it), or with quantized ones: int8, where 32 share a scale, so
# that most have 5 or 6 bits (1.3 to 1.5 times; cut off instead of rounded it would be 2.4).
# Errors are root mean squares over all logits: the largest of thousands is one draw.
RATIO = 1.5


def compare(name, folder, *options, kind=""):
    """Our logits, and those of transformers in f32."""
    kind = kind and "_" + kind
    weights, = folder.glob("model.*")
    found = burin.floats(burin.run(
        [burin.binary(f"tests/logits-{name}"), "-m", weights, *options],
        input=(folder / f"prompts{kind}.txt").read_bytes()))
    expected = burin.floats((folder / f"logits{kind}.f32").read_bytes())
    assert len(found) == len(expected), (name, len(found), len(expected))
    return found, expected


def exact(report, name, folder, family, threads, *options, kind=""):
    found, expected = compare(name, folder, "--target", family, "--exact", "--kv-cache-dtype",
                              "f32", "--threads", threads, *options, kind=kind)
    # NaN compares false, so "all within" fails on it.
    within = all(abs(a - b) <= TOLERANCE for a, b in zip(found, expected))
    worst = max(abs(a - b) for a, b in zip(found, expected))
    what = " ".join([f"{threads} threads", *map(str, options)])
    report.line(within, f"{name}, {family}, --exact, KV f32, {what}: {len(found)} "
                        f"logits, largest error {worst:.2e} (at most {TOLERANCE:.0e})")


def best_two(row):
    first = max(range(len(row)), key=row.__getitem__)
    return first, row[first] - max(x for i, x in enumerate(row) if i != first)


def lower(report, name, folder, n_vocab, *options, kind=""):
    """In lower precision; returns how many positions have a clear best token, how many of these
    agree, and that as a text."""
    key = "error_in_bf16" + (kind and "_" + kind)
    reference = json.loads((folder / "reference.json").read_text())[key]
    found, expected = compare(name, folder, *options, kind=kind)
    rms = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected)) / len(found))
    what = f"{name}, {' '.join(map(str, options))}{kind and ', ' + kind}"
    report.line(rms <= RATIO * reference["rms"],
                f"{what}: error {rms:.4f}, transformers in bf16 {reference['rms']:.4f}: "
                f"{rms / reference['rms']:.2f} times (at most {RATIO})")

    clear = same = 0
    for at in range(0, len(found), n_vocab):
        token, margin = best_two(expected[at:at + n_vocab])
        if margin > 2 * reference["max"]:
            clear += 1
            same += token == best_two(found[at:at + n_vocab])[0]
    return clear, same, f"{what}: the same best token at {same} of {clear} clear positions of " \
                        f"{len(found) // n_vocab}"


def families(info):
    """Those that run here, each once."""
    return list(dict.fromkeys(f["family"] for f in info["families"] if f["runs_here"]))
