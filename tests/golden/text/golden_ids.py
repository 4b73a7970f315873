"""golden_ids.py -- What Hugging Face tokenizers make of the texts in cases.py.

    python3 tests/golden/text/golden_ids.py SmolLM2.gguf > tests/golden/text/smollm2_ids.json
    python3 tests/golden/text/golden_ids.py tests/golden/text/small.json \\
        > tests/golden/text/small_ids.json
    python3 tests/golden/text/golden_ids.py build/weights/gemma-vocab \\
        > tests/golden/text/gemma_ids.json

{"texts": [{"text", "plain", "specials", "decoded"}], "long": [{"text", "times", "n_ids",
"hash"}]}: ids with the names of special tokens taken as text and as tokens ("specials" only
where it differs), the text of the plain ids where it is not the text, and for what is too long
to write down the number of plain ids and their FNV-1a hash (64 bits, each id as 4 bytes, the
least first).

For a folder of tests/support/gemma_vocab.py, of the texts of cases.gemma(): {"tokenizer.json",
"gemma3.json": {"plain": [hash], "specials": [hash, "" where it does not differ]}, "decoded":
[{"ids", "text"}]}, the last of random ids of tokenizer.json. Needs the packages tokenizers (0.23.3 was used) and gguf."""
import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer

import cases

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
import reference_tokenizer


def fnv(ids):
    value = 0xCBF29CE484222325
    for i in ids:
        for byte in i.to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return "%016x" % value


def gemma(folder):
    result = {}
    texts = list(cases.gemma())
    for name in ("tokenizer.json", "gemma3.json"):
        tokenizer = Tokenizer.from_file(f"{folder}/{name}")
        hashes = []
        for plain in (True, False):
            tokenizer.encode_special_tokens = plain
            hashes.append([fnv(tokenizer.encode(text, add_special_tokens=False).ids)
                           for text in texts])
        result[name] = {"plain": hashes[0],
                        "specials": [b if a != b else "" for a, b in zip(*hashes)]}

    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    rng = random.Random(5)
    result["decoded"] = []
    for _ in range(200):
        ids = []
        for _ in range(rng.randint(1, 9)):
            # A piece, the bytes of a character, or bytes that make none: a run of bytes has
            # one kind of them.
            ids.append(rng.randrange(494, 255_999))
            made = rng.choice(["é", "漢", "🦙", "\U0001ccf3"]).encode()
            broken = rng.choice([made[:-1], made[1:], b"\xff", b"\xc0\x80", made[:-1] * 2])
            ids += [238 + byte for byte in rng.choice([b"", made, made * 2, broken])]
        text = tokenizer.decode(ids, skip_special_tokens=False)
        result["decoded"].append({"ids": ids, "text": text})
    return result


def main(path):
    if Path(path).is_dir():
        json.dump(gemma(path), sys.stdout, separators=(",", ":"))
        print()
        return
    from_gguf = reference_tokenizer.from_gguf
    tokenizer = from_gguf(path) if path.endswith(".gguf") else Tokenizer.from_file(path)

    def encode(text, plain):
        tokenizer.encode_special_tokens = plain
        return tokenizer.encode(text, add_special_tokens=False).ids

    texts = []
    for text in cases.HARD + list(cases.lines()):
        result = {"text": text, "plain": encode(text, True)}
        specials = encode(text, False)
        if specials != result["plain"]:
            result["specials"] = specials
        decoded = tokenizer.decode(result["plain"], skip_special_tokens=False)
        if decoded != text:
            result["decoded"] = decoded
        texts.append(result)
    long = []
    for text, times in cases.LONG:
        ids = encode(text * times, True)
        long.append({"text": text, "times": times, "n_ids": len(ids), "hash": fnv(ids)})
    json.dump({"texts": texts, "long": long}, sys.stdout, separators=(",", ":"))
    print()


main(sys.argv[1])
