/* SPDX-License-Identifier: Apache-2.0
 * Instructions: fields, and every operand's range, checked once. An instruction that is wrong faults when reached. */
#include "engine.h"

static uint32_t space_bytes(const gh_program *program, int section, uint32_t space)
{
    if (space == GH_SCRATCH)
        return program->header.scratch_units * program->cols;
    return section == GH_ENCODE ? program->enc_a_bytes : program->pred_a_bytes;
}

static gh_operand operand(const gh_program *program, uint32_t field, uint32_t stride)
{
    gh_operand out = {field >> 14, (field & 0x3FFF) * program->cols, stride * program->cols};
    return out;
}

/* Whether the bytes of every vector lie in the operand's space. */
static int inside(const gh_program *program, int section, const gh_operand *o, uint32_t vectors, uint64_t bytes)
{
    if (o->space > GH_DESTINATION)
        return 0;
    return o->offset + (uint64_t)o->stride * (vectors - 1) + bytes <= space_bytes(program, section, o->space);
}

static int writable(const gh_program *program, int section, const gh_operand *o, uint32_t vectors, uint64_t bytes)
{
    return o->space != GH_SOURCE && inside(program, section, o, vectors, bytes);
}

static int matvec_is_defined(int section, const gh_instruction *in)
{
    if (section != GH_ENCODE && in->vectors > 1)
        return 0;
    switch (in->post) {
    case GH_POST_NONE:
    case GH_POST_I8:
        return 1;
    case GH_POST_CELL:
        return section != GH_JOINT_SECTION && (in->last & (in->last - 1)) == 0;
    case GH_POST_I16:
        return section != GH_JOINT_SECTION;
    case GH_POST_LOGIT:
        return section == GH_JOINT_SECTION;
    default:
        return 0;
    }
}

static int cell_is_inside(gh_program *program, int section, gh_instruction *in)
{
    const gh_header *h = &program->header;
    uint32_t units = section == GH_ENCODE ? h->enc_c_units : h->pred_c_units;
    return in->cell + in->row_groups <= units &&
           writable(program, section, &in->destination, in->vectors, in->rows / 4) &&
           (!in->has_second || writable(program, section, &in->second, in->vectors, in->rows / 4));
}

static int i16_is_inside(const gh_program *program, int section, gh_instruction *in, uint32_t field, uint32_t stride)
{
    const gh_header *h = &program->header;
    const uint32_t unit = program->cell_unit;
    uint32_t units = section == GH_ENCODE ? h->joint_enc_units : h->joint_pred_units;
    in->destination.space = GH_DESTINATION;
    in->destination.offset = field * unit;
    in->destination.stride = stride * unit;
    /* R int16 a row group. */
    return field >> 14 == 0 && field + (uint64_t)stride * (in->vectors - 1) + 4 * (uint64_t)in->row_groups <= units;
}

static int matvec_is_inside(gh_program *program, int section, gh_instruction *in, uint32_t destination, uint32_t stride)
{
    const gh_header *h = &program->header;
    const uint64_t groups = in->row_groups;
    if (!groups || !in->col_tiles || in->columns > GH_MAX_COLUMNS || in->tile + groups * in->col_tiles > program->tiles ||
        !inside(program, section, &in->source, in->vectors, in->columns) ||
        (uint64_t)in->scale + in->rows > program->scale_rows ||
        (in->first && (uint64_t)in->bias + in->rows > program->bias_rows))
        return 0;
    for (int v = 0; v < in->vectors; v++) {
        int kept = !(in->first >> v & 1 && in->last >> v & 1);
        if (kept && in->sum / program->rows + (v + 1) * groups > h->sum_groups)
            return 0;
    }
    if (!in->last)
        return 1;
    switch (in->post) {
    case GH_POST_CELL:
        return cell_is_inside(program, section, in);
    case GH_POST_I16:
        return i16_is_inside(program, section, in, destination, stride);
    case GH_POST_I8:
        return writable(program, section, &in->destination, in->vectors, in->rows);
    default:
        return 1;
    }
}

