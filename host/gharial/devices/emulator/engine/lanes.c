/* SPDX-License-Identifier: Apache-2.0
 * Memories of the entries being worked on, grown to the largest command so far under the current program. */
#include <stdlib.h>

#include "engine.h"

static size_t padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

int gh_make_lanes(gh_engine *engine, uint32_t count)
{
    if (count <= engine->lanes_made)
        return 0;
    gh_free_lanes(engine);
    const gh_program *p = engine->program;
    const size_t scratch = padded((size_t)p->header.scratch_units * p->cols);
    const size_t sums = padded((size_t)p->header.sum_groups * p->rows * sizeof(int32_t));
    const size_t logits = padded(p->header.classes * sizeof(int16_t));
    engine->lanes = calloc(count, sizeof *engine->lanes);
    engine->active = calloc(3 * (size_t)count, sizeof *engine->active);
    engine->columns = calloc(GH_MAX_VECTORS * (size_t)count, sizeof *engine->columns);
    engine->corrections = calloc(GH_MAX_VECTORS * (size_t)count, sizeof *engine->corrections);
    engine->lane_memory = aligned_alloc(64, count * (scratch + sums + logits) + 64);
    engine->order = calloc(p->header.classes, sizeof *engine->order);
    engine->survivors = calloc(p->header.classes, sizeof *engine->survivors);
    engine->zero_slot = calloc(1, (size_t)p->pred_bytes + 64);
    if (!engine->lanes || !engine->active || !engine->columns || !engine->corrections || !engine->lane_memory ||
        !engine->order || !engine->survivors || !engine->zero_slot) {
        gh_free_lanes(engine);
        return -1;
    }
    engine->chosen = engine->active + count;
    engine->stepping = engine->chosen + count;
    uint8_t *at = engine->lane_memory;
    for (uint32_t i = 0; i < count; i++, at += scratch + sums + logits) {
        engine->lanes[i].scratch = (int8_t *)at;
        engine->lanes[i].sums = (int32_t *)(at + scratch);
        engine->lanes[i].logits = (int16_t *)(at + scratch + sums);
    }
    engine->lanes_made = count;
    return 0;
}

void gh_free_lanes(gh_engine *engine)
{
    free(engine->lanes);
    free(engine->active);
    free(engine->columns);
    free(engine->corrections);
    free(engine->lane_memory);
    free(engine->order);
    free(engine->survivors);
    free(engine->zero_slot);
    free(engine->x);
    engine->lanes = NULL;
    engine->active = engine->chosen = engine->stepping = NULL;
    engine->columns = NULL;
    engine->corrections = NULL;
    engine->lane_memory = engine->zero_slot = NULL;
    engine->order = NULL;
    engine->survivors = NULL;
    engine->x = NULL;
    engine->x_bytes = 0;
    engine->lanes_made = 0;
}

/* A command starts from zeros: nothing of an earlier one can show through, whatever the program does. */
void gh_clear_lane(gh_engine *engine, gh_lane *lane)
{
    const gh_program *p = engine->program;
    memset(lane->scratch, 0, (size_t)p->header.scratch_units * p->cols);
    memset(lane->sums, 0, (size_t)p->header.sum_groups * p->rows * sizeof(int32_t));
    memset(lane->logits, 0, p->header.classes * sizeof(int16_t));
    lane->emitted = lane->joints = lane->capped = 0;
    lane->kind = GH_NONE;
    lane->token = 0;
}

uint8_t *gh_enc_slot(const gh_engine *engine, uint32_t slot)
{
    return engine->state + slot * engine->program->enc_stride;
}

uint8_t *gh_pred_slot(const gh_engine *engine, uint32_t slot)
{
    const gh_program *p = engine->program;
    return engine->state + engine->enc_slots * p->enc_stride + slot * p->pred_stride;
}

uint8_t *gh_operand_at(const gh_lane *lane, const gh_operand *operand, int vector)
{
    const size_t offset = operand->offset + (size_t)operand->stride * (size_t)vector;
    if (operand->space == GH_SCRATCH)
        return (uint8_t *)lane->scratch + offset;
    /* Only destinations are written, and decode.c lets none of them lie in the source. */
    return (operand->space == GH_SOURCE ? (uint8_t *)lane->source : lane->destination) + offset;
}
