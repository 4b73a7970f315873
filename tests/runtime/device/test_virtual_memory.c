/* Memory of a virtual GPU: by cuMemAlloc, and as addresses with memory mapped behind them. */
#include "tests/support/virtual_gpu.h"

#include <string.h>

static const struct burin_cu_access read_write = { { CU_LOCATION_DEVICE, 0 },
                                                   CU_ACCESS_READ_WRITE };
static const struct burin_cu_access none = { { CU_LOCATION_DEVICE, 0 }, 0 };

static uint64_t reserve(size_t n_granules)
{
    uint64_t address = 0;
    assert_int_equal(
            cu.cuMemAddressReserve(&address, n_granules * GRANULE, GRANULE, 0, 0), CU_OK);
    return address;
}

static unsigned long long create(size_t n_granules)
{
    const struct burin_cu_memory memory = on_card_0();
    unsigned long long handle = 0;
    assert_int_equal(cu.cuMemCreate(&handle, n_granules * GRANULE, &memory, 0), CU_OK);
    return handle;
}

static int map(uint64_t address, size_t n_granules, unsigned long long handle)
{
    return cu.cuMemMap(address, n_granules * GRANULE, 0, handle, 0);
}

static int touch(uint64_t address, size_t bytes)
{
    return cu.cuMemsetD8Async(address, 0, bytes, NULL);
}

static int64_t obtained(void)
{
    return burin_virtual_counts(machine).obtained;
}

/* ---- cuMemAlloc ------------------------------------------------------------------------ */

SPEC(an_allocation_takes_whole_granules_and_may_be_touched)
{
    uint64_t address, other;
    on_a_small_gpu();

    assert_int_equal(cu.cuMemAlloc_v2(&address, GRANULE + 1), CU_OK);
    assert_int_equal(cu.cuMemAlloc_v2(&other, 1), CU_OK);

    assert_int_equal(granules_used(), 3 + 2 + 1);
    assert_int_equal(touch(address, GRANULE + 1), CU_OK);
    assert_int_equal(touch(address - 1, 1), CU_INVALID_VALUE);
    assert_int_equal(touch(address, 2 * GRANULE + 1), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemAlloc_v2(&address, 0), CU_INVALID_VALUE);
    close_gpu();
}

SPEC(every_allocation_too_large_is_refused_and_the_card_left_alone)
{
    on_a_small_gpu();
    for (size_t n = N_GRANULES - 3; n <= N_GRANULES; n++) {
        uint64_t address = 7;
        const int64_t before = obtained();

        assert_int_equal(cu.cuMemAlloc_v2(&address, n * GRANULE + 1), CU_OUT_OF_MEMORY);

        assert_int_equal(address, 7);
        assert_int_equal(obtained(), before);
        assert_int_equal(granules_used(), 3);
    }
    uint64_t address;
    assert_int_equal(cu.cuMemAlloc_v2(&address, SIZE_MAX), CU_OUT_OF_MEMORY);
    assert_int_equal(cu.cuMemAlloc_v2(&address, (N_GRANULES - 3) * GRANULE), CU_OK);
    close_gpu();
}

SPEC(what_was_freed_cannot_be_freed_again_and_its_address_does_not_come_back)
{
    uint64_t first, second;
    on_a_small_gpu();
    cu.cuMemAlloc_v2(&first, 1);

    assert_int_equal(cu.cuMemFree_v2(first + 1), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemFree_v2(first), CU_OK);
    assert_int_equal(cu.cuMemFree_v2(first), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemFree_v2(0), CU_OK);
    cu.cuMemAlloc_v2(&second, 1);

    assert_int_not_equal(first, second);
    assert_int_equal(touch(first, 1), CU_INVALID_VALUE);
    close_gpu();
}

SPEC(pinned_memory_is_the_hosts)
{
    void *memory;
    on_a_small_gpu();

    assert_int_equal(cu.cuMemHostAlloc(&memory, 10000, 0), CU_OK);

    memset(memory, 1, 10000);
    assert_int_equal(granules_used(), 3);
    assert_int_equal(burin_virtual_held(machine, 0, BURIN_VIRTUAL_HOST).bytes, 12288);
    assert_int_equal(cu.cuMemFreeHost(memory), CU_OK);
    assert_int_equal(cu.cuMemFreeHost(memory), CU_INVALID_VALUE);
    close_gpu();
}

/* ---- Addresses with memory behind them ------------------------------------------------- */

