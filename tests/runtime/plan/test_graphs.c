#include "tests/runtime/plan/gpu.h"

/* ---- A: the plan of the report ------------------------------------------------------------ */

static const int budgets[7] = { 70, 140, 280, 560, 1120, 2240, 4096 };

/* An encoder whose capture input has a fixed number of rows, as the report's. */
struct replica {
    struct burin_input input;
    struct burin_chunk_cost costs[2];
    struct burin_program programs[4];
    struct burin_family family;
};

static struct burin_linear fixed(int64_t bytes)
{
    struct burin_linear linear = { .extent = BURIN_SOFT };
    linear.fixed.terms[0].factor = bytes;
    return linear;
}

static void make_replica(struct replica *r, int64_t rows, int64_t patches, int64_t arena)
{
    r->input = (struct burin_input){ .name = "pixel_values",
                                     .dtype = BURIN_BF16,
                                     .n_dims = 3,
                                     .dims = { fixed(rows), fixed(patches), fixed(768) } };
    r->costs[0] = (struct burin_chunk_cost){ .phase = "carried", .quantum = 1 };
    r->costs[0].bytes = fixed(0);
    r->costs[1] = (struct burin_chunk_cost){ .phase = "soft", .quantum = 1 };
    r->costs[1].bytes = fixed(arena);
    memcpy(r->programs, vision_programs, sizeof r->programs);
    r->programs[2].n_inputs = 1;
    r->programs[2].inputs = &r->input;
    r->programs[2].costs = r->costs;
    r->programs[2].n_buffers = 0;
    r->family = vision_families[0];
    r->family.programs = r->programs;
}

static struct burin_plan_request request_on_the_5090(const struct replica *r)
{
    struct burin_plan_request request = gpu_request(0);
    request.family = &r->family;
    request.limit = BURIN_LIMIT_RESERVE_DEFAULT;
    request.graphs = graphs_of("encode_image=70,140,280,560,1120,2240,4096");
    assert_int_equal(burin_card_parse(&request.card, "rtx5090", NULL), BURIN_OK);
    return request;
}

SPEC(A8_rows_by_a_global_maximum_are_refused_with_budget_buffer_shape_and_bytes)
{
    int64_t sum = 0;
    for (int i = 0; i < 7; i++) /* each graph had its own */
        sum += (int64_t)1856 * 9 * (budgets[i] < 280 ? budgets[i] : 280) * 768 * 2;
    assert_int_equal(sum, 41308323840);

    struct replica replica;
    make_replica(&replica, 1856, 2520, (int64_t)1856 * 2520 * PATCH_BYTES);
    const struct burin_plan_request request = request_on_the_5090(&replica);
    const struct burin_plan plan = gpu_plan(&request);
    struct burin_error err;

    assert_int_equal(owner_bytes(&plan, "inputs"), 7184056320);
    assert_int_equal(burin_plan_check(&plan, &err), BURIN_ENOMEM);
    assert_non_null(strstr(err.message, "of rtx5090: short by"));
    assert_non_null(
            strstr(err.message, "encode_image, n = 4096, its budget of soft tokens: input "
                                "pixel_values (1856, 2520, 768) bf16, "
                                "7184056320 bytes"));
}

SPEC(A9_a_one_hot_of_every_position_needs_22_GiB_of_arena_and_is_refused_below)
{
    const int64_t one_hot = (int64_t)146160 * 163840;
    assert_int_equal(one_hot, 23946854400);
    struct replica replica;
    make_replica(&replica, 58, 2520, one_hot);
    struct burin_plan_request request = request_on_the_5090(&replica);
    request.n_sequences = 1;
    request.n_ctx = 4096;
    request.limit = BURIN_LIMIT_BYTES;
    request.limit_bytes = 31 * GIB;
    request.kv_tokens = 4096;
    const struct burin_plan enough = gpu_plan(&request);
    assert_int_equal(owner_bytes(&enough, "arena"), one_hot);
    assert_int_equal(owner_bytes(&enough, "inputs"), 224501760);

    request.limit_bytes = enough.total_bytes;
    assert_true(gpu_plan(&request).fits);
    request.limit_bytes = enough.total_bytes - 1;
    const struct burin_plan plan = gpu_plan(&request);
    assert_int_equal(plan.short_by_bytes, 1);
    assert_string_equal(plan.owners[plan.largest].name, "arena");
}

/* ---- C: an unknown is not nothing ---------------------------------------------------------- */

SPEC(C1_C2_a_graph_with_kernels_and_no_budget_stops_the_plan_before_anything_else)
{
    struct replica replica;
    make_replica(&replica, 1, 1, 1);
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.family = &replica.family;
    for (int p = 0; p < 3; p += 2) {
        replica.programs[p].graph = (struct burin_graph_cost){ 0 };
        assert_non_null(
                strstr(gpu_refusal(&request, BURIN_EFORMAT), "has no graph budget"));
        replica.programs[p].graph.copy_nodes = 5;
        assert_non_null(
                strstr(gpu_refusal(&request, BURIN_EFORMAT), "has no graph budget"));
        replica.programs[p] = vision_programs[p];
    }
    /* Even where nothing would fit. */
    request.limit_bytes = 1;
    replica.programs[0].graph = (struct burin_graph_cost){ 0 };
    assert_non_null(strstr(gpu_refusal(&request, BURIN_EFORMAT), "program step"));
    /* A program that is not planned has none. */
    replica.programs[0] = vision_programs[0];
    replica.programs[3].graph = (struct burin_graph_cost){ 0 };
    assert_false(gpu_plan(&request).fits);
}

