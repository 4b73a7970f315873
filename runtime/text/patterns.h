/* runtime/text/patterns.h -- The pattern that files mean without spelling it out: GPT-2's, in a
 * ByteLevel step and in the names of GGUF.   Radford et al. 2019 */
#ifndef BURIN_TEXT_PATTERNS_H
#define BURIN_TEXT_PATTERNS_H

#define BURIN_GPT2_PATTERN                                                                 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

#endif
