"""tests/support/memory.py -- What a run obtains against its plan: each owner to the byte, and the
process' anonymous memory, sampled every 20 ms from its first moment."""
import json
import subprocess
import sys
import time
from pathlib import Path

import burin

INTERVAL = 0.02
OWNERS = ("weights", "arena", "inputs", "encoder cache", "slots", "kv", "tokenizer", "threads")


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
    run = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    most, looks = 0, 0
    while run.poll() is None:
        most = max(most, anonymous_bytes(run.pid))
        looks += 1
        time.sleep(INTERVAL)
    output = run.stdout.read()
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {run.returncode}")
    return most, looks, output


def compare(report, what, plan, run, margin):
    """`plan` and `run` are commands that print JSON. Returns what the run printed."""
    planned = {owner["owner"]: owner["bytes"] for owner in json.loads(burin.run(plan))["owners"]}
    most, looks, output = sample(run)
    said = json.loads(output)
    obtained = {o["owner"]: o["obtained"] for o in said["owners"]}
    for owner in OWNERS:
        if owner in planned or owner in obtained:
            report.line(planned.get(owner) == obtained.get(owner),
                        f"{what}: {owner}: planned {planned.get(owner)}, "
                        f"obtained {obtained.get(owner)}")
    total = sum(planned.values())
    report.line(looks > 5 and most <= total + margin,
                f"{what}: anonymous memory {most / 2**20:.1f} MiB at most in {looks} looks, "
                f"planned {total / 2**20:.1f} MiB (and {margin >> 20} MiB)")
    return said
