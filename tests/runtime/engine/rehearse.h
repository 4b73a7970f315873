/* tests/runtime/engine/rehearse.h -- Start-up on a virtual card: the small vision model's, or one
 * that a test makes. */
#ifndef BURIN_TEST_REHEARSE_H
#define BURIN_TEST_REHEARSE_H

#include "runtime/engine/rehearsal.h"
#include "tests/runtime/plan/gpu.h"

static struct burin_plan_request request;
static struct burin_plan plan;
static struct burin_virtual_options card;
static struct burin_virtual *machine;
static struct burin_rehearsal rehearsal;
static struct burin_error why;

/* A card of so many bytes, all of which may be used. */
static inline void plan_on(int64_t bytes)
{
    request = gpu_request(bytes);
}

/* Plan, and a machine with the planned card, whose driver takes what the plan assumes. */
static inline void make_machine(void)
{
    burin_virtual_close(machine);
    plan = gpu_plan(&request);
    card = burin_rehearsal_card(&plan);
    assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);
}

/* The same with other options of the card. */
static inline void remake_machine(void)
{
    burin_virtual_close(machine);
    assert_int_equal(burin_virtual_open(&machine, &card, NULL), BURIN_OK);
}

static inline enum burin_status start(void)
{
    why = (struct burin_error){ 0 };
    return burin_rehearse(&rehearsal, &plan, &request, &why);
}

static inline void must_start(void)
{
    if (start())
        fail_msg("%s", why.message);
}

static inline int64_t obtained(const char *owner)
{
    const struct burin_owner *row = burin_ledger_owner(&rehearsal.ledger, owner);
    return row ? (int64_t)row->obtained : 0;
}

/* Everything is given back. */
static inline void end(void)
{
    char held[300];
    burin_rehearsal_close(&rehearsal);
    burin_virtual_held_text(machine, held, sizeof held);
    assert_string_equal(held, "");
    assert_int_equal(burin_virtual_memory(machine, 0).ours[0], 0);
}

static inline const struct burin_start_note *note_with(const char *text)
{
    const struct burin_start_facts *facts = &rehearsal.start.facts;
    for (int i = 0; i < facts->n_notes; i++)
        if (strstr(facts->notes[i].text, text))
            return &facts->notes[i];
    return NULL;
}

/* At all; and without being asked. */
static inline bool noted(const char *text)
{
    return note_with(text) != NULL;
}

static inline bool told(const char *text)
{
    const struct burin_start_note *note = note_with(text);
    return note && note->unasked;
}

#endif
