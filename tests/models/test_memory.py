#!/usr/bin/env python3
"""tests/models/test_memory.py -- The plan against what a run obtains.

Weights, arena, KV, tokenizer, threads: obtained is planned, to the byte; and the process'
anonymous memory, sampled every 20 ms from its first moment, is never more than 32 MiB above
the plan: packing streams rows and holds no second copy of a tensor."""
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

MARGIN = 32 << 20  # libc, stacks of the process, page tables
INTERVAL = 0.02

binary = burin.binary(burin.SMOLLM2)
weights = burin.smollm2_weights()
report = burin.Report()


def anonymous_bytes(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def sample(command):
    """The largest anonymous memory of a run, how often it was looked at, and its output."""
    run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL)
    most, looks = 0, 0
    while run.poll() is None:
        most = max(most, anonymous_bytes(run.pid))
        looks += 1
        time.sleep(INTERVAL)
    output = run.stdout.read()
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {run.returncode}")
    return most, looks, output


for options in (["--threads", "1"], ["--threads", "2"], ["--threads", "2", "--exact"],
                ["--threads", "2", "--ctx-size", "1024", "--kv-cache-dtype", "f32"]):
    what = " ".join(options)
    plan = json.loads(burin.run([binary, "plan", "-m", weights, *options, "--json"]))
    planned = {owner["owner"]: owner["bytes"] for owner in plan["owners"]}

    most, looks, output = sample([
        binary, "run", "-m", weights, *options, "--json", "-n", "64", "--ignore-eos",
        "Why is the sky blue?"])
    obtained = {o["owner"]: o["obtained"] for o in json.loads(output)["owners"]}
    for owner in ("weights", "arena", "kv", "tokenizer", "threads"):
        report.line(planned.get(owner) == obtained.get(owner),
                    f"{what}: {owner}: planned {planned.get(owner)}, "
                    f"obtained {obtained.get(owner)}")
    total = sum(planned.values())
    report.line(looks > 5 and most <= total + MARGIN,
                f"{what}: anonymous memory {most / 2**20:.1f} MiB at most in {looks} looks, "
                f"planned {total / 2**20:.1f} MiB (and 32 MiB)")
report.close()
