/* SPDX-License-Identifier: Apache-2.0
 * START: images become the arrays that the instructions work on. */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "program.h"

enum { HUGE_PAGE = 2 << 20 };

static uint32_t word(const uint8_t *code, int index)
{
    return gh_load32(code + 4 * index);
}

/* What the engine's own memory safety rests on; the device has refused what docs/isa.md refuses before this. */
static const char *read_header(gh_program *program, const uint8_t *code, size_t bytes)
{
    gh_header *h = &program->header;
    const uint64_t unit = program->cols;
    uint32_t instructions = (uint32_t)((bytes - GH_HEADER_BYTES) / GH_INSTRUCTION_BYTES);
    for (int s = 0; s < GH_SECTIONS; s++) {
        program->section[s].first = gh_bits(word(code, 10 + s), 0, 16);
        program->section[s].count = gh_bits(word(code, 10 + s), 16, 16);
        if (program->section[s].count > GH_SECTION_LIMIT ||
            program->section[s].first + program->section[s].count > instructions)
            return "a section lies outside the code";
    }
    h->feature_bytes = gh_bits(word(code, 13), 0, 16);
    h->vectors = gh_bits(word(code, 13), 16, 8);
    h->feature_unit = gh_bits(word(code, 14), 0, 16);
    h->scratch_units = gh_bits(word(code, 14), 16, 16);
    h->enc_a_units = gh_bits(word(code, 15), 0, 16);
    h->enc_c_units = gh_bits(word(code, 15), 16, 16);
    h->pred_a_units = gh_bits(word(code, 16), 0, 16);
    h->pred_c_units = gh_bits(word(code, 16), 16, 16);
    h->joint_enc_unit = gh_bits(word(code, 17), 0, 16);
    h->joint_enc_units = gh_bits(word(code, 17), 16, 16);
    h->joint_pred_unit = gh_bits(word(code, 18), 0, 16);
    h->joint_pred_units = gh_bits(word(code, 18), 16, 16);
    h->classes = gh_bits(word(code, 19), 0, 16);
    h->blank = gh_bits(word(code, 19), 16, 16);
    h->logit_bits = gh_bits(word(code, 20), 0, 8);
    h->sum_groups = gh_bits(word(code, 21), 0, 16);
    h->tokens = gh_bits(word(code, 21), 16, 16);
    if (h->vectors < 1 || h->vectors > GH_MAX_VECTORS || h->feature_bytes % unit != 0 ||
        h->feature_unit * unit + (uint64_t)h->vectors * h->feature_bytes > h->scratch_units * unit)
        return "features lie outside the scratch";
    if (h->joint_enc_unit + 2 * h->joint_enc_units > h->enc_c_units ||
        h->joint_pred_unit + h->joint_pred_units > h->pred_c_units)
        return "joint outputs lie outside their slot";
    if (h->classes < 1 || h->blank >= h->classes || h->logit_bits < 4 || h->logit_bits > 12)
        return "classes or logit bits are out of range";
    if (h->tokens < h->classes - (h->blank == h->classes - 1))
        return "a class that can be emitted has no row in the embedding";
    return NULL;
}

static void *copy(const gh_image *image)
{
    void *to = malloc(image->bytes + 1);
    if (to)
        memcpy(to, image->data, image->bytes);
    return to;
}

static int load_weights(gh_program *program, const gh_image *image, const gh_kernel *kernel)
{
    const size_t tile = (size_t)program->rows * program->cols;
    program->tiles = image->bytes / tile;
    const size_t align = image->bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
    const size_t bytes = (image->bytes + align) / align * align;
    program->weights = aligned_alloc(align, bytes);
    if (!program->weights)
        return -1;
#if defined(MADV_HUGEPAGE)
    if (align == HUGE_PAGE) /* a hint: read forward at the memory's speed, with few translations */
        (void)madvise(program->weights, bytes, MADV_HUGEPAGE);
#endif
    for (size_t t = 0; t < program->tiles; t++)
        gh_pack_tile(program->weights + t * tile, image->data + t * tile, program->rows, program->cols, kernel->flip);
    return 0;
}

/* From the words of the scales' space: m in bits 16:0, k in 22:17, signed; see gh_scales for the form. */
static int load_scales(gh_program *program, const gh_image *image)
{
    gh_scales *s = &program->scales;
    const size_t rows = program->scale_rows = image->bytes / 4;
    s->bound = malloc(4 * rows * sizeof(int32_t) + 1);
    if (!s->bound)
        return -1;
    s->left = s->bound + rows;
    s->right = s->left + rows;
    s->multiplier = s->right + rows;
    for (size_t r = 0; r < rows; r++) {
        uint32_t scale = gh_load32(image->data + 4 * r);
        int k = (int)gh_bits(scale, 17, 6) - (gh_bits(scale, 22, 1) ? 64 : 0);
        s->multiplier[r] = (int32_t)gh_bits(scale, 0, 17);
        if (k > 0) {
            s->bound[r] = INT32_MAX;
            s->left[r] = 0;
            s->right[r] = k - 1;
        } else {
            /* A sum beyond the bound saturates at 18 bits once shifted; at the bound it just does. */
            s->bound[r] = k > -17 ? 1 << (17 + k) : 1;
            s->left[r] = (k > -17 ? -k : 17) + 1;
            s->right[r] = 0;
        }
    }
    return 0;
}

