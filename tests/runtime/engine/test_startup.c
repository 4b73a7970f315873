/* A GPU from the plan to what serves, on a virtual card: nothing runs out half-way. */
#include "tests/runtime/engine/rehearse.h"

/* ---- As planned ------------------------------------------------------------------------- */

static int64_t in_granules(int64_t bytes)
{
    const int64_t granule = (int64_t)2 * MIB;
    return (bytes + granule - 1) / granule * granule;
}

/* But for `later` bytes, which are the host's to take. */
static void start_obtains_what_was_planned(int64_t later)
{
    must_start();

    int64_t graphs = 0, sum = 0;
    struct burin_plan_run run;
    for (int i = 0; burin_plan_run_at(&plan, i, &run); i++)
        graphs += in_granules(run.driver_bytes);
    for (int i = 0; i < plan.n_owners; i++) {
        const struct burin_plan_owner *owner = &plan.owners[i];
        if (strcmp(owner->name, "rounding") != 0 && owner->kind == BURIN_DERIVED)
            assert_int_equal(obtained(owner->name), owner->bytes);
        sum += obtained(owner->name);
    }
    assert_int_equal(obtained("graphs"), graphs);
    assert_int_equal(sum, plan.total_bytes);
    assert_int_equal(rehearsal.plan.n_pages, plan.n_pages);
    assert_int_equal(rehearsal.start.facts.n_notes, 0);
    assert_int_equal(
            (int64_t)burin_virtual_memory(machine, 0).ours[0], plan.total_bytes - later);
    end();
}

SPEC(every_owner_obtains_what_was_planned)
{
    for (int64_t bytes = 2 * GIB; bytes < 4 * GIB; bytes += 123456789) {
        plan_on(bytes);
        make_machine();
        start_obtains_what_was_planned(0);
    }
}

