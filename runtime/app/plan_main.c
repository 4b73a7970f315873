/* runtime/app/plan_main.c -- `gen plan`: the emitted tables of one model and runtime/plan,
 * without weights, text, engine or kernels. gen compiles it and hands its options on. */
#include "runtime/app/app.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum burin_status plan_tables(
        struct burin_app *app, int argc, const char **argv, struct burin_error *err)
{
    enum burin_status status =
            burin_settings_read(&app->settings, BURIN_PLAN, argc, argv, err);
    if (status)
        return status;
    if (app->settings.help) {
        printf("gen plan - what a model needs on a card, before it is built\n\n"
               "  gen plan gemma4 --variant 26b-a4b --quant nvfp4 --card rtx5090\n"
               "  gen plan gemma4 --card l4 --json > l4.json\n"
               "  gen plan gemma4 --card l4 --images 4 --against l4.json\n\n"
               "--model --variant --quant --config --name --target are gen's own (gen "
               "--help).\n"
               "Options of the plan:\n");
        burin_settings_help(BURIN_PLAN, stdout);
        return BURIN_OK;
    }
    if (app->settings.rehearse)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--rehearse is the binary's: build it, then NAME plan --rehearse");
    return burin_app_show_plan(app, NULL, err);
}

int main(int argc, char **argv)
{
    static struct burin_error err;
    struct burin_app app = { .model = &burin_model,
                             .program = "gen",
                             .command = BURIN_PLAN };
    const int n = argc > 0 ? argc - 1 : 0;
    enum burin_status status = plan_tables(&app, n, (const char **)argv + (argc > 0), &err);
    if (!status && (fflush(stdout) || ferror(stdout))) /* make_plan.c flushes it, too */
        status = burin_fail(&err, BURIN_EIO, "stdout: %s", strerror(errno));
    if (status)
        fprintf(stderr, "gen plan: %s\n", err.message);
    return burin_exit_code(status);
}
