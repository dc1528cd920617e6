/* SPDX-License-Identifier: Apache-2.0
 * Entries of ENCODE, DECODE and GREEDY: what docs/isa.md asks of them, checked in its order before anything changes. */
#include "engine.h"

enum { READ = 1, WRITTEN = 2 };

void gh_set_fault(gh_engine *engine, uint32_t code, uint32_t unit, uint32_t entry, uint32_t detail)
{
    engine->fault.code = code;
    engine->fault.unit = unit;
    engine->fault.entry = entry;
    engine->fault.detail = detail;
}

static int refuse(gh_engine *engine, uint32_t code, uint32_t entry, uint32_t detail)
{
    gh_set_fault(engine, code, code == GH_ADDRESS ? GH_UNIT_HOST : GH_UNIT_SEQUENCER, entry, detail);
    return -1;
}

/* Records that the entry reads or writes the slot, unless another entry is in its way. */
static int claim(gh_engine *engine, uint8_t *marks, uint32_t slot, int mark, uint32_t entry)
{
    if (mark == WRITTEN ? marks[slot] != 0 : marks[slot] & WRITTEN)
        return refuse(engine, GH_HAZARD, entry, slot);
    marks[slot] |= (uint8_t)mark;
    return 0;
}

static int in_memory(const gh_engine *engine, uint64_t base, uint64_t offset, uint64_t bytes)
{
    const uint64_t address = base + offset, size = engine->memory_bytes;
    return base % 4 == 0 && offset % 4 == 0 && address >= base && address <= size && bytes <= size - address;
}

static int check_result(gh_engine *engine, const gh_command *c, uint32_t entry)
{
    const uint64_t offset = (uint64_t)c->stride * entry;
    if (!in_memory(engine, c->results, offset, c->result_bytes))
        return refuse(engine, GH_ADDRESS, entry, (uint32_t)(c->results + offset));
    return 0;
}

static int check_encode(gh_engine *engine, const gh_command *c, uint32_t entry, const uint32_t w[4])
{
    const gh_header *h = &engine->program->header;
    const uint32_t greedy = c->operation == GH_OP_GREEDY;
    const uint32_t slot = gh_bits(w[0], 0, 16), reset = gh_bits(w[0], 16, 1), vectors = gh_bits(w[0], 18, 3);
    const uint32_t prediction = gh_bits(w[3], 0, 16);
    if (w[0] >> 21 || vectors < 1 || vectors > h->vectors)
        return refuse(engine, GH_BAD_ENTRY, entry, 0);
    if (greedy ? w[3] >> 16 : w[3])
        return refuse(engine, GH_BAD_ENTRY, entry, 3);
    if (slot >= engine->enc_slots || (!reset && engine->enc_flags[slot] != GH_LIVE))
        return refuse(engine, GH_BAD_SLOT, entry, slot);
    if (greedy && (prediction >= engine->pred_slots || (!reset && engine->pred_flags[prediction] != GH_LIVE)))
        return refuse(engine, GH_BAD_SLOT, entry, prediction);
    if (claim(engine, engine->enc_marks, slot, WRITTEN, entry) ||
        (greedy && claim(engine, engine->pred_marks, prediction, WRITTEN, entry)))
        return -1;
    if (!in_memory(engine, c->features, w[1], (uint64_t)vectors * h->feature_bytes))
        return refuse(engine, GH_ADDRESS, entry, (uint32_t)(c->features + w[1]));
    return greedy ? check_result(engine, c, entry) : 0;
}

static int check_decode(gh_engine *engine, const gh_command *c, uint32_t entry, const uint32_t w[4])
{
    const uint32_t slot = gh_bits(w[0], 0, 16), kind = gh_bits(w[0], 21, 2), no_joint = gh_bits(w[0], 23, 1);
    const uint32_t source = gh_bits(w[1], 0, 16), destination = gh_bits(w[1], 16, 16);
    if (w[0] >> 24 || gh_bits(w[0], 18, 3) || gh_bits(w[0], 16, 1) || kind > GH_START)
        return refuse(engine, GH_BAD_ENTRY, entry, 0);
    if (kind == GH_NONE && source != destination)
        return refuse(engine, GH_BAD_ENTRY, entry, 1);
    if (kind == GH_TOKEN && w[2] >= engine->program->header.tokens)
        return refuse(engine, GH_BAD_ENTRY, entry, 2);
    if (w[3])
        return refuse(engine, GH_BAD_ENTRY, entry, 3);
    if (!no_joint && (slot >= engine->enc_slots || engine->enc_flags[slot] == GH_FREE))
        return refuse(engine, GH_BAD_SLOT, entry, slot);
    if (kind != GH_START && (source >= engine->pred_slots || engine->pred_flags[source] != GH_LIVE))
        return refuse(engine, GH_BAD_SLOT, entry, source);
    if (destination >= engine->pred_slots)
        return refuse(engine, GH_BAD_SLOT, entry, destination);
    if (kind == GH_TOKEN && source != destination && claim(engine, engine->pred_marks, source, READ, entry))
        return -1;
    if (claim(engine, engine->pred_marks, destination, WRITTEN, entry))
        return -1;
    return no_joint ? 0 : check_result(engine, c, entry);
}

static void unmark(uint8_t *marks, uint32_t slots, uint32_t slot)
{
    if (slot < slots)
        marks[slot] = 0;
}

void gh_entry(const gh_command *c, uint32_t index, uint32_t words[4])
{
    memcpy(words, c->entries + 16 * (size_t)index, 16);
}

int gh_check_entries(gh_engine *engine, const gh_command *c)
{
    int failed = 0;
    uint32_t i = 0, w[4];
    for (; i < c->count && !failed; i++) {
        gh_entry(c, i, w);
        failed = c->operation == GH_OP_DECODE ? check_decode(engine, c, i, w) : check_encode(engine, c, i, w);
    }
    while (i-- > 0) {
        gh_entry(c, i, w);
        if (c->operation == GH_OP_DECODE) {
            unmark(engine->pred_marks, engine->pred_slots, gh_bits(w[1], 0, 16));
            unmark(engine->pred_marks, engine->pred_slots, gh_bits(w[1], 16, 16));
        } else {
            unmark(engine->enc_marks, engine->enc_slots, gh_bits(w[0], 0, 16));
            unmark(engine->pred_marks, engine->pred_slots, gh_bits(w[3], 0, 16));
        }
    }
    return failed;
}

void gh_drop_destinations(gh_engine *engine, const gh_command *c)
{
    const gh_program *p = engine->program;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t w[4];
        gh_entry(c, i, w);
        if (c->operation != GH_OP_DECODE) {
            const uint32_t slot = gh_bits(w[0], 0, 16);
            engine->enc_flags[slot] = GH_FREE;
            memset(gh_enc_slot(engine, slot), 0, p->enc_bytes);
        }
        if (c->operation != GH_OP_ENCODE) {
            const uint32_t slot = c->operation == GH_OP_DECODE ? gh_bits(w[1], 16, 16) : gh_bits(w[3], 0, 16);
            engine->pred_flags[slot] = GH_FREE;
            memset(gh_pred_slot(engine, slot), 0, p->pred_bytes);
        }
    }
}