static int decode_matvec(gh_program *program, int section, const uint32_t w[8], gh_instruction *in)
{
    const uint32_t rows = program->rows, destination = gh_bits(w[4], 0, 16), stride = gh_bits(w[4], 16, 16);
    in->post = (uint8_t)gh_bits(w[0], 8, 3);
    in->vectors = (uint8_t)(gh_bits(w[0], 15, 2) + 1);
    in->first = (uint8_t)(gh_bits(w[0], 17, 4) & ((1u << in->vectors) - 1));
    in->last = (uint8_t)(gh_bits(w[0], 21, 4) & ((1u << in->vectors) - 1));
    in->tile = w[1];
    in->row_groups = gh_bits(w[2], 0, 16);
    in->rows = in->row_groups * rows;
    in->col_tiles = gh_bits(w[2], 16, 16);
    in->columns = in->col_tiles * program->cols;
    in->source = operand(program, gh_bits(w[3], 0, 16), gh_bits(w[3], 16, 16));
    in->destination = operand(program, destination, stride);
    in->cell = gh_bits(w[5], 0, 16);
    in->has_second = in->post == GH_POST_CELL && w[5] >> 16 != 0xFFFF;
    in->second = operand(program, w[5] >> 16, stride);
    in->low = gh_bits(w[5], 23, 1) ? -127 : 0;
    in->high = (int8_t)gh_bits(w[5], 16, 7);
    in->sum = gh_bits(w[6], 0, 16) * rows;
    in->shift = (uint8_t)gh_bits(w[6], 24, 4);
    in->qh = (uint8_t)gh_bits(w[6], 28, 4);
    in->scale = gh_bits(w[7], 0, 16) * rows;
    in->bias = gh_bits(w[7], 16, 16) * rows;
    if (!matvec_is_defined(section, in)) {
        in->fault = GH_BAD_OPCODE;
        return 0;
    }
    if (!matvec_is_inside(program, section, in, destination, stride)) {
        in->fault = GH_ADDRESS;
        return 0;
    }
    if (in->post == GH_POST_CELL) {
        int16_t **table = &program->tanh_cell[in->shift];
        if (!*table)
            *table = gh_function_table(program->tables[1], 15 - in->shift, 0);
        if (!*table)
            return -1;
        in->tanh_cell = *table;
        in->cell *= program->cell_unit;
    }
    return 0;
}

static void decode_lookup(const gh_program *program, int section, const uint32_t w[8], gh_instruction *in)
{
    const uint64_t units = gh_bits(w[2], 16, 16), cols = program->cols;
    in->destination = operand(program, gh_bits(w[4], 0, 16), 0);
    in->constant = (uint8_t)gh_bits(w[0], 8, 3);
    if (in->constant > 1 || (in->constant == 0 && section != GH_PREDICT)) {
        in->fault = GH_BAD_OPCODE;
        return;
    }
    uint64_t rows = in->constant ? 1 : program->header.tokens;
    if (!units || (w[1] + rows * units) * cols > program->embedding_bytes ||
        !writable(program, section, &in->destination, 1, units * cols)) {
        in->fault = GH_ADDRESS;
        return;
    }
    in->unit_offset = (uint32_t)(w[1] * cols);
    in->bytes = (uint32_t)(units * cols);
}

static void decode_joint(const gh_program *program, int section, const uint32_t w[8], gh_instruction *in)
{
    const gh_header *h = &program->header;
    const uint32_t units = gh_bits(w[2], 0, 16), unit = program->cell_unit;
    const uint32_t encoder = gh_bits(w[3], 0, 16), prediction = gh_bits(w[3], 16, 16);
    in->destination = operand(program, gh_bits(w[4], 0, 16), 0);
    in->shift = (uint8_t)gh_bits(w[6], 24, 4);
    if (section != GH_JOINT_SECTION) {
        in->fault = GH_BAD_OPCODE;
        return;
    }
    if (!units || encoder + units > h->joint_enc_units || prediction + units > h->joint_pred_units ||
        !writable(program, section, &in->destination, 1, units * unit)) {
        in->fault = GH_ADDRESS;
        return;
    }
    in->bytes = units * unit;
    in->encoder = encoder * unit;
    in->prediction = (h->joint_pred_unit + prediction) * unit;
}

int gh_decode(gh_program *program, int section, const uint8_t *code, gh_instruction *out)
{
    uint32_t w[8];
    memcpy(w, code, sizeof w);
    memset(out, 0, sizeof *out);
    out->opcode = (uint8_t)gh_bits(w[0], 0, 8);
    out->predicate = (uint8_t)gh_bits(w[0], 11, 2);
    out->threshold = (uint8_t)gh_bits(w[0], 13, 2);
    if (out->predicate > GH_AT_MOST) {
        out->fault = GH_BAD_OPCODE;
        return 0;
    }
    switch (out->opcode) {
    case GH_MATVEC:
        return decode_matvec(program, section, w, out);
    case GH_LOOKUP:
        decode_lookup(program, section, w, out);
        return 0;
    case GH_JOINT:
        decode_joint(program, section, w, out);
        return 0;
    default:
        out->fault = GH_BAD_OPCODE;
        return 0;
    }
}
