#include "runtime/app/app.h"

enum burin_status burin_app_plan(struct burin_app *app, struct burin_error *err)
{
    /* Without weights everything but the tokenizer is known all the same. */
    static struct burin_error missing;
    struct burin_found found;
    const enum burin_status have = burin_app_find(app, &found, &missing);
    if (!have)
        burin_found_close(&found);
    if (have && app->settings.weights)
        return burin_fail(err, have, "%s", missing.message);

    return burin_app_show_plan(app, have ? NULL : &found.tokenizer_bytes, err);
}
