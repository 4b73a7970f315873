#include "tests/runtime/media/helper.h"

#include <string.h>
#include <unistd.h>

SPEC(all_layers_hold_or_say_that_they_do_not)
{
    static struct burin_error err;
    struct burin_media_layers layers;

    assert_int_equal(burin_media_layers(the_helper(), &layers, &err), BURIN_OK);

    assert_true(layers.seccomp);
    assert_true(layers.privileges);
    assert_true(layers.limits);
    if (!layers.landlock)
        print_message("this kernel has no Landlock\n");
}

SPEC(what_the_sandbox_forbids_is_refused)
{
    static const char *const forbidden[] = {
        "open", "create", "stat",   "socket",  "fork",    "exec",
        "kill", "trace",  "unlink", "execute", "unlimit",
    };
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        bool refused = false;
        static struct burin_error err;
        assert_int_equal(
                burin_media_try(the_helper(), forbidden[i], &refused, &err), BURIN_OK);
        if (!refused)
            fail_msg("%s went through", forbidden[i]);
    }
    assert_int_equal(access("/tmp/burin-media-escaped", F_OK), -1);
}

SPEC(what_is_not_forbidden_goes_through)
{
    bool refused = true;
    assert_int_equal(burin_media_try(the_helper(), "nothing", &refused, NULL), BURIN_OK);
    assert_false(refused);
}
