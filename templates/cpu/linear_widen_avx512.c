% -- In: name, weight (the format's module).
% local w = weight
% local zero = w.nibbles and 8 or 128 -- the byte or nibble that means 0
/* Columns of a tile of ${w.name} as floats, as exact as ${w.name} is. */
static void ${name}(
        float *restrict panel, /* (n_cols, 32) */
        const uint8_t *restrict tile,
        int n_cols)
{
% if w.name == "f16" then
    for (int i = 0; i < n_cols * 2; i++)
        _mm512_storeu_ps(panel + i * 16, burin_load_f16(tile + i * 32));
% elseif w.name == "bf16" then
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);

    for (int i = 0; i < n_cols * 2; i++) {
        const __m512i pair = _mm512_loadu_si512(tile + i / 4 * 128 + i % 2 * 64);
        const __m512i even = _mm512_slli_epi32(pair, 16);
        const __m512i odd = _mm512_and_si512(pair, upper);
        _mm512_storeu_si512(panel + i * 16, i % 4 < 2 ? even : odd);
    }
% else
    const __m512i lowest = _mm512_set1_epi32(${w.nibbles and 15 or 255});

    for (int group = 0; group < n_cols / 32; group++, tile += ${w.group_bytes}, panel += 32 * 32)
        for (int half = 0; half < 2; half++) {
            const uint8_t *quants = tile + ${w.quants_at} + half * ${w.nibbles and 256 or 512};
            const __m512 d = burin_load_f16(tile + half * 32);
% if w.minimum then
            const __m512 m = burin_load_f16(tile + 64 + half * 32);
% else
            const __m512 m = _mm512_mul_ps(d, _mm512_set1_ps(-${zero}.0f));
% end
            for (int i = 0; i < 32; i++) { /* q * d is exact, so one rounding is left */
% if w.nibbles then
                const __m512i four = _mm512_loadu_si512(quants + i % 16 / 4 * 64);
                const int shift = i % 4 * 8 + i / 16 * 4;
% else
                const __m512i four = _mm512_loadu_si512(quants + i / 4 * 64);
                const int shift = i % 4 * 8;
% end
                const __m512i moved = _mm512_srli_epi32(four, (unsigned)shift);
                const __m512 q = _mm512_cvtepi32_ps(_mm512_and_si512(moved, lowest));
                _mm512_storeu_ps(panel + i * 32 + half * 16, _mm512_fmadd_ps(q, d, m));
            }
        }
% end
}