SPEC(addresses_take_no_memory_and_memory_has_no_address)
{
    on_a_small_gpu();

    const uint64_t address = reserve(1000);
    assert_int_equal(granules_used(), 3);
    assert_int_equal(address % GRANULE, 0);
    assert_int_equal(touch(address, 1), CU_INVALID_VALUE);
    const unsigned long long handle = create(5);

    assert_int_equal(granules_used(), 3 + 5);
    assert_int_equal(cu.cuMemRelease(handle), CU_OK);
    assert_int_equal(granules_used(), 3);
    assert_int_equal(cu.cuMemRelease(handle), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemAddressFree(address, 1000 * GRANULE), CU_OK);
    close_gpu();
}

SPEC(mapped_memory_may_be_touched_once_access_is_granted)
{
    on_a_small_gpu();
    const uint64_t address = reserve(8);
    const unsigned long long handle = create(2);

    assert_int_equal(map(address + GRANULE, 2, handle), CU_OK);
    assert_int_equal(touch(address + GRANULE, 1), CU_INVALID_VALUE);
    assert_int_equal(
            cu.cuMemSetAccess(address + GRANULE, 2 * GRANULE, &read_write, 1), CU_OK);

    assert_int_equal(touch(address + GRANULE, 2 * GRANULE), CU_OK);
    assert_int_equal(touch(address + GRANULE, 2 * GRANULE + 1), CU_INVALID_VALUE);
    assert_int_equal(touch(address, GRANULE + 1), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemSetAccess(address + GRANULE, 2 * GRANULE, &none, 1), CU_OK);
    assert_int_equal(touch(address + GRANULE, 1), CU_INVALID_VALUE);
    close_gpu();
}

SPEC(neighbouring_mappings_are_one_piece_for_who_touches_them)
{
    on_a_small_gpu();
    const uint64_t address = reserve(8);
    map(address, 2, create(2));
    map(address + 2 * GRANULE, 1, create(1));

    assert_int_equal(cu.cuMemSetAccess(address, 3 * GRANULE, &read_write, 1), CU_OK);

    assert_int_equal(touch(address + 1, 3 * GRANULE - 1), CU_OK);
    close_gpu();
}

SPEC(memory_that_was_released_lives_as_long_as_it_is_mapped)
{
    on_a_small_gpu();
    const uint64_t address = reserve(4);
    const unsigned long long handle = create(1);
    map(address, 1, handle);
    map(address + GRANULE, 1, handle); /* the same at two addresses */

    assert_int_equal(cu.cuMemRelease(handle), CU_OK);
    assert_int_equal(map(address + 2 * GRANULE, 1, handle), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemUnmap(address, GRANULE), CU_OK);
    assert_int_equal(granules_used(), 3 + 1);
    assert_int_equal(cu.cuMemUnmap(address + GRANULE, GRANULE), CU_OK);

    assert_int_equal(granules_used(), 3);
    close_gpu();
}

SPEC(wrong_use_is_answered_and_changes_nothing)
{
    on_a_small_gpu();
    const struct burin_cu_memory memory = on_card_0();
    struct burin_cu_memory elsewhere = on_card_0();
    const uint64_t address = reserve(8);
    const unsigned long long handle = create(2);
    unsigned long long other;
    uint64_t more;
    elsewhere.location.id = 1;
    assert_int_equal(map(address, 2, handle), CU_OK);
    const int64_t before = obtained();

    /* sizes that are not of whole granules, or nothing */
    assert_int_equal(cu.cuMemAddressReserve(&more, GRANULE + 1, 0, 0, 0), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemAddressReserve(&more, 0, 0, 0, 0), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemCreate(&other, GRANULE - 1, &memory, 0), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemCreate(&other, 0, &memory, 0), CU_INVALID_VALUE);
    /* a card that is not there */
    assert_int_equal(cu.cuMemCreate(&other, GRANULE, &elsewhere, 0), CU_INVALID_DEVICE);
    /* what is mapped already, without memory, without addresses, not on a granule, too long */
    assert_int_equal(map(address + GRANULE, 2, handle), CU_INVALID_VALUE);
    assert_int_equal(map(address + 4 * GRANULE, 1, 0), CU_INVALID_VALUE);
    assert_int_equal(map(address + 100 * GRANULE, 1, handle), CU_INVALID_VALUE);
    assert_int_equal(map(address + 4 * GRANULE + 512, 1, handle), CU_INVALID_VALUE);
    assert_int_equal(map(address + 4 * GRANULE, 3, handle), CU_INVALID_VALUE);
    assert_int_equal(map(address + 7 * GRANULE, 2, handle), CU_INVALID_VALUE);
    /* a part of a mapping, or more than is mapped */
    assert_int_equal(cu.cuMemUnmap(address, GRANULE), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemUnmap(address, 3 * GRANULE), CU_INVALID_VALUE);
    assert_int_equal(
            cu.cuMemSetAccess(address, 3 * GRANULE, &read_write, 1), CU_INVALID_VALUE);
    /* addresses with memory behind them, or other than were reserved */
    assert_int_equal(cu.cuMemAddressFree(address, 8 * GRANULE), CU_INVALID_VALUE);
    assert_int_equal(cu.cuMemUnmap(address, 2 * GRANULE), CU_OK);
    assert_int_equal(cu.cuMemAddressFree(address, 7 * GRANULE), CU_INVALID_VALUE);

    assert_int_equal(obtained(), before);
    assert_int_equal(granules_used(), 3 + 2);
    close_gpu();
}

