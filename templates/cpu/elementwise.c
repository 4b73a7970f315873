% -- In: name, d (last dim of x), f ("add", "mul", "silu", "gelu_tanh", "copy"), other (true
% -- where f takes two).
% local text = {
% --  f          what is said of it    and written
%   add       = { "x + other",         "a[i] + b[i]" },
%   mul       = { "x * other",         "a[i] * b[i]" },
%   silu      = { "x / (1 + e^-x)",    "burin_silu(a[i])" },
%   gelu_tanh = { "gelu(x), by tanh",  "burin_gelu_tanh(a[i])" },
%   copy      = { "x",                 "a[i]" },
% }
/* y = ${text[f][1]}, element by element. y may be x. */
static void ${name}(
        const struct burin_team *t,
        float *y, /* (rows, ${d}) */
        const float *x,
% if other then
        const float *other,
% end
        int n_rows)
{
    const struct burin_share rows = burin_share(t, n_rows);

    for (int row = rows.begin; row < rows.end; row++) {
        const float *a = x + (size_t)row * ${d};
% if other then
        const float *b = other + (size_t)row * ${d};
% end
        float *to = y + (size_t)row * ${d};
        for (int i = 0; i < ${d}; i++)
            to[i] = ${text[f][2]};
    }
}
