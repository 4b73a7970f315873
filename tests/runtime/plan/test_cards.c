#include "runtime/plan/cards.h"
#include "tests/runtime/plan/vision_model.h"
#include "tests/support/test.h"

#include <string.h>

static struct burin_card card_of(const char *text)
{
    struct burin_card card;
    struct burin_error err = { 0 };
    if (burin_card_parse(&card, text, &err))
        fail_msg("%s", err.message);
    return card;
}

static const char *family_for(int sm)
{
    const struct burin_card card = { .name = "card", .sm = sm };
    const struct burin_family *family;
    struct burin_error err;
    return burin_card_family(&card, &vision_model, &family, &err) ? NULL : family->name;
}

static int64_t limit_of(const struct burin_card *card, enum burin_limit kind, int64_t bytes)
{
    int64_t limit;
    assert_int_equal(burin_card_limit(card, kind, bytes, 0.5, &limit, NULL), BURIN_OK);
    return limit;
}

SPEC(a_card_is_a_name_or_a_size_and_perhaps_a_compute_capability)
{
    assert_int_equal(card_of("rtx5090").sm, 120);
    assert_in_range(
            card_of("rtx5090").total_bytes, (int64_t)(31.35 * GIB), (int64_t)(31.37 * GIB));
    assert_int_equal(card_of("8GiB").total_bytes, 8 * GIB);
    assert_int_equal(card_of("8GiB").sm, 0);
    assert_int_equal(card_of("23.46GiB,sm_120").sm, 120);
    assert_int_equal(card_of("16TiB,sm_120").total_bytes, 16 * 1024 * GIB);
    assert_int_equal(card_of("32TiB").total_bytes, 32 * 1024 * GIB); /* a host's */
    assert_int_equal(
            card_of("23.46GiB,sm_120").total_bytes, card_of("rtx5090-laptop").total_bytes);

    static const char *const wrong[] = { "",
                                         "GiB",
                                         "8GiB,",
                                         "8GiB,sm_",
                                         "rtx5090 ",
                                         "8GiB,sm_120x",
                                         "-1GiB",
                                         "RTX5090",
                                         "0GiB",
                                         "8GiB,sm_0",
                                         "8GiB,sm_-9",
                                         "8GiB,sm_ 120",
                                         "8GiB,sm_9999",
                                         "8GiB,sm_9",
                                         "8GiB,sm_090" };
    struct burin_card card;
    struct burin_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(burin_card_parse(&card, wrong[i], &err), BURIN_EUSAGE);
    assert_non_null(
            strstr(err.message, "rtx3090 rtx4090 rtx5090 rtx5090-laptop rtxpro6000"));
    assert_int_equal(burin_card_parse(&card, "16385GiB,sm_120", &err), BURIN_EUSAGE);
    assert_non_null(strstr(err.message, "a GPU has at most 16384GiB"));
}

SPEC(GB_are_those_that_a_card_is_sold_by)
{
    assert_int_equal(card_of("24GB,sm_89").total_bytes, 24000000000);
}

SPEC(a_card_above_all_that_are_known_is_told_apart)
{
    const struct burin_card newest = card_of("24GiB,sm_121"),
                            newer = card_of("24GiB,sm_130");
    assert_false(burin_card_is_newer(&newest));
    assert_true(burin_card_is_newer(&newer));
}

SPEC(every_known_card_has_bytes_that_are_less_than_the_box_says_and_a_family)
{
    static const struct {
        const char *name;
        int gib, sm;
    } boxes[] = {
        { "rtx3090", 24, 86 },     { "rtx4090", 24, 89 },
        { "rtx5090", 32, 120 },    { "rtx5090-laptop", 24, 120 },
        { "rtxpro6000", 96, 120 }, { "l4", 24, 89 },
        { "l40s", 48, 89 },        { "a100-40", 40, 80 },
        { "a100-80", 80, 80 },     { "h100", 80, 90 },
        { "h200", 141, 90 },       { "b200", 192, 100 },
        { "gb10", 128, 121 },
    };
    enum { N = sizeof boxes / sizeof *boxes };
    for (int i = 0; i < N; i++) {
        const struct burin_card *card = burin_card_known(i);
        assert_string_equal(card->name, boxes[i].name);
        assert_int_equal(card->sm, boxes[i].sm);
        assert_in_range(
                card->total_bytes, boxes[i].gib * GIB * 9 / 10, boxes[i].gib * GIB - 1);
        assert_int_equal(card->available_bytes, card->total_bytes);
        assert_in_range(card->n_processors, 40, 200);
        assert_int_equal(card->unified, strcmp(card->name, "gb10") == 0);
        assert_non_null(family_for(card->sm));
    }
    assert_null(burin_card_known(N));
}