SPEC(C3_without_graphs_their_term_is_nothing)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.graphs = graphs_of("none");

    const struct burin_plan plan = gpu_plan(&request);

    assert_int_equal(owner_bytes(&plan, "graphs"), 0);
    struct burin_plan_run run;
    int n = 0;
    for (int i = 0; burin_plan_run_at(&plan, i, &run); i++, n++)
        assert_false(run.graph);
    assert_int_equal(n, 2); /* prompts, and the largest picture */
}

/* ---- Graphs by name ----------------------------------------------------------------------- */

SPEC(a_program_that_is_not_named_keeps_its_ladder)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.n_sequences = 8;
    request.graphs = graphs_of("step=1,4");
    struct burin_plan plan = gpu_plan(&request);
    assert_int_equal(plan.programs[0].graphs.n, 2);
    assert_int_equal(plan.programs[2].graphs.n, 5);

    request.graphs = graphs_of("step=1,9");
    assert_non_null(strstr(
            gpu_refusal(&request, BURIN_EUSAGE), "--graphs step=...,9 is above the 8"));
}

SPEC(what_is_said_of_graphs_twice_or_against_each_other_is_refused_with_both)
{
    static const char *const cases[][3] = {
        { "step=1,3", "step=2",
          "--graphs step=...,3 and --graphs step=2: a program has one" },
        { "step=1", "step=1", "--graphs step=1 and --graphs step=1: a program has one" },
        { "none", "step=1", "--graphs none has no graphs, --graphs step=1 has some" },
        { "step=1", "none", "--graphs none has no graphs, --graphs step=... has some" },
        { "step=1", "steps=2", "" },
        { "none", "none", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct burin_graphs graphs = graphs_of(cases[i][0]);
        struct burin_error err = { 0 };
        const enum burin_status status = burin_graphs_parse(&graphs, cases[i][1], &err);
        assert_int_equal(status, cases[i][2][0] ? BURIN_EUSAGE : BURIN_OK);
        assert_non_null(strstr(err.message, cases[i][2]));
    }
}

SPEC(what_names_no_graphs_is_refused)
{
    static const char *const wrong[] = { "", "nine", "step", "=1,2", "step=", "step=2,1" };
    struct burin_graphs graphs = { 0 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(burin_graphs_parse(&graphs, wrong[i], NULL), BURIN_EUSAGE);
}

SPEC(more_padding_takes_fewer_graphs)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.n_sequences = 64;
    int last = 1000;
    for (int percent = 10; percent < 100; percent += 20) {
        request.padding_given = true;
        request.graph_padding = percent;
        const struct burin_plan plan = gpu_plan(&request);
        const int n = plan.programs[0].graphs.n;
        assert_true(n < last);
        assert_int_equal(
                owner_bytes(&plan, "graphs"), ((int64_t)n * 32 + 5 * 16) * 64 * 1024);
        last = n;
    }
}

/* ---- P: what is shared and what adds up ------------------------------------------------------ */

/* Three encoders of 300, 120 and 60 MiB. The rule that takes the first and adds the second for
 * each further one would say 540. */
SPEC(P1_runs_that_follow_each_other_share_one_arena)
{
    static const int64_t arenas[3] = { 300 * (int64_t)MIB, 120 * (int64_t)MIB,
                                       60 * (int64_t)MIB };
    struct burin_chunk_cost costs[3][2];
    struct burin_program programs[4] = { vision_programs[0] };
    struct burin_family family = vision_families[0];
    for (int i = 0; i < 3; i++) {
        costs[i][0] = (struct burin_chunk_cost){ .phase = "carried", .quantum = 1 };
        costs[i][1] = (struct burin_chunk_cost){ .phase = "soft", .quantum = 1 };
        costs[i][0].bytes = fixed(0);
        costs[i][1].bytes = fixed(arenas[i]);
        programs[1 + i] = vision_programs[2];
        programs[1 + i].costs = costs[i];
    }
    family.programs = programs;
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.family = &family;

    const struct burin_plan plan = gpu_plan(&request);

    assert_int_equal(owner_bytes(&plan, "arena"), 300 * MIB);
}

static struct burin_plan plan_of_36_graphs(int64_t node_bytes)
{
    static struct burin_program program;
    static struct burin_family family;
    program = vision_programs[0];
    family = vision_families[0];
    program.graph = (struct burin_graph_cost){ .kernel_nodes = 390, .copy_nodes = 4 };
    family.programs = &program;
    family.n_programs = 1;
    struct burin_plan_request request = gpu_request(8 * GIB);
    request.family = &family;
    request.n_sequences = 256;
    request.costs.node_bytes = node_bytes;
    char text[256] = "step=1";
    for (int i = 2; i <= 36; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", i);
    request.graphs = graphs_of(text);
    return gpu_plan(&request);
}

SPEC(P2_what_the_driver_keeps_for_nodes_adds_up)
{
    struct burin_plan plan = plan_of_36_graphs(0);
    assert_int_equal(owner_bytes(&plan, "graphs"), 929562624);
    plan = plan_of_36_graphs(10 * 1024);
    assert_int_equal(owner_bytes(&plan, "graphs"), 145244160);

    struct burin_plan_run run;
    assert_true(burin_plan_run_at(&plan, 35, &run));
    assert_int_equal(run.driver_bytes, 394 * 10 * 1024);
    assert_true(burin_plan_run_at(&plan, 36, &run));
    assert_int_equal(run.driver_bytes, 0);
}

SPEC(P3_graphs_of_more_than_a_quarter_of_the_card_are_refused_and_the_largest_three_named)
{
    struct burin_program programs[4];
    struct burin_family family = vision_families[0];
    memcpy(programs, vision_programs, sizeof programs);
    programs[0].graph.kernel_nodes = 2000;
    programs[2].graph.kernel_nodes = 3000;
    family.programs = programs;
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.family = &family;
    request.n_sequences = 64;

    struct burin_plan plan = gpu_plan(&request);
    struct burin_error err;

    assert_int_equal(burin_plan_check(&plan, &err), BURIN_ENOMEM);
    assert_true(plan.total_bytes <= plan.limit_bytes);
    assert_int_equal(plan.short_by_bytes, owner_bytes(&plan, "graphs") - GIB);
    assert_non_null(strstr(err.message, "of card: graphs too large by 1.38 GiB ("));
    assert_non_null(
            strstr(err.message, "17 graphs would take 2.38 GiB, more than a quarter"));
    assert_non_null(strstr(
            err.message, "The largest: encode_image n = 1120 188 MiB, encode_image n = 560 "
                         "188 MiB, encode_image n = 280 188 MiB.\n"));
    assert_non_null(strstr(err.message, "The largest part is graphs, 2.38 GiB"));
    struct burin_plan_request other = request;
    assert_int_equal(take_advice(&other, &plan), 1);
    assert_true(gpu_plan(&other).fits);
    request.graphs = graphs_of("step=1,64");
    plan = gpu_plan(&request);
    burin_plan_check(&plan, &err);
    assert_non_null(strstr(err.message, "7 graphs"));
    request.graphs = graphs_of("none");
    assert_true(gpu_plan(&request).fits);
    /* Left to its default, the number of sequences keeps away from it. */
    request.graphs = (struct burin_graphs){ 0 };
    request.n_sequences = 0;
    programs[2] = vision_programs[2];
    assert_int_equal(gpu_plan(&request).n_sequences, 16);
}

SPEC(P4_a_device_that_takes_more_than_was_planned_is_a_warning_with_both_numbers)
{
    static const int64_t mib = MIB;
    char text[200];
    assert_false(burin_plan_drift(100 * mib, 164 * mib, 9, text, sizeof text));
    assert_true(burin_plan_drift(100 * mib, 164 * mib + 1, 906, text, sizeof text));
    assert_non_null(
            strstr(text, "graphs of 906 nodes took 171966465 bytes, 104857600 were"));

    assert_false(burin_plan_drift(1000 * mib, 1100 * mib, 9, text, sizeof text));
    assert_true(burin_plan_drift(1000 * mib, 1100 * mib + 1, 9, text, sizeof text));
    assert_false(burin_plan_drift(1000 * mib, 10, 9, text, sizeof text));
}

/* 600 MiB less the reserve: too little for the context by itself, and for the graphs. */
SPEC(a_card_too_small_for_its_graphs_is_refused_like_any_other)
{
    struct burin_plan_request request = gpu_request(600 * MIB);
    request.n_sequences = 64;

    const struct burin_plan plan = gpu_plan(&request);

    struct burin_error err;
    assert_false(plan.fits);
    assert_int_equal(plan.short_by_bytes, plan.total_bytes - plan.limit_bytes);
    assert_int_equal(burin_plan_check(&plan, &err), BURIN_ENOMEM);
    assert_non_null(strstr(err.message, "short by"));
    assert_non_null(strstr(err.message, "The largest part is"));
    assert_non_null(strstr(plan.advice, "No option mends it"));
}

SPEC(what_is_assumed_of_graphs_that_are_not_planned_is_refused)
{
    struct burin_plan_request request = gpu_request(4 * GIB);
    request.graphs.none = true;
    request.graphs_given = true;
    request.graphs_bytes = GIB;
    assert_non_null(
            strstr(gpu_refusal(&request, BURIN_EUSAGE),
                   "--assume graphs=1073741824: no graphs are planned (--graphs none)"));
}
