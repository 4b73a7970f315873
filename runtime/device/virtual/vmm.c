/* Virtual memory management: addresses, memory, and one mapped at the other. */
#include "runtime/device/virtual/state.h"

static bool whole(size_t bytes)
{
    return bytes && bytes % burin_virtual_self()->machine->options.granule == 0;
}

static bool has_vmm(void)
{
    return !burin_virtual_self()->machine->options.no_vmm;
}

/* Pinned memory of a card that is there, which is all that we ever ask for. */
static int check_kind(const struct burin_cu_memory *memory)
{
    if (!memory || memory->type != CU_MEMORY_PINNED ||
        memory->location.type != CU_LOCATION_DEVICE)
        return CU_INVALID_VALUE;
    const int card = memory->location.id;
    const bool there = card >= 0 && card < burin_virtual_self()->machine->options.n_cards;
    return there ? CU_OK : CU_INVALID_DEVICE;
}

CALL(cuMemGetAllocationGranularity,
     NEEDS_INIT,
     (size_t * bytes, const struct burin_cu_memory *memory, int which),
     (bytes, memory, which))
{
    (void)which;
    if (!has_vmm())
        return CU_NOT_SUPPORTED;
    const int result = check_kind(memory);
    if (!result)
        *bytes = burin_virtual_self()->machine->options.granule;
    return result;
}

/* ---- Addresses ------------------------------------------------------------------------ */

CALL(cuMemAddressReserve,
     NEEDS_INIT | NO_CAPTURE,
     (uint64_t * address,
      size_t bytes,
      size_t align,
      uint64_t at,
      unsigned long long flags),
     (address, bytes, align, at, flags))
{
    (void)at; /* a wish */
    struct burin_virtual_process *self = burin_virtual_self();
    const struct burin_virtual_options *options = &self->machine->options;
    if (!has_vmm())
        return CU_NOT_SUPPORTED;
    if (!whole(bytes) || (align & (align - 1)) || flags)
        return CU_INVALID_VALUE;
    if (options->address_bytes && bytes > options->address_bytes - self->addresses)
        return CU_OUT_OF_MEMORY;
    struct burin_virtual_piece *piece =
            burin_virtual_new(BURIN_VIRTUAL_ADDRESSES, sizeof *piece, NULL);
    if (!piece)
        return CU_OUT_OF_MEMORY;
    piece->address = burin_virtual_reserve(
            bytes, align > options->granule ? align : options->granule);
    if (!piece->address) {
        burin_virtual_drop(&piece->item);
        return CU_OUT_OF_MEMORY;
    }
    piece->item.bytes = bytes;
    self->addresses += bytes;
    *address = piece->address;
    return CU_OK;
}

/* Whether something is mapped between the two. */
static bool any_mapped(uint64_t begin, uint64_t end)
{
    const struct burin_virtual_item *item =
            burin_virtual_self()->items[BURIN_VIRTUAL_MAPPING];
    for (; item; item = item->next) {
        const struct burin_virtual_piece *mapping =
                (const struct burin_virtual_piece *)item; /* its head */
        if (mapping->address < end && begin < mapping->address + item->bytes)
            return true;
    }
    return false;
}

CALL(cuMemAddressFree,
     NEEDS_INIT | NO_CAPTURE | GIVES_BACK,
     (uint64_t address, size_t bytes),
     (address, bytes))
{
    struct burin_virtual_piece *piece =
            burin_virtual_piece_at(BURIN_VIRTUAL_ADDRESSES, address);
    if (!piece || piece->address != address || piece->item.bytes != bytes ||
        any_mapped(address, address + bytes))
        return CU_INVALID_VALUE;
    burin_virtual_free_piece(piece);
    return CU_OK;
}

/* ---- Memory ---------------------------------------------------------------------------- */

/* A handle is an address of ours. The driver says that 0 is none. */
static struct burin_virtual_piece *handle_of(unsigned long long handle)
{
    struct burin_virtual_piece *piece = (struct burin_virtual_piece *)(uintptr_t)handle;
    const bool is = piece && burin_virtual_is(&piece->item, BURIN_VIRTUAL_HANDLE);
    return is && !piece->released ? piece : NULL;
}

CALL(cuMemCreate,
     NEEDS_INIT | NO_CAPTURE,
     (unsigned long long *handle,
      size_t bytes,
      const struct burin_cu_memory *memory,
      unsigned long long flags),
     (handle, bytes, memory, flags))
{
    const struct burin_virtual_body *body = burin_virtual_self()->machine->body;
    if (!has_vmm())
        return CU_NOT_SUPPORTED;
    const int result = check_kind(memory);
    if (result)
        return result;
    if (!whole(bytes) || flags)
        return CU_INVALID_VALUE;
    const int card = memory->location.id;
    if (burin_virtual_take(card, bytes))
        return CU_OUT_OF_MEMORY;
    struct burin_virtual_piece *piece =
            burin_virtual_new(BURIN_VIRTUAL_HANDLE, sizeof *piece, NULL);
    if (piece && body)
        piece->memory = body->create(body->self, bytes);
    if (!piece || (body && !piece->memory)) {
        if (piece)
            burin_virtual_drop(&piece->item);
        burin_virtual_give(card, bytes);
        return CU_OUT_OF_MEMORY;
    }
    piece->item.bytes = bytes;
    piece->card = card;
    *handle = (unsigned long long)(uintptr_t)piece;
    return CU_OK;
}

