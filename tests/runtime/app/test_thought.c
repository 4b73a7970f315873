/* runtime/app/thought.h: what a model thinks is told from what it answers. */
#include "runtime/app/thought.h"
#include "tests/support/test.h"

#include <string.h>

enum { FROM = 100, TO = 101 };
static const struct burin_chat_facts facts = { .think_from = FROM,
                                               .think_to = TO,
                                               .think_head = "thought\n" };

/* Push pieces of text, each a token; what is left of them put together. */
static const char *text_of(const char *const *pieces)
{
    static char all[256];
    struct burin_thought thought = burin_thought_begin(&facts, NULL, 0);
    size_t n = 0;
    assert_true(burin_thought_mark(&thought, FROM));
    for (; *pieces; pieces++) {
        strcpy(all + n, *pieces);
        n += burin_thought_text(&thought, all + n, strlen(*pieces));
    }
    all[n] = '\0';
    return all;
}

SPEC(a_thought_stands_between_its_marks_and_they_have_no_text)
{
    struct burin_thought thought = burin_thought_begin(&facts, NULL, 0);
    assert_false(thought.thinks);
    assert_false(burin_thought_mark(&thought, 7));
    assert_true(burin_thought_mark(&thought, FROM));
    assert_true(thought.thinks);
    assert_false(burin_thought_mark(&thought, 7));
    assert_true(thought.thinks);
    assert_true(burin_thought_mark(&thought, TO));
    assert_false(thought.thinks);
}

SPEC(its_head_is_left_out_however_it_is_cut)
{
    assert_string_equal(
            text_of((const char *[]){ "thought\nso", " be it", NULL }), "so be it");
    assert_string_equal(text_of((const char *[]){ "thought", "\n", "so", NULL }), "so");
    assert_string_equal(
            text_of((const char *[]){ "th", "", "ought", "\n\nso", NULL }), "\nso");
    assert_string_equal(text_of((const char *[]){ "thought\n", NULL }), "");
    assert_string_equal(
            text_of((const char *[]){ "thought\n", "thought\n", NULL }), "thought\n");
}

SPEC(what_only_looks_like_the_head_comes_back)
{
    assert_string_equal(
            text_of((const char *[]){ "thoughts are", " free", NULL }),
            "thoughts are free");
    assert_string_equal(
            text_of((const char *[]){ "thought", " of it", NULL }), "thought of it");
    assert_string_equal(text_of((const char *[]){ "x", "thought\n", NULL }), "xthought\n");
}

SPEC(a_prompt_may_have_begun_the_thought)
{
    static const int32_t open[] = { 5, FROM, 6 };
    static const int32_t closed[] = { 5, FROM, TO, 6 };
    assert_true(burin_thought_begin(&facts, open, 3).thinks);
    assert_false(burin_thought_begin(&facts, closed, 4).thinks);
    struct burin_thought thought = burin_thought_begin(&facts, open, 3);
    char text[64] = "thought\n";
    assert_int_equal(burin_thought_text(&thought, text, 8), 8);
}

SPEC(a_format_without_thoughts_has_no_marks)
{
    static const struct burin_chat_facts none = { .think_from = -1, .think_to = -1 };
    static const int32_t ids[] = { -1, FROM };
    struct burin_thought thought = burin_thought_begin(&none, ids, 2);
    assert_false(thought.thinks);
    assert_false(burin_thought_mark(&thought, -1));
    assert_false(burin_thought_mark(&thought, FROM));
}
