#!/usr/bin/env python3
"""unicode_tables.py -- Writes runtime/text/unicode_tables.c: what the character classes of
Hugging Face tokenizers hold beyond Unicode 14, which every PCRE2 since 10.40 knows.

    python3 tests/golden/text/unicode_tables.py | clang-format > runtime/text/unicode_tables.c

Needs the package tokenizers (0.23.3 was asked: its Oniguruma knows Unicode 16, its Rust
Unicode 17), and a Python whose unicodedata is of Unicode 14 (3.11)."""
import sys
import unicodedata

import tokenizers
from tokenizers import Regex
from tokenizers.pre_tokenizers import Digits, Split

CATEGORIES = """Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc
                Cf""".split()

# A character of Unicode 14 of that category, bytes of UTF-8 and being Han or not.
STAND_INS = {
    ("Lu", 3): 0x1E00, ("Ll", 3): 0x1E01, ("Mn", 3): 0x0900, ("Mc", 3): 0x0903,
    ("Po", 3): 0x2020, ("So", 3): 0x2300, ("Cf", 3): 0x200B,
    ("Lo", 4): 0x10000, ("Lu", 4): 0x10400, ("Ll", 4): 0x10428, ("Lm", 4): 0x10780,
    ("Mn", 4): 0x101FD, ("Mc", 4): 0x11000, ("Nd", 4): 0x104A0, ("No", 4): 0x10107,
    ("Po", 4): 0x10100, ("Pd", 4): 0x10EAD, ("So", 4): 0x10137, ("Sm", 4): 0x1D6C1,
    ("Cf", 4): 0x110BD,
}
HAN = 0x20000


def characters():
    return (c for c in range(0x110000) if not 0xD800 <= c < 0xE000)


def members(pattern):
    """The characters that `pattern` matches one by one."""
    split = Split(Regex(pattern), "removed")
    found = set()
    for begin in range(0, 0x110000, 0x400):
        block = [chr(c) for c in range(begin, begin + 0x400) if not 0xD800 <= c < 0xE000]
        left = set("".join(piece for piece, _ in split.pre_tokenize_str("".join(block))))
        found.update(ord(c) for c in block if c not in left)
    return found


def ranges(items):
    """[(code point, value)] -> [[first, last, value]], adjacent and equal joined."""
    joined = []
    for c, value in items:
        if joined and joined[-1][1] == c - 1 and joined[-1][2] == value:
            joined[-1][1] = c
        else:
            joined.append([c, c, value])
    return joined


def stand_ins():
    category = {c: name for name in CATEGORIES for c in members(r"\p{%s}" % name)}
    han = members(r"\p{Han}")
    for c in characters():
        theirs = category.get(c, "Cn")
        if c == 0x180E:  # PCRE2 counts it as white space
            yield c, STAND_INS[theirs, 3]
        elif unicodedata.category(chr(c)) not in (theirs, "Co"):
            key = theirs, len(chr(c).encode())
            yield c, HAN if c in han else STAND_INS[key]


def numeric():
    digits = Digits(individual_digits=True)
    for c in characters():
        if len(digits.pre_tokenize_str("a" + chr(c) + "a")) == 3:
            yield c, None


def main():
    assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version
    for (name, length), c in STAND_INS.items():
        assert unicodedata.category(chr(c)) == name and len(chr(c).encode()) == length
    print(f"""\
/* unicode_tables.c -- Written by tests/golden/text/unicode_tables.py from the classes of
 * Hugging Face tokenizers {tokenizers.__version__}. Do not edit: edit that. */
#include "runtime/text/unicode.h"

const struct burin_stand_in burin_stand_ins[] = {{""")
    rows = ranges(stand_ins())
    for first, last, c in rows:
        print(f"    {{ 0x{first:05X}, 0x{last:05X}, 0x{c:05X} }},")
    print("};\nconst int burin_n_stand_ins = %d;\n" % len(rows))
    rows = ranges(numeric())
    print("const struct burin_range burin_numeric[] = {")
    for first, last, _ in rows:
        print(f"    {{ 0x{first:05X}, 0x{last:05X} }},")
    print("};\nconst int burin_n_numeric = %d;" % len(rows))


sys.exit(main())