SPEC(a_card_gives_its_last_granule_and_then_none)
{
    on_a_small_gpu();
    const struct burin_cu_memory memory = on_card_0();
    unsigned long long handle = 0;
    size_t available, total;
    create(N_GRANULES - 3 - 1);

    assert_int_equal(cu.cuMemCreate(&handle, 2 * GRANULE, &memory, 0), CU_OUT_OF_MEMORY);
    assert_int_equal(cu.cuMemCreate(&handle, GRANULE, &memory, 0), CU_OK);
    assert_int_equal(cu.cuMemCreate(&handle, GRANULE, &memory, 0), CU_OUT_OF_MEMORY);

    cu.cuMemGetInfo_v2(&available, &total);
    assert_int_equal(available, 0);
    assert_int_equal(total, N_GRANULES * GRANULE);
    close_gpu();
}

SPEC(a_granule_is_what_the_machine_says)
{
    struct burin_virtual_options options = small_gpu();
    const struct burin_cu_memory memory = on_card_0();
    unsigned long long handle;
    size_t granule;
    options.granule = 4 * GRANULE;
    boot(&options);
    with_context();

    assert_int_equal(
            cu.cuMemGetAllocationGranularity(&granule, &memory, CU_GRANULE_WISHED), CU_OK);

    assert_int_equal(granule, 4 * GRANULE);
    assert_int_equal(cu.cuMemCreate(&handle, 2 * GRANULE, &memory, 0), CU_INVALID_VALUE);
    assert_int_equal(granules_used(), 4); /* of the context's 3 */
    close_gpu();
}

SPEC(a_platform_may_lack_it_or_have_few_addresses)
{
    struct burin_virtual_options options = small_gpu();
    const struct burin_cu_memory memory = on_card_0();
    unsigned long long handle;
    uint64_t address;
    int has;
    options.no_vmm = true;
    boot(&options);
    with_context();
    cu.cuDeviceGetAttribute(&has, CU_DEVICE_HAS_VMM, 0);
    assert_int_equal(has, 0);
    assert_int_equal(cu.cuMemAddressReserve(&address, GRANULE, 0, 0, 0), CU_NOT_SUPPORTED);
    assert_int_equal(cu.cuMemCreate(&handle, GRANULE, &memory, 0), CU_NOT_SUPPORTED);
    assert_int_equal(cu.cuMemAlloc_v2(&address, 1), CU_OK);
    close_gpu();

    options = small_gpu();
    options.address_bytes = 10 * GRANULE;
    boot(&options);
    with_context();
    address = reserve(7);
    assert_int_equal(
            cu.cuMemAddressReserve(&address, 4 * GRANULE, 0, 0, 0), CU_OUT_OF_MEMORY);
    reserve(3);
    close_gpu();
}

SPEC(memory_outlives_the_context_and_not_the_process)
{
    char text[200];
    on_a_small_gpu();
    const uint64_t address = reserve(4);
    map(address, 2, create(2));

    cu.cuDevicePrimaryCtxRelease_v2(0);
    assert_int_equal(granules_used(), 2);
    burin_virtual_held_text(machine, text, sizeof text);
    assert_string_equal(
            text, "1 x handle of 4194304 bytes, 1 x range of addresses of 8388608 bytes, "
                  "1 x mapping of 4194304 bytes");
    burin_virtual_end(machine, 0);

    assert_int_equal(granules_used(), 0);
    close_gpu();
}
