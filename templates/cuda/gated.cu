% -- In: name, activation ("silu" or "gelu_tanh").
% if activation == "silu" then
/* silu(gate) * up */
DEVICE float ${name}(float gate, float up)
{
    return gate / (1.0f + expf(-gate)) * up;
}
% else
/* gelu(gate) * up, by tanh: gate * sigmoid(2 sqrt(2 / pi) (gate + 0.044715 gate^3)) */
DEVICE float ${name}(float gate, float up)
{
    const float cube = fmaf(0.044715f * gate * gate, gate, gate);
    return gate / (1.0f + expf(-1.59576912f * cube)) * up;
}
% end
