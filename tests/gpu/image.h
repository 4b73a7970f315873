/* tests/gpu/image.h -- What compiler.cpp gives for machine code and execute.cpp loads: this, then a
 * shared object of so many bytes. */
#pragma once

#include <stdint.h>

#define IMAGE_MAGIC "burin so"

struct image {
    char magic[8]; /* without its zero */
    uint64_t bytes;
};
