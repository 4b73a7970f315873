/* A GPU from the plan to what serves, on a virtual card: nothing runs out half-way. */
#include "tests/runtime/engine/rehearse.h"

/* ---- As planned ------------------------------------------------------------------------- */

SPEC(every_owner_obtains_what_was_planned)
{
    for (int64_t bytes = 2 * GIB; bytes < 4 * GIB; bytes += 123456789) {
        plan_on(bytes);
        make_machine();

        must_start();

        int64_t graph_rounding = 0, sum = 0;
        struct burin_plan_run run;
        for (int i = 0; burin_plan_run_at(&plan, i, &run); i++)
            graph_rounding += (2 * MIB - run.driver_bytes % (2 * MIB)) % (2 * MIB);
        for (int i = 0; i < plan.n_owners; i++) {
            const struct burin_plan_owner *owner = &plan.owners[i];
            if (strcmp(owner->name, "rounding") != 0 && owner->kind == BURIN_DERIVED)
                assert_int_equal(obtained(owner->name), owner->bytes);
            sum += obtained(owner->name);
        }
        assert_int_equal(obtained("graphs"), owner_bytes(&plan, "graphs") + graph_rounding);
        assert_int_equal(sum, plan.total_bytes);
        assert_int_equal(rehearsal.plan.n_pages, plan.n_pages);
        assert_int_equal(rehearsal.start.facts.n_notes, 0);
        assert_int_equal(
                (int64_t)burin_virtual_memory(machine, 0).ours[0], plan.total_bytes);
        end();
    }
}

static const struct burin_captured *captured(const char *program, int n)
{
    for (int i = 0; i < rehearsal.captures.n; i++) {
        const struct burin_captured *at = &rehearsal.captures.at[i];
        if (strcmp(at->program->name, program) == 0 && at->n == n)
            return at;
    }
    return NULL;
}

SPEC(each_graph_of_the_plan_is_captured_and_launched_once)
{
    plan_on(4 * GIB);
    make_machine();

    must_start();

    struct burin_plan_run run;
    int n_graphs = 0;
    for (int i = 0; burin_plan_run_at(&plan, i, &run); i++) {
        if (!run.graph)
            continue;
        const struct burin_captured *found = captured(run.program->name, run.n);
        assert_non_null(found);
        assert_int_equal(
                found->graph.kernel_nodes,
                run.program->graph.kernel_nodes + run.program->graph.copy_nodes);
        n_graphs++;
    }
    assert_int_equal(rehearsal.captures.n, n_graphs);
    assert_int_equal(burin_virtual_counts(machine).graphs, n_graphs);
    assert_true(rehearsal.ledger.sealed);
    end();
}
