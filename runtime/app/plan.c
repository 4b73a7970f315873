#include "runtime/app/app.h"
#include "runtime/plan/report.h"

#include <stdio.h>

enum burin_status burin_app_plan(struct burin_app *app, struct burin_error *err)
{
    if (app->settings.n_words)
        return burin_fail(
                err, BURIN_EUSAGE, "plan takes options only, not '%.40s'",
                app->settings.words[0]);

    /* Without weights everything but the tokenizer is known all the same. */
    static struct burin_error missing;
    struct burin_found found;
    const enum burin_status have = burin_app_find(app, &found, &missing);
    if (!have)
        burin_found_close(&found);
    if (have && app->settings.weights)
        return burin_fail(err, have, "%s", missing.message);

    struct burin_plan plan;
    enum burin_status status =
            burin_app_make_plan(app, have ? NULL : &found.tokenizer_bytes, &plan, err);
    if (status)
        return status;
    if (app->settings.json) {
        burin_plan_json(&plan, stdout);
        return burin_plan_check(&plan, err);
    }
    burin_plan_report(&plan, stdout);
    return plan.fits ? BURIN_OK : burin_fail(err, BURIN_ENOMEM, "it does not fit");
}
