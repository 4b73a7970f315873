/* tests/support/test.h -- cmocka, and SPEC: a test file is the module's specification.
 *
 *     SPEC(a_request_that_does_not_fit_names_its_owner_and_takes_nothing)
 *     {
 *         given, when, then
 *     }
 *
 * Include it once in a test's only source file: it brings main(), which runs the SPECs in
 * the order of the text. An argument chooses some of them: test-runtime-text-bpe '*emoji*'. */
#ifndef BURIN_TEST_H
#define BURIN_TEST_H

/* cmocka.h needs these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { BURIN_MAX_SPECS = 256 };
static struct CMUnitTest burin_specs[BURIN_MAX_SPECS];
static size_t burin_n_specs;

#define SPEC(spec)                                                                         \
    static void spec(void **state);                                                        \
    __attribute__((constructor)) static void register_##spec(void)                         \
    {                                                                                      \
        burin_specs[burin_n_specs++] = (struct CMUnitTest){ #spec, spec, 0, 0, 0 };        \
    }                                                                                      \
    static void spec(__attribute__((unused)) void **state)

/* End a test whose weights or processor are not here. */
#define SKIP_UNLESS(condition)                                                             \
    do {                                                                                   \
        if (!(condition))                                                                  \
            skip();                                                                        \
    } while (0)

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(argv[0], burin_specs, burin_n_specs, 0, 0);
}

#endif