SPEC(a_card_uses_the_largest_family_that_is_not_above_it)
{
    static const struct {
        int sm;
        const char *family;
    } cases[] = { { 80, "sm80" },   { 86, "sm80" },   { 89, "sm80" },   { 90, "sm90" },
                  { 100, "sm100" }, { 103, "sm100" }, { 120, "sm120" }, { 121, "sm120" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(family_for(cases[i].sm), cases[i].family);
    assert_null(family_for(75));
}

SPEC(a_card_that_no_family_serves_is_told_of_those_there_are)
{
    const struct burin_card card = { .name = "t4", .sm = 75 };
    const struct burin_family *family;
    struct burin_error err;
    assert_int_equal(burin_card_family(&card, &vision_model, &family, &err), BURIN_EUSAGE);
    assert_string_equal(
            err.message, "t4 (sm_75) is older than what vision-bf16 has tables for: sm120 "
                         "sm100 sm90 sm80");
    assert_int_equal(burin_card_family(&card, &tiny_model, &family, &err), BURIN_EUSAGE);
    assert_non_null(strstr(err.message, "tiny-q4_1 has no tables for a GPU"));
}

SPEC(the_default_reserve_is_a_GiB_less_on_a_small_CPU_and_more_where_memory_is_shared)
{
    struct burin_card card = { .total_bytes = 64 * GIB, .available_bytes = 48 * GIB };
    const enum burin_limit by_default = BURIN_LIMIT_RESERVE_DEFAULT;
    assert_int_equal(limit_of(&card, by_default, 0), 47 * GIB);
    card.total_bytes = 8 * GIB;
    card.available_bytes = 8 * GIB;
    assert_int_equal(limit_of(&card, by_default, 0), 8 * GIB - GIB / 2);
    card.sm = 120;
    assert_int_equal(limit_of(&card, by_default, 0), 7 * GIB);
    card.unified = true;
    assert_int_equal(limit_of(&card, by_default, 0), 0);
    card.total_bytes = 120 * GIB;
    card.available_bytes = 100 * GIB;
    assert_int_equal(limit_of(&card, by_default, 0), 88 * GIB);
}

SPEC(a_limit_is_bytes_or_a_reserve_or_a_share_of_the_total_and_never_above_what_is_there)
{
    const struct burin_card card = { .total_bytes = 64 * GIB, .available_bytes = 48 * GIB };
    assert_int_equal(limit_of(&card, BURIN_LIMIT_BYTES, 5), 5);
    assert_int_equal(limit_of(&card, BURIN_LIMIT_BYTES, 50 * GIB), 48 * GIB);
    assert_int_equal(limit_of(&card, BURIN_LIMIT_RESERVE, 3 * GIB), 45 * GIB);
    assert_int_equal(limit_of(&card, BURIN_LIMIT_RESERVE, 99 * GIB), 0);
    assert_int_equal(limit_of(&card, BURIN_LIMIT_FRACTION, 0), 32 * GIB);
    assert_int_equal(limit_of(&card, BURIN_LIMIT_NONE, 0), INT64_MAX);
}

SPEC(a_cap_above_what_is_there_is_refused)
{
    struct burin_card card = { .name = "4GiB,sm_80",
                               .total_bytes = 4 * GIB,
                               .available_bytes = 4 * GIB };
    struct burin_error err;
    assert_int_equal(
            burin_card_check_cap(&card, BURIN_LIMIT_BYTES, 5 * GIB, 0, &err), BURIN_ENOMEM);
    assert_string_equal(
            err.message, "5.00 GiB may be used (--vram-limit), and 4GiB,sm_80 has 4.00 GiB "
                         "free of 4.00 GiB: --vram-limit 4294967296 is what there is");
    card.available_bytes = 2 * GIB;
    assert_int_equal(
            burin_card_check_cap(&card, BURIN_LIMIT_FRACTION, 0, 0.75, &err), BURIN_ENOMEM);
    assert_string_equal(
            err.message, "3.00 GiB may be used (--vram-fraction), and 4GiB,sm_80 has 2.00 "
                         "GiB free of 4.00 GiB: --vram-limit 2147483648 is what there "
                         "is");

    assert_int_equal(
            burin_card_check_cap(&card, BURIN_LIMIT_BYTES, 2 * GIB, 0, NULL), BURIN_OK);
    assert_int_equal(
            burin_card_check_cap(&card, BURIN_LIMIT_RESERVE, 9 * GIB, 0, NULL), BURIN_OK);
    card.total_bytes = card.available_bytes = 0; /* unknown */
    assert_int_equal(
            burin_card_check_cap(&card, BURIN_LIMIT_BYTES, 5 * GIB, 0, NULL), BURIN_OK);
}
