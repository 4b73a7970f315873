#!/usr/bin/env python3
"""tests/models/test_cli.py -- The binary as a user meets it: what goes to stdout and what to
stderr, exit codes, errors that name what was found and what mends it, JSON that parses,
pipes, Ctrl-C, and a chat at a terminal."""
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

weights = burin.smollm2_weights()
binary = burin.binary(burin.SMOLLM2)
report = burin.Report()
clean = {k: v for k, v in os.environ.items() if not k.startswith(("BURIN_", "HF_"))}


class Done:
    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout.decode("utf-8", "replace")
        self.err = process.stderr.decode("utf-8", "replace")


def call(*arguments, stdin=b"", env=None, model=True, program=binary, **how):
    command = [program, *map(str, arguments)] + (["-m", weights] if model else [])
    return Done(subprocess.run(command, input=stdin, capture_output=True,
                               env={**clean, **(env or {})}, timeout=120, **how))


def expect(name, done, code, out=(), err=()):
    wrong = [f"exit code {done.code}, not {code}"] if done.code != code else []
    wrong += [f"stdout lacks {text!r}" for text in out if text not in done.out]
    wrong += [f"stderr lacks {text!r}" for text in err if text not in done.err]
    report.line(not wrong, name + "".join(f"\n       {w}" for w in wrong) +
                (f"\n       {done.out[-300:]!r}\n       {done.err[-600:]!r}" if wrong else ""))


def check(name, holds, found=""):
    report.line(holds, name if holds else f"{name}: {found!r}")


def parsed(done):
    try:
        return json.loads(done.out)
    except json.JSONDecodeError:
        return {}


# ---- Answers --------------------------------------------------------------------------

short = ("-n", 12)
answer = call("run", "Why is the sky blue?", *short)
expect("run answers", answer, 0)
check("stdout holds an answer and nothing else", len(answer.out.strip()) > 10, answer.out)
check("stderr is empty where it is no terminal", answer.err == "", answer.err)
piped = call("run", *short, stdin=b"Why is the sky blue?\n")
check("a pipe on stdin is the prompt", piped.out == answer.out, piped.out)
for name, arguments in {
    "words without quotes": ("run", "Why", "is", "the", "sky", "blue?"),
    "-p": ("run", "-p", "Why is the sky blue?"),
    "no command at all": ("-p", "Why is the sky blue?"),
    "-f -": ("run", "-f", "-"),
}.items():
    same = call(*arguments, *short, stdin=b"Why is the sky blue?")
    check(f"{name} give the same answer", same.out == answer.out, same.out + same.err)
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "p.txt").write_text("Why is the sky blue?\n")
    same = call("run", "-f", Path(folder) / "p.txt", *short)
    check("-f FILE gives the same answer", same.out == answer.out, same.out + same.err)

told = call("run", "Why is the sky blue?", "-v", *short)
expect("-v tells speed on stderr", told, 0, err=["tokens", "a second"])
check("and leaves stdout alone", told.out == answer.out, told.out)

made = parsed(call("run", "Why is the sky blue?", "--json", *short))
check("run --json is one object", made.get("text", "").strip() == answer.out.strip(), made)
check("-n counts tokens", made.get("tokens") == 12 and len(made.get("ids", [])) == 12, made)
check("an end by -n is a length", made.get("finish") == "length", made)

drawn = [call("run", "Name a colour.", "--temp", 1.5, "-s", seed, "-n", 16).out
         for seed in (1, 1, 2)]
check("the same seed draws the same", drawn[0] == drawn[1], drawn)
check("another seed draws another", drawn[0] != drawn[2], drawn)

first = parsed(call("run", "Name a colour.", "--temp", 1.5, "-n", 16, "--json"))
again = parsed(call("run", "Name a colour.", "--temp", 1.5, "-n", 16, "--json",
                    "-s", first.get("seed")))
check("a random seed is in the JSON, and draws the same again", first.get("text") and
      first == {**again, "prefill_ms": first["prefill_ms"], "decode_ms": first["decode_ms"]}, first)
first = call("run", "Name a colour.", "--temp", 1.5, "-n", 16)
seed = first.err.partition("--seed ")[2].split(" ")[0]
again = call("run", "Name a colour.", "--temp", 1.5, "-n", 16, "-s", seed)
check("and on stderr", again.out == first.out and again.err == "", first.err)

