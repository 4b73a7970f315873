/* Two or four words in one load; their address is a multiple of 8 or of 16. */
DEVICE void load_words_2(u32 *to, const void *from)
{
    const uint2 two = *(const uint2 *)from;
    to[0] = two.x;
    to[1] = two.y;
}

DEVICE void load_words_4(u32 *to, const void *from)
{
    const uint4 four = *(const uint4 *)from;
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}
