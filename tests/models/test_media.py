#!/usr/bin/env python3
"""tests/models/test_media.py -- What a binary with an encoder says of its helper: which layers
of the sandbox hold, and what is missing where the helper is."""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

binary = burin.binary("gemma4_tiny-e2b-bf16")
burin.binary("burin-media")
report = burin.Report()


def info(program, *options):
    done = subprocess.run([program, "info", *options], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


media = json.loads(info(binary, "--json"))["media"]
for layer in ("seccomp", "privileges", "limits"):
    report.line(media[layer] is True, f"info --json: {layer} holds")
report.line("landlock" in media and "video" in media, "and whether Landlock and video are there")
text = info(binary)
report.line("sandbox: seccomp holds, Landlock" in text, "info says it in words")

with tempfile.TemporaryDirectory() as folder:
    alone = shutil.copy(binary, folder)
    text = info(alone)
    report.line("media     none:" in text and "tools/packages installs" in text,
                "a binary alone says what brings the helper")
    report.line("missing" in json.loads(info(alone, "--json"))["media"], "and says it in JSON")

report.close()
