% -- In: name, x (format of the rows), x_stride (elements), slots (choices that share a row of x: 1,
% -- or as C spells it).
/* The rows of x that choices are about, one behind the other. */
static void ${name}(
        ${x.c_type} *restrict to,
        const ${x.c_type} *restrict x,
        const int32_t *restrict choices,
        int n_rows)
{
    for (int i = 0; i < n_rows; i++) {
        const size_t row = (size_t)(choices[i]${slots == 1 and "" or " / " .. slots});
        memcpy(to + (size_t)i * ${x_stride}, x + row * ${x_stride}, ${x_stride} * sizeof *to);
    }
}
