#include "runtime/engine/start_report.h"

#include "runtime/base/units.h"
#include "runtime/plan/report.h"

#include <string.h>

static int64_t obtained_of(const struct burin_ledger *ledger, const char *name)
{
    const struct burin_owner *owner = burin_ledger_owner(ledger, name);
    return owner ? (int64_t)owner->obtained : 0;
}

void burin_start_obtained(
        const struct burin_plan *plan,
        const struct burin_ledger *ledger,
        int64_t obtained[BURIN_MAX_OWNERS])
{
    for (int i = 0; i < plan->n_owners; i++)
        obtained[i] = obtained_of(ledger, plan->owners[i].name);
}

static void write_row(FILE *out, const char *name, int64_t planned, int64_t obtained)
{
    const int64_t more = obtained - planned;
    fprintf(out, "  %-13s %17s %17s  %s%s\n", name, burin_grouped(planned).text,
            burin_grouped(obtained).text,
            more > 0   ? "+"
            : more < 0 ? "-"
                       : "",
            more ? burin_grouped(more < 0 ? -more : more).text : "as planned");
}

static void write_owners(
        const struct burin_plan *plan, const struct burin_ledger *ledger, FILE *out)
{
    int64_t obtained[BURIN_MAX_OWNERS];
    int64_t planned_sum = 0, obtained_sum = 0;
    burin_start_obtained(plan, ledger, obtained);
    fprintf(out, "  %-13s %17s %17s  %s\n", "owner", "planned bytes", "obtained bytes",
            "difference");
    for (int i = 0; i < plan->n_owners; i++) {
        write_row(out, plan->owners[i].name, plan->owners[i].bytes, obtained[i]);
        planned_sum += plan->owners[i].bytes;
        obtained_sum += obtained[i];
    }
    write_row(out, "total", planned_sum, obtained_sum);
}

static void write_times(const struct burin_start_facts *facts, FILE *out)
{
    double all_ms = 0;
    fprintf(out, "  took");
    for (int i = 0; i < BURIN_N_START_STEPS; i++) {
        all_ms += facts->ms[i];
        if (facts->ms[i] >= 10)
            fprintf(out, " %s %.2f s,", burin_start_names[i], facts->ms[i] / 1e3);
    }
    fprintf(out, " %.2f s in all\n", all_ms / 1e3);
}

void burin_start_report(
        const struct burin_plan *plan,
        const struct burin_ledger *ledger,
        const struct burin_start_facts *facts,
        FILE *out)
{
    fprintf(out, "%s on %s (%s)\n", plan->model->name, plan->card.name, plan->family->name);
    write_owners(plan, ledger, out);
    if (plan->limit_bytes != INT64_MAX)
        fprintf(out, "  may be used: %s of %s, %s of them free before\n",
                burin_human_bytes(plan->limit_bytes).text,
                burin_human_bytes(plan->card.total_bytes).text,
                burin_human_bytes(plan->card.available_bytes).text);
    fprintf(out, "  graphs: %d of %d planned, %s nodes\n", facts->n_graphs,
            facts->n_graphs_planned, burin_grouped(facts->n_nodes).text);
    if (plan->kv && plan->state.page)
        fprintf(out, "  KV: %s tokens in pages of %d, a sequence reaches %s; %d at once\n",
                burin_grouped(plan->kv_tokens).text, plan->kv->page_tokens,
                burin_grouped(plan->n_ctx).text, plan->n_sequences);
    for (int i = 0; i < facts->n_notes; i++)
        fprintf(out, "  note: %s\n", facts->notes[i].text);
    write_times(facts, out);
}