SPEC(where_the_host_shares_its_memory_every_owner_obtains_what_was_planned_too)
{
    for (int64_t bytes = 20 * GIB; bytes < 22 * GIB; bytes += 123456789) {
        plan_on(bytes);
        request.card.unified = true;
        request.card.sm = 121;
        request.limit = BURIN_LIMIT_RESERVE_DEFAULT;
        request.weights_at_hand = true;
        request.tokenizer_bytes = bytes / 1000; /* any number */
        make_machine();
        start_obtains_what_was_planned(
                in_granules(owner_bytes(&plan, "host")) +
                in_granules(owner_bytes(&plan, "tokenizer")));
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

static void each_graph_is_captured_and_launched_once(void)
{
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

SPEC(each_graph_of_the_plan_is_captured_and_launched_once)
{
    plan_on(4 * GIB);
    each_graph_is_captured_and_launched_once();
}

SPEC(as_many_graphs_as_a_plan_may_have_of_each_program_are_captured)
{
    plan_on(16 * GIB);
    request.n_sequences = BURIN_MAX_LADDER;
    request.graphs = graphs_of("encode_image=70,1120");
    request.padding_given = true; /* a graph for each number of sequences */

    each_graph_is_captured_and_launched_once();

    assert_int_equal(plan.programs[0].graphs.n, BURIN_MAX_LADDER);
}

/* ---- Other processes ---------------------------------------------------------------------- */

/* What KV obtains where nobody else does anything. */
static int64_t kv_alone(void)
{
    must_start();
    const int64_t bytes = obtained("kv");
    end();
    remake_machine();
    return bytes;
}

SPEC(what_another_takes_while_this_starts_is_that_much_less_KV)
{
    plan_on(16 * GIB);
    make_machine();
    const int64_t alone = kv_alone();
    burin_virtual_neighbour(machine, 0, "cuStreamBeginCapture_v2", 3, 5 * GIB);

    must_start();

    assert_in_range(alone - obtained("kv"), 5 * GIB - 4 * MIB, 5 * GIB + 20 * MIB);
    assert_true(told("5.00 GiB vanished while this started"));
    assert_true(noted("neighbour"));
    end();
}

SPEC(what_another_takes_between_two_pieces_of_KV_is_told)
{
    plan_on(16 * GIB);
    make_machine();
    must_start();
    const int n = burin_virtual_n_calls(machine, "cuMemCreate");
    assert_false(noted("less than seemed left"));
    end();
    remake_machine();
    burin_virtual_neighbour(machine, 0, "cuMemCreate", n - 2, 3 * GIB);

    must_start();

    assert_true(told("less than seemed left"));
    end();
}

SPEC(what_another_gives_back_is_taken_where_a_reserve_is_left_and_not_where_a_cap_is_set)
{
    const int64_t given = 7 * GIB + 235 * MIB;
    for (int reserve = 0; reserve <= 1; reserve++) {
        plan_on(24 * GIB);
        request.card.available_bytes -= 8 * GIB; /* another has them */
        request.limit = reserve ? BURIN_LIMIT_RESERVE : BURIN_LIMIT_BYTES;
        request.limit_bytes = reserve ? GIB : 15 * GIB;
        make_machine();
        const int64_t before = kv_alone();
        burin_virtual_neighbour(machine, 0, "cuGraphUpload", 2, -given);

        must_start();

        const int64_t more = obtained("kv") - before;
        if (reserve)
            assert_in_range(more, given - 4 * MIB, given + 4 * MIB);
        else
            assert_int_equal(more, 0);
        assert_true(noted("became free while this started"));
        assert_false(told("became free"));
        end();
    }
}

SPEC(a_reserve_is_of_what_is_free_and_not_of_the_total)
{
    plan_on(24 * GIB);
    request.card.available_bytes -= 2 * GIB; /* a desktop */
    request.limit = BURIN_LIMIT_RESERVE_DEFAULT;
    make_machine();
    must_start();
    const struct burin_virtual_memory memory = burin_virtual_memory(machine, 0);
    assert_in_range(memory.total - memory.used, GIB, GIB + 4 * MIB);
    end();
}

/* Another of ours starts within the start of the first, before each step of it. */
static struct burin_rehearsal other;
static int starts_at;
static struct burin_plan other_plan;
static struct burin_plan_request other_request;

static bool start_the_other(
        void *user, enum burin_start_step step, size_t done, size_t total)
{
    (void)user;
    if ((int)step != starts_at || done || total)
        return true;
    burin_virtual_select(machine, 1);
    if (burin_rehearse(&other, &other_plan, &other_request, &why))
        fail_msg("%s", why.message);
    burin_virtual_select(machine, 0);
    return true;
}

static int64_t kv_of(const struct burin_rehearsal *of)
{
    return (int64_t)burin_ledger_owner(&of->ledger, "kv")->obtained;
}

static void plan_for_share(double share)
{
    plan_on(24 * GIB);
    request.limit = BURIN_LIMIT_FRACTION;
    request.limit_fraction = share;
}

SPEC(two_that_start_together_each_get_what_they_would_get_alone)
{
    plan_for_share(0.20);
    make_machine();
    const int64_t small = kv_alone();
    other_plan = plan;
    other_request = request;
    plan_for_share(0.35);
    make_machine();
    const int64_t large = kv_alone();

    for (starts_at = 0; starts_at < BURIN_N_START_STEPS; starts_at++) {
        remake_machine();
        burin_rehearsal_open(&rehearsal, &plan, &request);
        rehearsal.start.on_step = start_the_other;
        assert_int_equal(burin_rehearsal_run(&rehearsal, &why), BURIN_OK);

        assert_int_equal(kv_of(&rehearsal), large);
        assert_int_equal(kv_of(&other), small);

        burin_virtual_select(machine, 1);
        burin_rehearsal_close(&other);
        burin_virtual_select(machine, 0);
        end();
    }
}

/* ---- What the driver tells --------------------------------------------------------------- */

SPEC(a_driver_that_takes_less_than_the_worst_known_leaves_more_to_KV)
{
    plan_on(4 * GIB);
    make_machine();
    card.context_bytes = 110 * MIB;
    card.node_bytes = 10 * 1024;
    remake_machine();

    must_start();

    assert_true(obtained("kv") > owner_bytes(&plan, "kv") + 400 * MIB);
    assert_int_equal(obtained("context"), 110 * MIB);
    assert_true(rehearsal.plan.kv_tokens > plan.kv_tokens);
    end();
}

SPEC(where_NVML_refuses_it_is_said_and_what_the_device_has_less_counts)
{
    plan_on(4 * GIB);
    make_machine();
    const int64_t alone = kv_alone();
    burin_virtual_fail(machine, "nvmlDeviceGetHandleByPciBusId_v2", 1, 4, BURIN_FAULT_ONCE);

    must_start();

    assert_true(noted("NVML tells nothing (Insufficient Permissions)"));
    assert_false(told("NVML"));
    assert_true(llabs(alone - obtained("kv")) <= 8 * MIB);
    end();
}

SPEC(in_a_container_what_the_driver_takes_beyond_the_plan_is_not_blamed_on_another)
{
    plan_on(4 * GIB);
    make_machine();
    card.foreign_pids = true;
    card.context_bytes += 200 * (size_t)MIB;
    remake_machine();

    must_start();

    assert_true(noted("NVML tells nothing (it lists no process that is this one"));
    assert_true(told("200 MiB vanished while this started, to the driver or to another"));
    assert_false(noted("pid "));
    end();
}

SPEC(without_NVML_what_a_neighbour_takes_is_not_booked_to_us_beyond_the_plan)
{
    plan_on(16 * GIB);
    make_machine();
    burin_virtual_fail(machine, "nvmlDeviceGetHandleByPciBusId_v2", 1, 4, BURIN_FAULT_ONCE);
    burin_virtual_neighbour(machine, 0, "cuModuleLoadData", 1, 3 * GIB);

    must_start();

    assert_int_equal(obtained("modules"), owner_bytes(&plan, "modules")); /* 64 MiB */
    end();
}

SPEC(granules_of_another_size_are_the_device_s_to_tell)
{
    plan_on(4 * GIB);
    make_machine();
    card.granule = 16 * MIB;
    remake_machine();
    must_start();
    assert_int_equal(rehearsal.gpu.cuda.device.granule, 16 * MIB);
    assert_int_equal((int64_t)burin_virtual_memory(machine, 0).ours[0] % (16 * MIB), 0);
    end();
}

/* ---- Graphs that cannot be had -------------------------------------------------------------- */

SPEC(a_graph_that_the_driver_refuses_takes_the_least_useful_one_with_it)
{
    plan_on(4 * GIB);
    request.n_sequences = 8; /* step 8 5 3 2 1, encode_image 1120 560 280 140 70 */
    make_machine();
    for (int nth = 1; nth <= 10; nth++) {
        remake_machine();
        burin_virtual_fail(
                machine, "cuGraphInstantiateWithFlags", nth, 2, BURIN_FAULT_ONCE);

        must_start();

        assert_int_equal(rehearsal.captures.n, 9);
        assert_int_equal(rehearsal.start.facts.n_graphs_planned, 10);
        assert_true(told(" is given up, its runs are "));
        assert_true(noted("CUDA_ERROR_OUT_OF_MEMORY"));
        if (nth > 5) /* the step's are all there by then */
            assert_true(noted("graph encode_image "));
        assert_true(nth == 1 || captured("step", 8) != NULL);
        end();
    }
}

SPEC(with_no_graph_to_be_had_every_kernel_is_launched_and_each_loss_is_told)
{
    plan_on(4 * GIB);
    request.n_sequences = 8;
    make_machine();
    burin_virtual_fail(machine, "cuGraphInstantiateWithFlags", 1, 2, BURIN_FAULT_ONCE);
    for (int i = 0; i < 9; i++)
        burin_virtual_fail(
                machine, "cuGraphInstantiateWithFlags", i + 2, 2, BURIN_FAULT_ONCE);

    must_start();

    assert_int_equal(rehearsal.captures.n, 0);
    assert_int_equal(rehearsal.start.facts.n_notes, 10);
    assert_true(told("graph step 8 is given up, its runs are launched kernel by kernel"));
    end();
}

SPEC(however_many_graphs_are_given_up_what_comes_behind_them_is_told)
{
    plan_on(24 * GIB);
    request.n_sequences = 64;
    make_machine();
    card.node_bytes = 24 * (size_t)GIB;
    card.no_vmm = true; /* they are made twice */
    remake_machine();
    burin_virtual_neighbour(machine, 0, "cuGraphInstantiateWithFlags", 1, 5 * GIB);

    must_start();

    assert_true(rehearsal.start.facts.n_graphs_planned > 12);
    assert_int_equal(rehearsal.captures.n, 0);
    assert_true(told("graphs more are given up likewise"));
    assert_true(told("5.00 GiB vanished while this started"));
    assert_false(noted("more of the like"));
    end();
}

SPEC(graphs_that_take_more_than_was_planned_are_told)
{
    plan_on(4 * GIB);
    make_machine();
    card.node_bytes *= 10;
    remake_machine();

    must_start();

    assert_true(told(" were planned: KV has so much less"));
    end();
}

SPEC(graphs_that_were_had_until_pages_took_their_place_are_not_counted)
{
    plan_on(24 * GIB);
    request.n_sequences = 64;
    make_machine();
    card.node_bytes = (size_t)GIB;
    card.no_vmm = true;
    remake_machine();
    burin_virtual_neighbour(machine, 0, "cuGraphInstantiateWithFlags", 1, 5 * GIB);

    must_start();

    assert_int_equal(rehearsal.captures.n, 0);
    assert_int_equal(rehearsal.start.facts.n_graphs, 0);
    assert_int_equal(rehearsal.start.facts.n_nodes, 0);
    end();
}

/* ---- Platforms --------------------------------------------------------------------------- */

SPEC(a_platform_without_addresses_ahead_of_memory_starts_in_the_same_order_and_says_so)
{
    plan_on(4 * GIB);
    make_machine();
    card.no_vmm = true;
    remake_machine();

    must_start();

    assert_true(told("no addresses without memory on this platform"));
    assert_int_equal(rehearsal.captures.n, rehearsal.start.facts.n_graphs_planned);
    assert_true(llabs(owner_bytes(&plan, "kv") - obtained("kv")) <= 4 * MIB);
    assert_int_equal(
            (uintptr_t)rehearsal.start.calls[0].states[0], rehearsal.memory.kv.address);
    end();
}

SPEC(where_such_a_platform_lacks_memory_the_refusal_is_the_same)
{
    for (int given = 0; given <= 1; given++) {
        plan_on(4 * GIB);
        request.n_sequences = 1;
        request.kv_tokens = given ? 20000 : 0;
        make_machine();
        card.no_vmm = true;
        remake_machine();
        must_start();
        const int n = burin_virtual_n_calls(machine, "cuMemAlloc_v2");
        end();
        remake_machine();
        burin_virtual_neighbour(machine, 0, "cuMemAlloc_v2", n, 4 * GIB);

        assert_int_equal(start(), BURIN_ENOMEM);

        assert_non_null(strstr(why.message, "room for "));
        assert_non_null(strstr(why.message, " bytes are missing before the KV cache"));
        assert_null(strstr(why.message, "cuMemAlloc"));
        assert_int_equal(given, strstr(why.message, "(--kv-tokens)") != NULL);
        end();
    }
}

SPEC(addresses_that_are_scarce_are_as_many_as_were_planned)
{
    plan_on(4 * GIB);
    make_machine();
    card.context_bytes = 100 * MIB;
    card.address_bytes = (size_t)(4 * GIB - 600 * MIB); /* the card's would be more */
    remake_machine();
    must_start();
    assert_true(obtained("kv") >= owner_bytes(&plan, "kv"));
    end();
}

SPEC(where_the_host_shares_its_memory_pages_stop_at_the_reserve_while_others_grow)
{
    plan_on(100 * GIB);
    request.card.unified = true;
    request.card.sm = 121;
    request.limit = BURIN_LIMIT_RESERVE_DEFAULT;
    make_machine();
    burin_virtual_neighbour(machine, 0, "cuMemCreate", 20, 30 * GIB);

    must_start();

    const struct burin_virtual_memory memory = burin_virtual_memory(machine, 0);
    assert_true((int64_t)(memory.total - memory.used) >= 8 * GIB);
    assert_true(obtained("host") > 0 && obtained("tokenizer") > 0);
    assert_true(told("less than seemed left"));
    end();
}

/* ---- Refusals ---------------------------------------------------------------------------- */

SPEC(weights_that_no_longer_fit_are_named_with_what_others_have_and_what_helps)
{
    plan_on(4 * GIB);
    request.limit = BURIN_LIMIT_RESERVE;
    request.limit_bytes = 0;
    make_machine();
    burin_virtual_neighbour(machine, 0, "cuMemCreate", 1, 3200 * (int64_t)MIB);

    assert_int_equal(start(), BURIN_ENOMEM);

    assert_non_null(strstr(why.message, "weights"));
    assert_non_null(strstr(why.message, "neighbour"));
    assert_non_null(strstr(why.message, "short by"));
    assert_non_null(strstr(why.message, "--wait-for-vram 60"));
    assert_int_equal(burin_virtual_n_calls(machine, "cuStreamBeginCapture_v2"), 0);
    end();
}

SPEC(memory_that_is_there_again_is_not_waited_for)
{
    plan_on(4 * GIB);
    make_machine();
    burin_virtual_fail(machine, "cuMemCreate", 1, CU_OUT_OF_MEMORY, BURIN_FAULT_ONCE);

    assert_int_equal(start(), BURIN_ENOMEM);

    assert_non_null(strstr(why.message, "A plan made now fits, the device has "));
    assert_null(strstr(why.message, "--wait-for-vram"));
    end();
}

SPEC(memory_that_is_not_the_device_s_is_lacking_by_itself)
{
    static const struct {
        const char *call;
        int result;
    } cases[] = { { "cuMemHostAlloc", CU_OUT_OF_MEMORY },
                  { "cuMemAddressReserve", CU_OUT_OF_MEMORY },
                  { "nvrtcCreateProgram", NVRTC_OUT_OF_MEMORY },
                  { "nvrtcCompileProgram", NVRTC_OUT_OF_MEMORY } };
    plan_on(4 * GIB);
    make_machine();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        remake_machine();
        burin_virtual_fail(machine, cases[i].call, 1, cases[i].result, BURIN_FAULT_ONCE);
        assert_int_equal(start(), BURIN_ENOMEM);
        assert_non_null(strstr(why.message, cases[i].call));
        assert_null(strstr(why.message, "at this moment"));
        end();
    }
}

SPEC(a_context_that_nobody_asked_for_shrinks_to_the_pages_there_are_and_no_further_than_4096)
{
    int shrunk = 0, refused = 0;
    for (int64_t gone = 0; gone < 500 * MIB; gone += 7 * MIB) {
        plan_on(GIB + GIB / 2);
        request.n_sequences = 2;
        make_machine();
        burin_virtual_neighbour(machine, 0, "cuStreamBeginCapture_v2", 1, gone);
        if (start()) {
            assert_non_null(strstr(why.message, "one request may need 4096"));
            refused++;
        } else {
            const struct burin_plan *got = &rehearsal.plan;
            assert_true(got->n_ctx >= 4096 && got->n_ctx <= plan.n_ctx);
            assert_true(got->n_ctx + 64 <= got->kv_tokens);
            shrunk += got->n_ctx < plan.n_ctx;
            assert_int_equal(got->n_ctx < plan.n_ctx, told("a sequence reaches"));
        }
        end();
    }
    assert_true(shrunk > 5 && refused > 5);
}

SPEC(a_pool_that_is_asked_for_is_neither_more_nor_less)
{
    plan_on(4 * GIB);
    request.n_sequences = 1;
    request.kv_tokens = 20000;
    make_machine();
    must_start();
    assert_int_equal(rehearsal.plan.n_pages, 313);
    assert_int_equal(obtained("kv"), (int64_t)313 * 64 * 1280);
    end();

    for (int bytes = 0; bytes <= 1; bytes++) {
        request.kv_tokens = bytes ? 0 : 20000;
        request.kv_bytes = bytes ? 20032 * 1280 : 0;
        make_machine();
        burin_virtual_neighbour(machine, 0, "cuStreamBeginCapture_v2", 1, 4 * GIB);
        burin_virtual_neighbour(machine, 0, "cuStreamBeginCapture_v2", 2, -4 * MIB);
        assert_int_equal(start(), BURIN_ENOMEM);
        assert_non_null(
                strstr(why.message, bytes ? ", 20032 are asked for (--kv-bytes)"
                                          : ", 20032 are asked for (--kv-tokens)"));
        assert_non_null(
                strstr(why.message, bytes ? "Smallest change: --kv-bytes "
                                          : "Smallest change: --kv-tokens "));
        assert_null(strstr(why.message, bytes ? "--kv-tokens" : "--kv-bytes"));
        assert_null(strstr(why.message, "one request may need"));
        end();
    }
}

SPEC(a_context_that_is_asked_for_is_within_a_pool_that_is_advised)
{
    plan_on(4 * GIB);
    request.n_sequences = 1;
    request.kv_tokens = request.n_ctx = 20000;
    make_machine();
    burin_virtual_neighbour(machine, 0, "cuStreamBeginCapture_v2", 1, 4 * GIB);
    burin_virtual_neighbour(machine, 0, "cuStreamBeginCapture_v2", 2, -4 * MIB);
    assert_int_equal(start(), BURIN_ENOMEM);
    assert_non_null(strstr(why.message, "Smallest change: --kv-tokens "));
    assert_non_null(strstr(why.message, " --ctx-size "));
    end();
}