raw = call("run", "--raw", "The capital of France is", "-n", 3)
expect("--raw continues a text", raw, 0, out=["Paris"])
blind = call("run", "--image", "picture.png", "What is this?")
expect("a model without an encoder says so", blind, 2, err=["reads text alone: it has no encoder for --image"])
stopped = call("run", "--raw", "1, 2, 3, 4,", "-n", 30, "--stop", "8")
check("--stop ends before its text", "7" in stopped.out and "8" not in stopped.out, stopped.out)
one_word = call("run", "-sys", "You are a pirate.", "Who are you?", *short)
check("-sys changes the answer", one_word.code == 0 and
      one_word.out != call("run", "Who are you?", *short).out, one_word.out)
by_environment = call("run", "Why is the sky blue?", env={"BURIN_PREDICT": "12"})
check("options are read from the environment", by_environment.out == answer.out,
      by_environment.out)
by_environment = call("run", "Why is the sky blue?", *short, model=False,
                      env={"BURIN_MODEL": weights})
check("and the weights too", by_environment.out == answer.out, by_environment.err)
noted = call("run", "Hi", "-n", 1, "-ngl", 99)
expect("-ngl is accepted and told of", noted, 0, err=["-ngl does nothing here"])

# ---- Refusals -------------------------------------------------------------------------

expect("an empty prompt is refused", call("run", ""), 2, err=["empty"])
expect("an empty pipe is refused", call("run"), 2, err=["empty"])
long = "word " * 300
expect("a prompt beyond the context is refused with both numbers",
       call("run", long, "-c", 128), 1, err=["128", "tokens"])
expect("bytes that are not UTF-8 are refused with their place",
       call("run", stdin=b"abc\xff\xfe"), 2, err=["UTF-8", "3"])
expect("an unknown option is told what is near", call("run", "x", "--tempp", 1), 2,
       err=["unknown option --tempp", "--temp"])
expect("an unknown command is told what is near", call("evall"), 2, err=["eval"])
expect("a number out of range is refused with the range", call("run", "x", "--top-p", 2), 2,
       err=["--top-p goes from 0 to 1"])
expect("a context beyond the model's is refused", call("run", "x", "-c", 8193), 2,
       err=["8193", "8192"])
expect("a prompt that fills the context is told that an answer needs room",
       call("run", "--raw", "a " * 27, "-c", 28), 1,
       err=["the prompt has 28 tokens", "room for 27 beside an answer"])
expect("and is right where none is asked for", call("run", "--raw", "a " * 27, "-c", 28, "-n", 0), 0)
for arguments, says in {
    ("run", "x", "--top-p", 0): "--top-p is above 0",
    ("run", "x", "--target", "z80"): "no family z80",
    ("run", "x", "-c", 8193): "8193",
    ("eval", "--text", "/etc/passwd", "--window", 9999): "--window 9999 is beyond the 8192",
    ("eval", "--text", "/etc/passwd", "--score-from", 511): "--score-from 511",
    ("eval", "--text", "/no/such/text"): "/no/such/text",
    ("bench", "-p", 99999): "-p 99999: the model's context of 8192",
    ("bench", "-n", 64, "-p", 0, "-c", 64): "-n 64: --ctx-size of 64 tokens has room for 63",
}.items():
    expect(f"{' '.join(map(str, arguments))} is refused before weights are looked for",
           call(*arguments, "-m", "/no/weights", model=False), 2, err=[says])
many = call("run", "Hi", "-n", 1, "-t", 1000)
expect("more threads than processors are told of, and not started", many, 0,
       err=["--threads 1000: this machine has"])

