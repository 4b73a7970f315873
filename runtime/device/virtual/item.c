/* Things with handles, and the bytes that they take. */
#include "runtime/device/virtual/state.h"

void *burin_virtual_new(
        enum burin_virtual_kind kind, size_t size, struct burin_cu_context *context)
{
    struct burin_virtual_process *self = burin_virtual_self();
    struct burin_virtual_item *item =
            burin_arena_take(&self->machine->arena, 1, size, _Alignof(max_align_t));
    if (!item)
        return NULL;
    *item = (struct burin_virtual_item){
        .kind = kind, .live = true, .context = context, .next = self->items[kind]
    };
    if (item->next)
        item->next->previous = item;
    self->items[kind] = item;
    self->machine->counts.obtained++;
    return item;
}

void burin_virtual_drop(struct burin_virtual_item *item)
{
    struct burin_virtual_process *self = burin_virtual_self();
    item->live = false;
    if (item->next)
        item->next->previous = item->previous;
    if (item->previous)
        item->previous->next = item->next;
    else
        self->items[item->kind] = item->next;
    item->next = NULL;
    item->previous = NULL;
}

bool burin_virtual_is(const struct burin_virtual_item *item, enum burin_virtual_kind kind)
{
    return item && item->live && item->kind == kind;
}

size_t burin_virtual_left(const struct burin_virtual *machine, int card)
{
    return machine->cards[card].total - machine->cards[card].used;
}

size_t burin_virtual_rounded(const struct burin_virtual *machine, size_t bytes)
{
    const size_t granule = machine->options.granule;
    return bytes > SIZE_MAX - granule ? SIZE_MAX : (bytes + granule - 1) & ~(granule - 1);
}

int burin_virtual_take(int card, size_t bytes)
{
    struct burin_virtual_process *self = burin_virtual_self();
    struct burin_virtual *machine = self->machine;
    struct burin_virtual_memory *memory = &machine->cards[card];
    if (bytes > burin_virtual_left(machine, card))
        return CU_OUT_OF_MEMORY;
    memory->used += bytes;
    memory->ours[self - machine->processes] += bytes;
    if (memory->most_used < memory->used)
        memory->most_used = memory->used;
    return CU_OK;
}

void burin_virtual_give(int card, size_t bytes)
{
    struct burin_virtual_process *self = burin_virtual_self();
    struct burin_virtual *machine = self->machine;
    machine->cards[card].used -= bytes;
    machine->cards[card].ours[self - machine->processes] -= bytes;
}
