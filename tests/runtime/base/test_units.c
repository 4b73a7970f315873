#include "runtime/base/units.h"
#include "tests/support/test.h"

#include <string.h>

static int64_t bytes_of(const char *text)
{
    int64_t bytes = -1;
    return burin_parse_bytes(text, strlen(text), &bytes, NULL) ? -1 : bytes;
}

SPEC(a_size_has_a_unit_or_is_in_bytes)
{
    assert_int_equal(bytes_of("4096"), 4096);
    assert_int_equal(bytes_of("512MiB"), 512 << 20);
    assert_int_equal(bytes_of("1.5 GiB"), 3 << 29);
    assert_int_equal(bytes_of("2g"), (int64_t)2 << 30);
    assert_int_equal(bytes_of("3 kib"), 3072);
    assert_int_equal(bytes_of("3 kb"), 3000); /* as memory is sold */
    assert_int_equal(bytes_of("24GB"), 24000000000);
    assert_int_equal(bytes_of("7B"), 7);
    assert_int_equal(bytes_of("23.46GiB"), 25189983191);
}

SPEC(what_is_no_size_is_refused)
{
    static const char *const wrong[] = {
        "",
        "GiB",
        "-1",
        "1.2.3",
        "1 furlong",
        "1e3",
        "0x10",
        "9999999999GiB",
        "nan",
        "5 5",
        "1111111111111111111111111111111111111111111111",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (bytes_of(wrong[i]) != -1)
            fail_msg("%s is %lld", wrong[i], (long long)bytes_of(wrong[i]));
}

SPEC(sizes_are_written_with_three_digits)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = {
        { 0, "0 B" },
        { 1023, "1023 B" },
        { 1024, "1.00 KiB" },
        { 50048, "48.9 KiB" },
        { 1 << 20, "1.00 MiB" },
        { 655360, "640 KiB" },
        { 1048575, "1.00 MiB" },
        { 18145993523, "16.9 GiB" },
        { INT64_MAX, "8.00 EiB" },
        { -2048, "-2.00 KiB" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(burin_human_bytes(rows[i].bytes).text, rows[i].text);
}

SPEC(large_numbers_are_grouped)
{
    assert_string_equal(burin_grouped(0).text, "0");
    assert_string_equal(burin_grouped(999).text, "999");
    assert_string_equal(burin_grouped(590291).text, "590,291");
    assert_string_equal(burin_grouped(-1234567).text, "-1,234,567");
    assert_int_equal(strlen(burin_grouped(100000000000000000).text), 23);
}

SPEC(what_an_option_takes_is_exact_and_read_back)
{
    enum { MIB = 1 << 20 };
    const int64_t gib = 1 << 30;
    assert_string_equal(burin_exact_bytes(64 * MIB).text, "64MiB");
    assert_string_equal(burin_exact_bytes(40 * gib).text, "40GiB");
    assert_string_equal(burin_exact_bytes(0).text, "0");
    assert_string_equal(burin_exact_bytes(gib + 1024).text, "1073742848");
    const int64_t some[] = { 1, 1023, MIB, 3000 * (int64_t)MIB, 5 * gib, 5 * gib + 1 };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const struct burin_text24 text = burin_exact_bytes(some[i]);
        int64_t read = 0;
        assert_int_equal(burin_parse_bytes(text.text, strlen(text.text), &read, NULL), 0);
        assert_int_equal(read, some[i]);
    }
}