static void load_pairs(int32_t *to, const uint8_t *from, int entries, int base_bits)
{
    for (int i = 0; i < entries; i++) {
        uint32_t slope = gh_bits(gh_load32(from + 8 * i + 4), 0, 18);
        to[2 * i] = (int32_t)gh_bits(gh_load32(from + 8 * i), 0, base_bits);
        to[2 * i + 1] = (int32_t)slope - (slope >> 17 ? 1 << 18 : 0);
    }
}

int16_t *gh_function_table(const int32_t *pairs, int shift, int32_t complement)
{
    int16_t *table = malloc(65536 * sizeof *table);
    for (int32_t x = -32768; table && x < 32768; x++) {
        int32_t u = x * (1 << shift);
        int32_t magnitude = u < 0 ? -u : u;
        if (magnitude > (1 << 18) - 1)
            magnitude = (1 << 18) - 1;
        const int32_t *pair = pairs + 2 * (magnitude >> 9);
        int32_t v = gh_clamp(gh_rsr((int64_t)pair[0] * 512 + (int64_t)pair[1] * (magnitude & 511), 11), 0, 32767);
        table[(uint16_t)x] = (int16_t)(u >= 0 ? v : gh_clamp(complement - v, -32768, 32767));
    }
    return table;
}

static int load_tables(gh_program *program, const uint8_t *data)
{
    load_pairs(program->tables[0], data, 512, 18);
    load_pairs(program->tables[1], data + 8 * 512, 512, 18);
    load_pairs(program->exp_table, data + 8 * 1024, 64, 18);
    load_pairs(program->log_table, data + 8 * 1088, 64, 18);
    program->sigmoid = gh_function_table(program->tables[0], 3, 32768);
    program->tanh = gh_function_table(program->tables[1], 3, 0);
    return program->sigmoid && program->tanh ? 0 : -1;
}

static int decode_sections(gh_program *program, const uint8_t *code)
{
    for (int s = 0; s < GH_SECTIONS; s++) {
        gh_section *section = &program->section[s];
        section->list = calloc(section->count + 1, sizeof *section->list);
        if (!section->list)
            return -1;
        for (uint32_t i = 0; i < section->count; i++) {
            const uint8_t *from = code + GH_HEADER_BYTES + (size_t)GH_INSTRUCTION_BYTES * (section->first + i);
            if (gh_decode(program, s, from, &section->list[i]))
                return -1;
        }
    }
    return 0;
}

gh_program *gh_program_new(const gh_image image[6], uint32_t rows, uint32_t cols, const gh_kernel *kernel,
                           const char **error)
{
    *error = NULL;
    if (image[0].bytes < GH_HEADER_BYTES || image[4].bytes != GH_TABLE_BYTES) {
        *error = "code or tables are too short";
        return NULL;
    }
    gh_program *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    program->rows = rows;
    program->cols = cols;
    program->cell_unit = rows / 4;
    *error = read_header(program, image[0].data, image[0].bytes);
    const gh_header *h = &program->header;
    program->enc_a_bytes = h->enc_a_units * cols;
    program->enc_bytes = program->enc_a_bytes + h->enc_c_units * program->cell_unit * 2;
    program->pred_a_bytes = h->pred_a_units * cols;
    program->pred_bytes = program->pred_a_bytes + h->pred_c_units * program->cell_unit * 2;
    program->enc_stride = ((size_t)program->enc_bytes + 63) / 64 * 64;
    program->pred_stride = ((size_t)program->pred_bytes + 63) / 64 * 64;
    program->bias_rows = image[3].bytes / 4;
    program->embedding_bytes = image[5].bytes;
    if (!*error && load_weights(program, &image[1], kernel) == 0 && load_scales(program, &image[2]) == 0 &&
        (program->biases = copy(&image[3])) && load_tables(program, image[4].data) == 0 &&
        (program->embedding = copy(&image[5])) && decode_sections(program, image[0].data) == 0)
        return program;
    gh_program_free(program);
    return NULL;
}

void gh_program_free(gh_program *program)
{
    if (!program)
        return;
    for (int s = 0; s < GH_SECTIONS; s++)
        free(program->section[s].list);
    for (int q = 0; q < 16; q++)
        free(program->tanh_cell[q]);
    free(program->weights);
    free(program->scales.bound);
    free(program->biases);
    free(program->embedding);
    free(program->sigmoid);
    free(program->tanh);
    free(program->exp_terms.term);
    free(program);
}
