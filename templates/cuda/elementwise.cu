% -- In: name, d (last dim of x), f (see below), y, x, other (their types; other is false where f
% -- takes one), vectors (weights that every row meets), period (their length), factor.
% local number = f32(factor)
% local inverse = f32(1 / factor)
% local text = {
% --  f              what is said of it                  and written
%   add          = { "x + other",                        "a + b" },
%   mul          = { "x * other",                        "a * b" },
%   copy         = { "x",                                "a" },
%   silu         = { "x / (1 + e^-x)",                   "a / (1.0f + expf(-a))" },
%   gelu         = { "x Phi(x)",                         "0.5f * a * (1.0f + erff(0.707106781f * a))" },
%   gelu_tanh    = { "gelu(x), by tanh",
%     "a / (1.0f + expf(-1.59576912f * (a + 0.044715f * a * a * a)))" },
%   scale        = { "x * " .. number,                   "a * " .. number },
%   scale_by     = { "x * weight",                       "a * weight[0]" },
%   add_vector   = { "x + weight",                       "a + weight[column]" },
%   standardize  = { "(x - bias) * scale",               "(a - bias[column]) * scale[column]" },
%   softcap      = { number .. " * tanh(x / " .. number .. ")",
%     number .. " * tanhf(a * " .. inverse .. ")" },
%   mul_softplus = { "x * " .. number .. " * ln(1 + e^weight)",
%     "a * (" .. number .. " * logf(1.0f + expf(weight[column])))" },
% }
% local has_column = text[f][2]:find "column"
% local load = x == "u8" and "(float)x[i]" or "load_float(x, i)"
/* y = ${text[f][1]}, element by element; y may be x.
 * A block has 1024 numbers, wherever rows end.   <<<rows * ${d} / 1024, 256>>> */
extern "C" __global__ __launch_bounds__(256) void ${name}(
        ${y} *y, /* (rows, ${d}) */
        const ${x} *x,
% if other then
        const ${other} *other,
% end
% for _, vector in ipairs(vectors) do
        const float *${vector}, /* (${f == "scale_by" and 1 or period}) */
% end
        int n_rows)
{
    const size_t n = (size_t)n_rows * ${d};
    const size_t begin = (size_t)blockIdx.x * 1024 + threadIdx.x;

    for (size_t i = begin; i < n && i < begin + 1024; i += 256) {
        const float a = ${load};
% if other then
        const float b = load_float(other, i);
% end
% if has_column then
        const int column = (int)(i % ${period});
% end
        store_float(y, i, ${text[f][2]});
    }
}
