/* runtime/app/rehearse.c -- `plan --rehearse`: the code that starts a GPU, on one that is not there. */
#include "runtime/app/app.h"

#include "runtime/engine/rehearsal.h"
#include "runtime/engine/start_report.h"
#include "runtime/plan/report.h"

#include <stdio.h>

static enum burin_status check_settings(
        const struct burin_settings *settings, struct burin_error *err)
{
    enum burin_status status = burin_settings_no_words(settings, BURIN_PLAN, err);
    if (!status && (settings->explain || settings->against_file || settings->svg_file))
        return burin_fail(
                err, BURIN_EUSAGE,
                "--rehearse goes without --explain, --against and --svg: they show the "
                "plan");
    if (!status && settings->assume)
        return burin_fail(
                err, BURIN_EUSAGE,
                "--rehearse takes what is planned owner by owner, --assume tells sums");
    return status;
}

static void show(
        const struct burin_plan *plan,
        const struct burin_rehearsal *rehearsal,
        bool as_json)
{
    int64_t obtained[BURIN_MAX_OWNERS];
    burin_start_obtained(plan, &rehearsal->ledger, obtained);
    if (as_json) {
        burin_plan_json_obtained(plan, obtained, stdout);
        return;
    }
    printf("Rehearsed: the code that starts a GPU ran on a virtual one; its driver takes "
           "what the plan assumes.\n");
    burin_plan_planned_only(plan, stdout);
    printf("\n");
    burin_start_report(
            &rehearsal->plan, &rehearsal->ledger, &rehearsal->start.facts, stdout);
}

static enum burin_status rehearse(
        const struct burin_plan *plan,
        const struct burin_plan_request *request,
        bool as_json,
        struct burin_error *err)
{
    static struct burin_rehearsal rehearsal;
    const struct burin_virtual_options card = burin_rehearsal_card(plan);
    struct burin_virtual *machine = NULL;
    enum burin_status status = burin_virtual_open(&machine, &card, err);
    if (!status) {
        status = burin_rehearse(&rehearsal, plan, request, err);
        if (!status)
            show(plan, &rehearsal, as_json);
        else if (as_json)
            burin_plan_json(plan, stdout);
        burin_rehearsal_close(&rehearsal);
    }
    burin_virtual_close(machine);
    return status;
}

enum burin_status burin_app_rehearse(
        struct burin_app *app, const size_t *tokenizer_bytes, struct burin_error *err)
{
    static struct burin_plan plan;
    static struct burin_plan_request request;
    enum burin_status status = check_settings(&app->settings, err);
    if (!status)
        status = burin_app_make_plan(app, tokenizer_bytes, &plan, &request, err);
    if (!status && !plan.family->sm)
        return burin_fail(
                err, BURIN_EUSAGE, "--rehearse: %s is no GPU; --card rtx5090 is one",
                plan.card.name);
    if (status)
        return status;
    status = burin_plan_check(&plan, err);
    if (!status)
        return rehearse(&plan, &request, app->settings.json, err);
    if (app->settings.json) /* as without --rehearse: nothing was obtained */
        burin_plan_json(&plan, stdout);
    return status;
}
