/* SPDX-License-Identifier: Apache-2.0
 * From sums of products to what a MATVEC writes: requantise, then the post-operation (docs/numerics.md, 3 to 5). */
#include "engine.h"

/* Steps 2 to 4 for consecutive rows: out = base + t. In 32 bits throughout: with m = 128 h + l, rsr(a m, 7) is
 * a h + rsr(a l, 7) exactly, and rsr(v, k) is ((v >> (k - 1)) + 1) >> 1. Sums wrap only in programs that break the
 * rule of seven parts. */
static GH_CLONES void requantise(uint32_t rows, const int32_t *restrict acc, const int32_t *restrict bound,
                                 const int32_t *restrict left, const int32_t *restrict right,
                                 const int32_t *restrict multiplier, const int32_t *base, int32_t *out)
{
    for (uint32_t r = 0; r < rows; r++) {
        int32_t a = acc[r];
        a = a > bound[r] ? bound[r] : a;
        a = a < -bound[r] ? -bound[r] : a;
        a = (int32_t)((uint32_t)a << left[r]) >> right[r];
        a = (a + 1) >> 1;
        a = a > (1 << 17) - 1 ? (1 << 17) - 1 : a;
        a = a < -(1 << 17) ? -(1 << 17) : a;
        int32_t t = a * (multiplier[r] >> 7) + ((a * (multiplier[r] & 127) + 64) >> 7);
        out[r] = (int32_t)((uint32_t)base[r] + (uint32_t)t);
    }
}

/* y = sat16(rsr(S, 10)). */
static GH_CLONES void round_rows(uint32_t rows, const int32_t *restrict sums, int16_t *restrict y)
{
    for (uint32_t r = 0; r < rows; r++) {
        int32_t v = ((sums[r] >> 9) + 1) >> 1;
        v = v > 32767 ? 32767 : v;
        y[r] = (int16_t)(v < -32768 ? -32768 : v);
    }
}

static GH_CLONES void narrow_rows(uint32_t rows, const int16_t *restrict y, int8_t *restrict to, int shift, int low,
                                  int high)
{
    const int half = shift ? 1 << (shift - 1) : 0;
    for (uint32_t r = 0; r < rows; r++) {
        int v = (y[r] + half) >> shift;
        v = v > low ? v : low;
        to[r] = (int8_t)(v < high ? v : high);
    }
}

GH_CLONES void gh_joint_values(int8_t *restrict to, const int16_t *restrict encoder, const int16_t *restrict prediction,
                               uint32_t count, int shift)
{
    const int half = shift ? 1 << (shift - 1) : 0;
    for (uint32_t i = 0; i < count; i++) {
        int v = (encoder[i] + prediction[i] + half) >> shift;
        v = v > 0 ? v : 0;
        to[i] = (int8_t)(v < 127 ? v : 127);
    }
}

/* LSTM cells of consecutive units: rows i, f, g, o of each. */
static void cells(const gh_program *p, const gh_instruction *in, uint32_t units, const int16_t *y, const int16_t *c,
                  int16_t *c_out, int8_t *h)
{
    const int16_t *const sigmoid = p->sigmoid, *const tanh = p->tanh, *const tanh_cell = in->tanh_cell;
    const int64_t scale = (int64_t)1 << (15 - in->shift);
    const int c_shift = 30 - in->shift, h_shift = 30 - in->qh;
    for (uint32_t u = 0; u < units; u++) {
        const int64_t i = sigmoid[(uint16_t)y[4 * u]], f = sigmoid[(uint16_t)y[4 * u + 1]];
        const int32_t g = tanh[(uint16_t)y[4 * u + 2]], o = sigmoid[(uint16_t)y[4 * u + 3]];
        const int16_t c_new = (int16_t)gh_clamp(gh_rsr(f * c[u] * scale + i * g, c_shift), -32768, 32767);
        c_out[u] = c_new;
        h[u] = (int8_t)gh_clamp(gh_rsr((int64_t)o * tanh_cell[(uint16_t)c_new], h_shift), -127, 127);
    }
}

static void finish_cells(gh_engine *engine, int section, const gh_instruction *in, const gh_column *column,
                         uint32_t row, uint32_t rows, const int16_t *y)
{
    const gh_program *p = engine->program;
    const gh_lane *lane = column->lane;
    const uint32_t a_bytes = section == GH_ENCODE ? p->enc_a_bytes : p->pred_a_bytes;
    const uint32_t unit = row / 4, units = rows / 4;
    const int16_t *c = (const int16_t *)(lane->source + a_bytes) + in->cell + unit;
    int16_t *c_out = (int16_t *)(lane->destination + a_bytes) + in->cell + unit;
    int8_t *h = (int8_t *)gh_operand_at(lane, &in->destination, column->vector) + unit;
    cells(p, in, units, y, c, c_out, h);
    if (in->has_second)
        memmove(gh_operand_at(lane, &in->second, column->vector) + unit, h, units); /* may overlap, in bad programs */
    if (engine->trace.on && !engine->trace.failed) {
        uint8_t *record = engine->trace.data + column->trace;
        memcpy(record + 2 * (size_t)row, y, 2 * (size_t)rows);
        memcpy(record + 2 * (size_t)in->rows + 2 * (size_t)unit, c_out, 2 * (size_t)units);
        memcpy(record + 2 * (size_t)in->rows + in->rows / 2 + unit, h, units);
    }
}

void gh_finish(gh_engine *engine, int section, const gh_instruction *in, const gh_column *column, uint32_t row,
               uint32_t rows, const int32_t *acc)
{
    const gh_program *p = engine->program;
    gh_lane *lane = column->lane;
    const int v = column->vector, first = in->first >> v & 1, last = in->last >> v & 1;
    const size_t scale = (size_t)in->scale + row;
    int32_t local[GH_ACC_STRIDE];
    int16_t y[GH_ACC_STRIDE];
    /* A product that starts and ends here needs no sum group, and may name one that does not exist. */
    int32_t *kept = first && last ? local : lane->sums + in->sum + (size_t)v * in->rows + row;
    const int32_t *base = first ? p->biases + in->bias + row : kept;
    requantise(rows, acc, p->scales.bound + scale, p->scales.left + scale, p->scales.right + scale,
               p->scales.multiplier + scale, base, last ? local : kept);
    if (!last)
        return;
    round_rows(rows, local, y);
    const uint8_t *written = (const uint8_t *)y;
    size_t bytes = 2 * (size_t)rows, at = 2 * (size_t)row;
    switch (in->post) {
    case GH_POST_CELL:
        finish_cells(engine, section, in, column, row, rows, y);
        return;
    case GH_POST_I16: {
        int16_t *to = section == GH_ENCODE
                          ? lane->bank
                          : (int16_t *)(lane->destination + p->pred_a_bytes) + p->header.joint_pred_unit * p->cell_unit;
        memcpy(to + in->destination.offset + (size_t)in->destination.stride * (size_t)v + row, y, bytes);
        break;
    }
    case GH_POST_I8: {
        int8_t *to = (int8_t *)gh_operand_at(lane, &in->destination, v) + row;
        narrow_rows(rows, y, to, in->shift, in->low, in->high);
        written = (const uint8_t *)to;
        bytes = rows;
        at = row;
        break;
    }
    case GH_POST_LOGIT:
        if (row < p->header.classes)
            memcpy(lane->logits + row, y, 2 * (size_t)(rows < p->header.classes - row ? rows : p->header.classes - row));
        break;
    default:
        return;
    }
    if (engine->trace.on && !engine->trace.failed)
        memcpy(engine->trace.data + column->trace + at, written, bytes);
}