/* What is mapped keeps its memory. */
CALL(cuMemRelease,
     NEEDS_INIT | NO_CAPTURE | GIVES_BACK,
     (unsigned long long handle),
     (handle))
{
    struct burin_virtual_piece *piece = handle_of(handle);
    if (!piece)
        return CU_INVALID_VALUE;
    piece->released = true;
    if (!piece->n_mapped)
        burin_virtual_free_piece(piece);
    return CU_OK;
}

/* ---- Memory at addresses ------------------------------------------------------------------ */

CALL(cuMemMap,
     NEEDS_INIT | NO_CAPTURE,
     (uint64_t address,
      size_t bytes,
      size_t offset,
      unsigned long long handle,
      unsigned long long flags),
     (address, bytes, offset, handle, flags))
{
    const struct burin_virtual_body *body = burin_virtual_self()->machine->body;
    const size_t granule = burin_virtual_self()->machine->options.granule;
    struct burin_virtual_piece *memory = handle_of(handle);
    const struct burin_virtual_piece *addresses =
            burin_virtual_piece_at(BURIN_VIRTUAL_ADDRESSES, address);
    if (!memory || !addresses || !whole(bytes) || address % granule || offset || flags)
        return CU_INVALID_VALUE;
    if (bytes > memory->item.bytes ||
        bytes > addresses->address + addresses->item.bytes - address ||
        any_mapped(address, address + bytes))
        return CU_INVALID_VALUE;
    if (body && !body->map(body->self, address, bytes, memory->memory))
        return CU_OUT_OF_MEMORY;
    struct burin_virtual_piece *mapping =
            burin_virtual_new(BURIN_VIRTUAL_MAPPING, sizeof *mapping, NULL);
    if (!mapping) {
        if (body)
            body->unmap(body->self, address, bytes);
        return CU_OUT_OF_MEMORY;
    }
    mapping->item.bytes = bytes;
    mapping->address = address;
    mapping->handle = memory;
    memory->n_mapped++;
    return CU_OK;
}

/* Let `each` have all mappings of a range, which must be whole and cover it. */
static int of_range(
        uint64_t address, size_t bytes, void (*each)(struct burin_virtual_piece *mapping))
{
    size_t covered = 0;
    for (uint64_t at = address; covered < bytes;) {
        const struct burin_virtual_piece *mapping =
                burin_virtual_piece_at(BURIN_VIRTUAL_MAPPING, at);
        if (!mapping || mapping->address != at)
            return CU_INVALID_VALUE;
        at += mapping->item.bytes;
        covered += mapping->item.bytes;
    }
    if (!bytes || covered != bytes)
        return CU_INVALID_VALUE;
    for (uint64_t at = address; at < address + bytes;) {
        struct burin_virtual_piece *mapping =
                burin_virtual_piece_at(BURIN_VIRTUAL_MAPPING, at);
        at += mapping->item.bytes;
        each(mapping);
    }
    return CU_OK;
}

CALL(cuMemUnmap,
     NEEDS_INIT | NO_CAPTURE | GIVES_BACK,
     (uint64_t address, size_t bytes),
     (address, bytes))
{
    const int result = of_range(address, bytes, burin_virtual_free_piece);
    burin_virtual_drain_all();
    return result;
}

static void grant(struct burin_virtual_piece *mapping)
{
    const struct burin_virtual_body *body = burin_virtual_self()->machine->body;
    mapping->may_access = true;
    if (body)
        body->access(body->self, mapping->address, mapping->item.bytes, true);
}

static void deny(struct burin_virtual_piece *mapping)
{
    const struct burin_virtual_body *body = burin_virtual_self()->machine->body;
    mapping->may_access = false;
    if (body)
        body->access(body->self, mapping->address, mapping->item.bytes, false);
}

CALL(cuMemSetAccess,
     NEEDS_INIT | NO_CAPTURE,
     (uint64_t address, size_t bytes, const struct burin_cu_access *access, size_t n),
     (address, bytes, access, n))
{
    if (!access || n != 1 || access->location.type != CU_LOCATION_DEVICE)
        return CU_INVALID_VALUE;
    if (access->flags != CU_ACCESS_READ_WRITE && access->flags != 0)
        return CU_INVALID_VALUE;
    return of_range(address, bytes, access->flags ? grant : deny);
}
