"""tests/support/reference_tokenizer.py -- Hugging Face's tokenizer of SmolLM2, built from the
vocabulary in a GGUF file. Wants the packages gguf and tokenizers; used to make golden data and
to compare speed, never in CI."""
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def from_gguf(path):
    reader = GGUFReader(path)
    field = lambda name: reader.fields["tokenizer.ggml." + name].contents()
    assert field("model") == "gpt2" and field("pre") == "smollm"
    tokens = field("tokens")
    merges = [tuple(merge.split(" ")) for merge in field("merges")]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([
        AddedToken(token, special=True, normalized=False)
        for token, kind in zip(tokens, field("token_type")) if kind == 3])
    return tokenizer
