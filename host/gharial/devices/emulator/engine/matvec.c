/* SPDX-License-Identifier: Apache-2.0
 * MATVEC over the vectors of all entries: each panel of weights is read once for up to six of them. */
#include <stdlib.h>

#include "engine.h"

GH_CLONES int32_t gh_byte_sum(const int8_t *x, uint32_t count)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += x[i];
    return sum;
}

static int record_kind(const gh_instruction *in)
{
    switch (in->post) {
    case GH_POST_CELL: return GH_REC_CELL;
    case GH_POST_I16: return GH_REC_I16;
    case GH_POST_I8: return GH_REC_I8;
    case GH_POST_LOGIT: return GH_REC_LOGIT;
    default: return 0;
    }
}

/* Room in the trace for what the post-operation of each vector will write. */
static void reserve_records(gh_engine *engine, int section, uint32_t index, gh_column *columns, uint32_t count)
{
    const gh_instruction *in = &engine->program->section[section].list[index];
    static const uint32_t row_bytes_x4[5] = {0, 8 + 2 + 1, 8, 4, 8};
    const int kind = record_kind(in);
    for (uint32_t j = 0; j < count; j++) {
        if (!kind || !(in->last >> columns[j].vector & 1))
            continue;
        columns[j].trace = gh_trace_record(&engine->trace, section, index, columns[j].vector, columns[j].lane->entry,
                                           kind, in->rows, in->rows / 4 * (size_t)row_bytes_x4[in->post]);
    }
}

/* Copies the vectors together before anything is written. */
static int gather(gh_engine *engine, const gh_instruction *in, gh_lane **lanes, uint32_t count, size_t stride)
{
    const size_t bytes = stride * count * in->vectors;
    if (bytes > engine->x_bytes) {
        free(engine->x);
        engine->x = malloc(bytes);
        engine->x_bytes = engine->x ? bytes : 0;
        if (!engine->x)
            return -1;
    }
    uint32_t j = 0;
    for (uint32_t i = 0; i < count; i++)
        for (int v = 0; v < in->vectors; v++, j++) {
            int8_t *x = engine->x + j * stride;
            engine->columns[j].lane = lanes[i];
            engine->columns[j].vector = v;
            memcpy(x, gh_operand_at(lanes[i], &in->source, v), in->columns);
            engine->corrections[j] = engine->kernel->flip ? 128 * gh_byte_sum(x, in->columns) : 0;
        }
    return 0;
}

/* Panels to take at once: four blocks, or more where one vector alone leaves registers for their sums. */
static int panels_at_once(int blocks, uint32_t columns, uint32_t left)
{
    int most = GH_MAX_BLOCKS / blocks;
    if (columns == 1 && blocks > 1)
        most = left >= 4 ? 4 : 2;
    return left >= (uint32_t)most ? most : 1;
}

int gh_matvec(gh_engine *engine, int section, uint32_t index, gh_lane **lanes, uint32_t count)
{
    const gh_program *p = engine->program;
    const gh_instruction *in = &p->section[section].list[index];
    const size_t stride = ((size_t)in->columns + 63) / 64 * 64 + 64;
    const uint32_t columns = count * in->vectors;
    if (in->rows == 0)
        return 0;
    if (gather(engine, in, lanes, count, stride))
        return -1;
    if (engine->trace.on)
        reserve_records(engine, section, index, engine->columns, columns);

    int32_t acc[GH_MAX_BATCH * GH_ACC_STRIDE];
    gh_dot job = {.blocks = gh_panel_blocks(p->rows), .x_stride = stride, .acc = acc};
    const size_t tile_bytes = (size_t)p->rows * p->cols;
    const uint32_t panel_rows = (uint32_t)job.blocks * GH_BLOCK, tile_panels = p->rows / panel_rows;
    const uint32_t panels = in->row_groups * tile_panels;
    job.tile_step = tile_bytes;
    job.tiles = in->col_tiles;
    job.quads = p->cols / 4;
    if (tile_panels == 1) { /* a row group is one long panel */
        job.quads *= job.tiles;
        job.tiles = 1;
    }
    for (uint32_t panel = 0; panel < panels; panel += (uint32_t)job.panels) {
        job.panels = panels_at_once(job.blocks, columns, panels - panel);
        for (int i = 0; i < job.panels; i++) {
            uint32_t q = panel + (uint32_t)i;
            size_t tile = in->tile + (size_t)(q / tile_panels) * in->col_tiles;
            job.weights[i] = p->weights + tile * tile_bytes + (size_t)(q % tile_panels) * panel_rows * p->cols;
        }
        for (uint32_t j = 0; j < columns; j += (uint32_t)job.columns) {
            job.columns = columns - j < GH_MAX_BATCH ? (int)(columns - j) : GH_MAX_BATCH;
            job.x = engine->x + j * stride;
            job.correction = engine->corrections + j;
            engine->kernel->run(&job);
            for (int i = 0; i < job.columns; i++)
                gh_finish(engine, section, in, &engine->columns[j + (uint32_t)i], panel * panel_rows,
                          (uint32_t)job.panels * panel_rows, acc + i * GH_ACC_STRIDE);
        }
    }
    return 0;
}
