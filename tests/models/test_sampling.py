#!/usr/bin/env python3
"""tests/models/test_sampling.py -- `run` draws as the weights' authors mean it, says so, and lets
the user's word count most. SmolLM2's file says nothing of it, so it gets a head that does."""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin
import gemma_vocab

weights = Path(burin.smollm2_weights())
binary = burin.binary(burin.SMOLLM2)
report = burin.Report()
ALIGNMENT = 32


def with_keys(data, more):
    """The same GGUF file, with keys in f32 and i32 more."""
    keys = gemma_vocab.Keys(data)
    head = bytearray(data[:keys.at])
    struct.pack_into("<Q", head, 16, keys.n + len(more))
    for name, value in more.items():
        kind = 6 if isinstance(value, float) else 5
        head += struct.pack("<Q", len(name)) + name.encode() + struct.pack(
            "<If" if kind == 6 else "<Ii", kind, value)
    (n_tensors,) = struct.unpack_from("<Q", data, 8)
    for _ in range(n_tensors):
        begin = keys.at
        keys.text()
        (n_dims,) = keys.take("<I")
        keys.take(f"<{n_dims}QIQ")
        head += data[begin:keys.at]
    head += bytes(-len(head) % ALIGNMENT)
    return bytes(head) + data[keys.at + -keys.at % ALIGNMENT:]


def run(path, *arguments):
    done = subprocess.run([binary, "run", "Name a colour.", "-n", "8", "-m", path, *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def sampling(path, *arguments):
    code, out, _ = run(path, "--json", *arguments)
    return {k: round(v, 4) for k, v in json.loads(out)["sampling"].items()} if code == 0 else code


def check(name, found, wanted):
    report.line(found == wanted, name if found == wanted else f"{name}: {found!r}, not {wanted!r}")


check("weights that say nothing are drawn greedily", sampling(weights),
      {"temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0})
with tempfile.TemporaryDirectory() as folder:
    own = Path(folder) / "own.gguf"
    own.write_bytes(with_keys(weights.read_bytes(), {
        "general.sampling.temp": 0.75, "general.sampling.top_k": 40,
        "general.sampling.top_p": 0.5}))
    check("what they say counts", sampling(own),
          {"temperature": 0.75, "top_k": 40, "top_p": 0.5, "min_p": 0})
    check("and the user's word more", sampling(own, "--temp", "0.1", "--top-k", "0"),
          {"temperature": 0.1, "top_k": 0, "top_p": 0.5, "min_p": 0})
    code, out, err = run(own, "-s", "3")
    check("it is told on stderr", (code, "--temp 0.75 --top-k 40 --top-p 0.5" in err), (0, True))
    again = run(own, "-s", "3", "--temp", "0.75")
    check("and asked for it draws the same without a word", again[1:], (out, ""))
    check("--temp 0 is greedy", run(own, "--temp", "0"), run(weights))

    ids = json.loads(run(weights, "--json")[1])["ids"]
    own.write_bytes(with_keys(weights.read_bytes(), {"tokenizer.ggml.eot_token_id": ids[2]}))
    made = json.loads(run(own, "--json")[1])
    check("what they say ends an answer does", (made["finish"], made["ids"]), ("stop", ids[:2]))
report.close()
