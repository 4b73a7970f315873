% -- In: name, k_value (columns), from (type of the rows: u16, float or u8), clips (by bounds).
/* Four columns of a row as bf16, from `column` on, a multiple of 4; zeros where there is no row
 * or no column. */
DEVICE void ${name}(u32 *pairs, const ${from} *row, ${clips and "float2 bounds, " or ""}int column)
{
    pairs[0] = pairs[1] = 0;
% if k_value % 64 == 0 then
    if (!row)
        return;
% else
    if (!row || column >= ${k_value})
        return;
% end
% if from == "u8" then
    const u32 four = *(const u32 *)(row + column); /* whole numbers up to 255 are exact */
    pairs[0] = pack_bf16((float)(four & 255), (float)(four >> 8 & 255));
    pairs[1] = pack_bf16((float)(four >> 16 & 255), (float)(four >> 24));
% elseif from == "float" then
    u32 four[4];
    float x[4];

    load_words_4(four, row + column);
    for (int i = 0; i < 4; i++)
% if clips then
        x[i] = fminf(fmaxf(__uint_as_float(four[i]), bounds.x), bounds.y);
% else
        x[i] = __uint_as_float(four[i]);
% end
    pairs[0] = pack_bf16(x[0], x[1]);
    pairs[1] = pack_bf16(x[2], x[3]);
% else
    load_words_2(pairs, row + column);
% if clips then
    for (int i = 0; i < 2; i++)
        pairs[i] = pack_bf16(
                fminf(fmaxf(low_bf16(pairs[i]), bounds.x), bounds.y),
                fminf(fmaxf(high_bf16(pairs[i]), bounds.x), bounds.y));
% end
% end
}
