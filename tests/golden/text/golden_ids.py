"""golden_ids.py -- What Hugging Face tokenizers make of the texts in cases.py.

    python3 tests/golden/text/golden_ids.py SmolLM2.gguf > tests/golden/text/smollm2_ids.json
    python3 tests/golden/text/golden_ids.py tests/golden/text/small.json \\
        > tests/golden/text/small_ids.json

{"texts": [{"text", "plain", "specials", "decoded"}], "long": [{"text", "times", "n_ids",
"hash"}]}: ids with the names of special tokens taken as text and as tokens ("specials" only
where it differs), the text of the plain ids where it is not the text, and for what is too long
to write down the number of plain ids and their FNV-1a hash (64 bits, each id as 4 bytes, the
least first). Needs the packages tokenizers (0.23.3 was used) and gguf."""
import json
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


def main(path):
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
