"""gguf_tokenizer.py -- The tokenizer.json that a GGUF file of SmolLM2 was made from: its tokens
and merges, with the steps that Hugging Face publishes for it (facts of the model, not of the
file, which only says "smollm").

    python3 tests/golden/text/gguf_tokenizer.py MODEL.gguf > tokenizer.json

Needs the package gguf."""
import json
import sys

from gguf import GGUFReader

CONTROL = 3


def tokenizer_json(path):
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    assert fields["tokenizer.ggml.pre"].contents() == "smollm"
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": token, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True}
            for i, token in enumerate(tokens) if types[i] == CONTROL],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": True}]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": [merge.split(" ") for merge in merges]},
    }


if __name__ == "__main__":
    json.dump(tokenizer_json(sys.argv[1]), sys.stdout, ensure_ascii=False)