feeder = subprocess.Popen(["head", "-c", "1000000000", "/dev/zero"], stdout=subprocess.PIPE)
huge = subprocess.Popen([binary, "run", "-m", weights], stdin=feeder.stdout, env=clean,
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
feeder.stdout.close()
said = huge.stderr.read().decode()
_, status, usage = os.wait4(huge.pid, 0)
feeder.kill()
feeder.wait()
check("a gigabyte on stdin is refused by its bytes, with both numbers", "8192 tokens of 81" in said
      and os.waitstatus_to_exitcode(status) == 1, said)
check("and not held", usage.ru_maxrss < 128 * 1024, usage.ru_maxrss)
expect("two prompts are refused", call("run", "a", "-p", "b"), 2, err=["once"])
expect("a file that is not there", call("run", "-f", "/no/such/file"), 2, err=["/no/such/file"])
expect("weights that are not there", call("run", "x", "-m", "/no/such.gguf", model=False), 4,
       err=["/no/such.gguf"])
with tempfile.TemporaryDirectory() as folder:
    alone = shutil.copy(binary, Path(folder) / "alone")
    missing = call("run", "x", model=False, program=alone, cwd=folder,
                   env={"HOME": folder, "XDG_CACHE_HOME": folder})
    expect("no weights: the places looked and how to get them", missing, 4,
           err=["build/weights", "hub", "demo-weights smollm2-135m", folder])
    os.symlink("loop", Path(folder) / "loop")
    os.mkfifo(Path(folder) / "fifo")
    for name in ("loop", "fifo", "."):
        expect(f"{name} instead of weights",
               call("run", "x", "-m", Path(folder) / name, model=False), 4, err=[folder])
    shut = Path(folder) / "shut.gguf"
    shut.write_bytes(b"GGUF")
    shut.chmod(0)
    if not os.access(shut, os.R_OK):  # root may read it
        expect("weights that we may not read", call("run", "x", "-m", shut, model=False), 4,
               err=["Permission denied"])
    odd = call("run", "x", "-m", folder + "/a\033[31mb" + "x" * 9000, model=False)
    check("a name reaches the terminal as text, and of bounded length", odd.code == 4 and
          "\033" not in odd.err and "a\\x1b[31mb" in odd.err and len(odd.err) < 1000, odd.err)
    wrong = Path(folder) / "wrong.gguf"
    wrong.write_bytes(b"GGUF" + bytes(60))
    expect("broken weights", call("run", "x", "-m", wrong, model=False), 4, err=["wrong.gguf"])
small = call("plan", "--card", "64MiB")
expect("what does not fit: exit code 3, by how much, who is largest", small, 3,
       out=["does not fit", "short by", "weights"])
expect("run refuses the same way", call("run", "x", "--vram-limit", "64MiB"), 3,
       err=["short by", "The largest part is kv", "Smallest change: --vram-limit "])
mended = call("plan", "--card", "400MiB", "--parallel", 8)
expect("the advice is one option", mended, 3, out=["Smallest change: --"])
option, value = mended.out.split("Smallest change: ")[-1].split()[:2] if mended.code == 3 else "--x 1".split()
arguments = {"--card": "400MiB", "--parallel": "8"}
arguments[option] = value
expect("and it mends it", call("plan", *[w for pair in arguments.items() for w in pair]), 0)
for command in (["run", "Hi", "-n", "4"], ["run", "Hi", "-n", "4", "--json"], ["info"],
                ["tokenize", "word " * 9000], ["plan", "--json"], ["run", "--help"]):
    with open("/dev/full", "wb") as full:
        process = subprocess.run([binary, *command, "-m", weights], stdout=full,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=clean,
                                 bufsize=0)
    check(f"a full disk under stdout is an error of {' '.join(command)[:16]}, with its reason",
          process.returncode == 1 and b"No space left" in process.stderr, process.stderr)

# ---- JSON and help --------------------------------------------------------------------

with tempfile.TemporaryDirectory() as folder:
    text = Path(folder) / "text.txt"
    text.write_text("It was the best of times, it was the worst of times. " * 20)
    ids = Path(folder) / "ids.txt"
    ids.write_text("504 3575 282 4649\n\n1 2 3\n")
    for command, keys in {
        ("plan",): "model variant quant family card elements weights_bytes programs kv owners "
                   "fits short_by_bytes advice",
        ("info",): "model variant quant families weights",
        ("tokenize", "a <|im_end|> 12"): "n_tokens tokens",
        ("eval", "--text", text, "--window", 64): "perplexity nll scored tokens_per_second",
        ("eval", "--ids", ids): "sequences",
        ("bench", "-p", "16", "-n", "4", "-r", "1", "-t", "1"): "rows bandwidth weights_bytes",
    }.items():
        found = parsed(call(*command, "--json"))
        lacking = [key for key in keys.split() if key not in found]
        check(f"{command[0]} --json has its keys", found and not lacking, lacking or found)
    dump = Path(folder) / "dump"
    call("eval", "--ids", ids, "--dump-logits", dump)
    check("--dump-logits writes a row a position", dump.stat().st_size == 7 * 49152 * 4,
          dump.stat().st_size)

pieces = parsed(call("tokenize", "a <|im_end|> 12", "--json"))["tokens"]
check("special tokens in a text are plain text", all(p["kind"] == "normal" for p in pieces), pieces)
check("pieces put together are the text",
      "".join(p["piece"] for p in pieces) == "a <|im_end|> 12", pieces)
marked = parsed(call("tokenize", "a <|im_end|> 12", "--json", "--parse-special"))["tokens"]
check("unless asked for", any(p["kind"] == "special" for p in marked), marked)
check("tokenize --ids is a line of ids",
      call("tokenize", "--ids", "a <|im_end|> 12").out.split() == [str(p["id"]) for p in pieces])

rows = parsed(call("bench", "-p", 0, "-n", 4, "-r", 2, "-t", 1, "-o", "json")).get("rows", [{}])
share, note = rows[0].get("bandwidth_share"), rows[0].get("bandwidth_note", "")
check("a share of the bandwidth is a number of at most 1, or comes with the reason why not",
      (share is not None and share <= 1) == (note is None), rows)
with tempfile.TemporaryDirectory() as folder:
    text = Path(folder) / "line.txt"
    text.write_text("a 12\n")
    pieces = parsed(call("tokenize", "--json", "-f", text))
    check("tokenize -f keeps the last newline", pieces.get("text_bytes") == 5, pieces)
    piped = parsed(call("tokenize", "--json", stdin=b"a 12\n"))
    check("and a pipe's", piped.get("text_bytes") == 5, piped)

for command in ("run", "eval", "bench", "tokenize", "plan", "info"):
    page = call(command, "--help", model=False)
    expect(f"{command} --help", page, 0, out=["usage:", "examples:", burin.SMOLLM2])
    check(f"{command} --help is one screen", len(page.out.splitlines()) <= 50,
          len(page.out.splitlines()))
expect("--help", call("--help", model=False), 0,
       out=["usage:", "exit codes:", "is missing or wrong (weights, a driver, NVRTC)"])
expect("--version", call("--version", model=False), 0, out=[burin.SMOLLM2])

# ---- The plan before there is a binary --------------------------------------------------

wanted = ("--card", "8GiB", "--threads", "2", "--ctx-size", "1000", "--parallel", "3", "--json")
before = Done(subprocess.run([burin.ROOT / "gen" / "gen", "plan", "--model", "llama.lua", *wanted],
                             stdin=subprocess.DEVNULL, capture_output=True, env=clean))
expect("gen plan answers without weights", before, 0)
after = parsed(call("plan", *wanted))
before = parsed(before)
differ = {key for key in after if before.get(key) != after[key]}
check("and says what the binary says, but for the tokenizer of the weights",
      differ <= {"owners", "total_bytes", "most_sequences"} and
      [o for o in before["owners"] if o["owner"] not in ("tokenizer", "rounding")] ==
      [o for o in after["owners"] if o["owner"] not in ("tokenizer", "rounding")], differ)

# ---- Signals and terminals ------------------------------------------------------------

endless = [binary, "run", "-m", weights, "--raw", "Once upon a time", "--ignore-eos"]
process = subprocess.Popen(endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, env=clean, bufsize=0)
begin = b""
while len(begin) < 40 and (more := process.stdout.read(40)):
    begin += more
process.send_signal(signal.SIGINT)
rest, said = process.communicate(timeout=60)
check("Ctrl-C ends with 130", process.returncode == 130, process.returncode)
whole = call("run", "--raw", "Once upon a time", "--ignore-eos", "-n", 400).out.encode()
got = begin + rest
check("and what was made until then is there", len(got) >= 40 and
      (whole.startswith(got) or got.startswith(whole)), got)

process = subprocess.Popen(endless, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           stdin=subprocess.DEVNULL, env=clean, bufsize=0)
process.stdout.read(10)
process.stdout.close()
check("a reader that goes away ends it", process.wait(timeout=60) != 0)


class Terminal:
    """The binary at a pseudo terminal."""

    def __init__(self, *arguments):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.execve(binary, [binary, *map(str, arguments), "-m", weights],
                      {**clean, "TERM": "xterm"})
        self.pid = pid
        self.seen = ""

    def wait_for(self, text, seconds=60):
        """What came until `text` did."""
        deadline = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < deadline:
            ready, _, _ = select.select([self.fd], [], [], 0.2)
            if not ready:
                continue
            try:
                self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
            except OSError:  # it has ended
                break
        before, found, self.seen = self.seen.partition(text)
        return before if found else None

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self, seconds=60):
        """Its exit code; None where it had to be killed."""
        self.wait_for("\0 never", 5)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


chat = Terminal("-n", 24)
greeting = chat.wait_for("> ")
check("alone at a terminal it chats", greeting is not None and "/clear" in greeting, greeting)
chat.type("My name is Ada. Please remember it.\n")
check("it answers", bool(chat.wait_for("> ")))
chat.type("What is my name?\n")
second = chat.wait_for("> ")
chat.type("/clear\n")
chat.wait_for("> ")
chat.type("What is my name?\n")
anew = chat.wait_for("> ")
check("what was said before counts, until /clear", second and anew and second != anew, anew)
chat.type("/exit\n")
check("/exit ends with 0", chat.end() == 0)

chat = Terminal("--ignore-eos")
chat.wait_for("> ")
chat.type("Tell me a long story.\n")
chat.wait_for("\r\n")
time.sleep(0.3)
chat.type("\x03")
check("Ctrl-C ends an answer and the chat goes on", chat.wait_for("> ") is not None)
chat.type("\x03")
check("at the prompt it ends the chat with 130", chat.end() == 130)

report.close()
