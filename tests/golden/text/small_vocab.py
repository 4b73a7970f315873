"""small_vocab.py -- Trains tests/golden/text/small.json: a byte-level BPE of about 2,000 tokens
with Llama 3's pattern and Qwen's NFC, some bytes missing, and added tokens of every kind.

    python3 tests/golden/text/small_vocab.py TEXT... > tests/golden/text/small.json

Needs the package tokenizers. It trains on the lines of cases.py and the files given: for the
committed one the GPL-3 text (Debian's /usr/share/common-licenses/GPL-3)."""
import json
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

import cases

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def train(paths):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = [c for c in pre_tokenizers.ByteLevel.alphabet() if c not in "ĀāĂýþÿÁÀ"]
    trainer = trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=sorted(alphabet), show_progress=False)
    texts = [open(path, encoding="utf-8").read() for path in paths]
    tokenizer.train_from_iterator(list(cases.lines()) + texts, trainer)
    tokenizer.add_special_tokens([
        AddedToken("<|begin|>", special=True),
        AddedToken("<|end|>", special=True),
        AddedToken("<mask>", special=True, lstrip=True),
        AddedToken("<tail>", special=True, rstrip=True)])
    tokenizer.add_tokens([
        AddedToken("<think>", normalized=False),
        AddedToken("<think>ing", normalized=False),
        AddedToken("Kilo", single_word=True, normalized=False),
        AddedToken("café", normalized=True),
        AddedToken("    ", normalized=False)])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(
            single="<|begin|> $A", pair="<|begin|> $A $B",
            special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))])])
    return json.loads(tokenizer.to_str())


if __name__ == "__main__":
    small = train(sys.argv[1:])
    json.dump(small, sys.stdout, ensure_ascii=False, indent=None, separators=(",", ":"))
    print()
