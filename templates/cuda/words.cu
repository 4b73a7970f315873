/* Two or four words in one load; their address is a multiple of 8 or of 16. */
struct alignas(8) words_2 {
    u32 word[2];
};

struct alignas(16) words_4 {
    u32 word[4];
};

DEVICE void load_words_2(u32 *to, const void *from)
{
    const struct words_2 two = *(const struct words_2 *)from;
    to[0] = two.word[0];
    to[1] = two.word[1];
}

DEVICE void load_words_4(u32 *to, const void *from)
{
    const struct words_4 four = *(const struct words_4 *)from;
    for (int i = 0; i < 4; i++)
        to[i] = four.word[i];
}
