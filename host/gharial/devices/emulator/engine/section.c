/* SPDX-License-Identifier: Apache-2.0
 * Runs a section of the program for several entries, an instruction at a time for all of them. Entries do not touch
 * one another's slots (HAZARD sees to that), so this is the same as one entry after another. */
#include "engine.h"

static int has_effect(const gh_instruction *in, const gh_lane *lane)
{
    switch (in->predicate) {
    case GH_MORE: return lane->vectors > in->threshold;
    case GH_AT_MOST: return lane->vectors <= in->threshold;
    default: return 1;
    }
}

/* Every token has its row: START sees to it for GREEDY's classes, the entry's check for DECODE's tokens. */
static void run_lookup(const gh_program *p, const gh_instruction *in, const gh_lane *lane)
{
    uint8_t *to = gh_operand_at(lane, &in->destination, 0);
    if (in->constant) {
        memcpy(to, p->embedding + in->unit_offset, in->bytes);
    } else if (lane->kind == GH_START) {
        memset(to, 0, in->bytes);
    } else {
        memcpy(to, p->embedding + in->unit_offset + (size_t)lane->token * in->bytes, in->bytes);
    }
}

static void run_joint(gh_engine *engine, uint32_t index, const gh_instruction *in, const gh_lane *lane)
{
    const gh_program *p = engine->program;
    const int16_t *prediction = (const int16_t *)(lane->destination + p->pred_a_bytes) + in->prediction;
    int8_t *to = (int8_t *)gh_operand_at(lane, &in->destination, 0);
    gh_joint_values(to, lane->bank + in->encoder, prediction, in->bytes, in->shift);
    if (engine->trace.on) {
        size_t at = gh_trace_record(&engine->trace, GH_JOINT_SECTION, index, 0, lane->entry, GH_REC_JOINT, in->bytes,
                                    in->bytes);
        if (!engine->trace.failed)
            memcpy(engine->trace.data + at, to, in->bytes);
    }
}

int gh_run_section(gh_engine *engine, int section, gh_lane **lanes, uint32_t count)
{
    const gh_section *s = &engine->program->section[section];
    for (uint32_t index = 0; count && index < s->count; index++) {
        const gh_instruction *in = &s->list[index];
        const uint32_t number = s->first + index;
        uint32_t chosen = 0;
        if (engine->watchdog) {
            engine->watchdog = 0;
            gh_set_fault(engine, GH_WATCHDOG, GH_UNIT_SEQUENCER, lanes[0]->entry, number);
            return -1;
        }
        if (in->fault) {
            gh_set_fault(engine, in->fault, GH_UNIT_SEQUENCER, lanes[0]->entry, number);
            return -1;
        }
        for (uint32_t i = 0; i < count; i++)
            if (has_effect(in, lanes[i]))
                engine->chosen[chosen++] = lanes[i];
        if (!chosen)
            continue;
        if (in->opcode == GH_MATVEC) {
            if (gh_matvec(engine, section, index, engine->chosen, chosen))
                return -1;
            continue;
        }
        for (uint32_t i = 0; i < chosen; i++) {
            if (in->opcode == GH_JOINT)
                run_joint(engine, index, in, engine->chosen[i]);
            else
                run_lookup(engine->program, in, engine->chosen[i]);
        }
    }
    return 0;
}
