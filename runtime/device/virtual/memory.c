/* cuMemAlloc, pinned host memory, and what may be touched. */
#include "runtime/device/virtual/state.h"

#include <sys/mman.h>

static const size_t HOST_PAGE = 4096;

struct burin_virtual_piece *burin_virtual_piece_at(
        enum burin_virtual_kind kind, uint64_t address)
{
    struct burin_virtual_item *item = burin_virtual_self()->items[kind];
    for (; item; item = item->next) {
        struct burin_virtual_piece *piece =
                (struct burin_virtual_piece *)item; /* its head */
        if (address >= piece->address && address - piece->address < item->bytes)
            return piece;
    }
    return NULL;
}

bool burin_virtual_accessible(uint64_t address, size_t bytes)
{
    while (bytes) {
        const struct burin_virtual_piece *piece =
                burin_virtual_piece_at(BURIN_VIRTUAL_MEMORY, address);
        if (!piece)
            piece = burin_virtual_piece_at(BURIN_VIRTUAL_MAPPING, address);
        if (!piece || !piece->may_access)
            return false;
        const uint64_t here = piece->address + piece->item.bytes - address;
        if (here >= bytes)
            return true;
        address += here;
        bytes -= here;
    }
    return true;
}

bool burin_virtual_pinned(const void *memory, size_t bytes)
{
    const uint64_t address = (uint64_t)(uintptr_t)memory;
    const struct burin_virtual_piece *piece =
            burin_virtual_piece_at(BURIN_VIRTUAL_HOST, address);
    return piece && piece->address + piece->item.bytes - address >= bytes;
}

uint64_t burin_virtual_reserve(size_t bytes, size_t align)
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    if (machine->body)
        return machine->body->reserve(machine->body->self, bytes, align);
    const uint64_t address = (machine->next_address + align - 1) & ~(uint64_t)(align - 1);
    machine->next_address =
            address + bytes + align; /* a gap, so that two never look as one */
    return address;
}

void burin_virtual_free_piece(struct burin_virtual_piece *piece)
{
    struct burin_virtual_process *self = burin_virtual_self();
    const struct burin_virtual_body *body = self->machine->body;
    const size_t bytes = piece->item.bytes;

    switch (piece->item.kind) {
    case BURIN_VIRTUAL_MEMORY:
        if (body) {
            body->unmap(body->self, piece->address, bytes);
            body->destroy(body->self, piece->memory, bytes);
            body->unreserve(body->self, piece->address, bytes);
        }
        burin_virtual_give(piece->card, bytes);
        break;
    case BURIN_VIRTUAL_HANDLE:
        if (body)
            body->destroy(body->self, piece->memory, bytes);
        burin_virtual_give(piece->card, bytes);
        break;
    case BURIN_VIRTUAL_ADDRESSES:
        if (body)
            body->unreserve(body->self, piece->address, bytes);
        self->addresses -= bytes;
        break;
    case BURIN_VIRTUAL_MAPPING:
        if (body)
            body->unmap(body->self, piece->address, bytes);
        if (--piece->handle->n_mapped == 0 && piece->handle->released)
            burin_virtual_free_piece(piece->handle);
        break;
    case BURIN_VIRTUAL_HOST:
        munmap((void *)(uintptr_t)piece->address, bytes);
        break;
    default:
        break;
    }
    burin_virtual_drop(&piece->item);
}

/* ---- Calls ---------------------------------------------------------------------------- */

CALL(cuMemGetInfo_v2,
     NEEDS_CONTEXT,
     (size_t * available, size_t *total),
     (available, total))
{
    const struct burin_virtual *machine = burin_virtual_self()->machine;
    const int card = burin_virtual_current()->card;
    *available = burin_virtual_left(machine, card);
    *total = machine->cards[card].total;
    return CU_OK;
}

/* Bytes behind the address, in a body. */
static bool embody(struct burin_virtual_piece *piece, size_t bytes)
{
    const struct burin_virtual_body *body = burin_virtual_self()->machine->body;
    if (!body)
        return true;
    piece->memory = body->create(body->self, bytes);
    if (!piece->memory)
        return false;
    if (!body->map(body->self, piece->address, bytes, piece->memory)) {
        body->destroy(body->self, piece->memory, bytes);
        return false;
    }
    body->access(body->self, piece->address, bytes, true);
    return true;
}

CALL(cuMemAlloc_v2,
     NEEDS_CONTEXT | NO_CAPTURE,
     (uint64_t * address, size_t bytes),
     (address, bytes))
{
    struct burin_virtual *machine = burin_virtual_self()->machine;
    struct burin_cu_context *context = burin_virtual_current();
    const size_t whole = burin_virtual_rounded(machine, bytes);
    if (!bytes)
        return CU_INVALID_VALUE;
    if (burin_virtual_take(context->card, whole))
        return CU_OUT_OF_MEMORY;
    struct burin_virtual_piece *piece =
            burin_virtual_new(BURIN_VIRTUAL_MEMORY, sizeof *piece, context);
    if (piece)
        piece->address = burin_virtual_reserve(whole, machine->options.granule);
    if (!piece || !piece->address || !embody(piece, whole)) {
        if (piece)
            burin_virtual_drop(&piece->item);
        burin_virtual_give(context->card, whole);
        return CU_OUT_OF_MEMORY;
    }
    piece->item.bytes = whole;
    piece->card = context->card;
    piece->may_access = true;
    *address = piece->address;
    return CU_OK;
}

/* Work that may use a card's comes first. Who frees the host's is trusted to have waited. */
static int free_at(enum burin_virtual_kind kind, uint64_t address)
{
    struct burin_virtual_piece *piece = burin_virtual_piece_at(kind, address);
    if (!address)
        return CU_OK;
    if (!piece || piece->address != address)
        return CU_INVALID_VALUE;
    if (kind == BURIN_VIRTUAL_MEMORY)
        burin_virtual_drain_all();
    burin_virtual_free_piece(piece);
    burin_virtual_drain_all();
    return CU_OK;
}

CALL(cuMemFree_v2, NEEDS_CONTEXT | NO_CAPTURE | GIVES_BACK, (uint64_t address), (address))
{
    return free_at(BURIN_VIRTUAL_MEMORY, address);
}

CALL(cuMemHostAlloc,
     NEEDS_CONTEXT | NO_CAPTURE,
     (void **memory, size_t bytes, unsigned flags),
     (memory, bytes, flags))
{
    (void)flags;
    const size_t whole = (bytes + HOST_PAGE - 1) & ~(HOST_PAGE - 1);
    if (!bytes || whole < bytes)
        return CU_INVALID_VALUE;
    void *pages =
            mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return CU_OUT_OF_MEMORY;
    struct burin_virtual_piece *piece =
            burin_virtual_new(BURIN_VIRTUAL_HOST, sizeof *piece, burin_virtual_current());
    if (!piece) {
        munmap(pages, whole);
        return CU_OUT_OF_MEMORY;
    }
    piece->item.bytes = whole;
    piece->address = (uint64_t)(uintptr_t)pages;
    *memory = pages;
    return CU_OK;
}

CALL(cuMemFreeHost, NEEDS_CONTEXT | NO_CAPTURE | GIVES_BACK, (void *memory), (memory))
{
    return free_at(BURIN_VIRTUAL_HOST, (uint64_t)(uintptr_t)memory);
}
