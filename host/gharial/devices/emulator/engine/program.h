/* SPDX-License-Identifier: Apache-2.0
 * A program, decoded and checked once at START so that running it checks only what depends on the entry. */
#ifndef GHARIAL_PROGRAM_H
#define GHARIAL_PROGRAM_H

#include "dot.h"
#include "portable.h"

enum { GH_HEADER_BYTES = 256, GH_INSTRUCTION_BYTES = 32, GH_SECTION_LIMIT = 255, GH_MAX_VECTORS = 4 };
enum { GH_MAX_COLUMNS = 65536, GH_TABLE_BYTES = 8 * (512 + 512 + 64 + 64) };
enum { GH_MATVEC = 1, GH_LOOKUP = 2, GH_JOINT = 3 };
enum { GH_POST_NONE = 0, GH_POST_CELL = 1, GH_POST_I16 = 2, GH_POST_I8 = 3, GH_POST_LOGIT = 4 };
enum { GH_ALWAYS = 0, GH_MORE = 1, GH_AT_MOST = 2 };
enum { GH_SCRATCH = 0, GH_SOURCE = 1, GH_DESTINATION = 2 };
enum { GH_PREDICT = 0, GH_ENCODE = 1, GH_JOINT_SECTION = 2, GH_SECTIONS = 3 };

/* Sizes that the code space's header states, in the units of docs/isa.md, section 4. */
typedef struct {
    uint32_t vectors, feature_bytes, feature_unit, scratch_units, sum_groups;
    uint32_t enc_a_units, enc_c_units, pred_a_units, pred_c_units;
    uint32_t joint_enc_unit, joint_enc_units, joint_pred_unit, joint_pred_units;
    uint32_t classes, blank, logit_bits, tokens;
} gh_header;

/* An operand's place: bytes from the start of its space, and from one vector's to the next. */
typedef struct {
    uint32_t space, offset, stride;
} gh_operand;

/* An instruction, its ranges checked against header and images: `fault` is raised when it is reached, if not zero. */
typedef struct {
    uint8_t fault, opcode, post, predicate, threshold;
    uint8_t vectors, first, last;
    uint8_t constant, shift, qh, has_second;
    int8_t low, high;
    uint32_t row_groups, rows, col_tiles, columns, tile;
    gh_operand source, destination, second;
    uint32_t cell, sum, scale, bias; /* indices of int16, int32, rows, rows */
    uint32_t unit_offset, bytes;     /* LOOKUP: byte offset of row 0, bytes a row; JOINT: bytes are values */
    uint32_t encoder, prediction;    /* JOINT: int16 indices within bank and slot */
    const int16_t *tanh_cell;        /* CELL: tanh of c in unit 2^-qc, indexed by c as uint16 */
} gh_instruction;

typedef struct {
    uint32_t first, count;
    gh_instruction *list;
} gh_section;

/* Requantisation of a row and part: ((clamp(acc, -bound, bound) << left) >> right + 1) >> 1, then times multiplier. */
typedef struct {
    int32_t *bound, *left, *right, *multiplier;
} gh_scales;

/* exp of the log-sum-exp by Lmax - L, for one temperature; entries from `limit` on are zero. */
typedef struct {
    int32_t *term;
    uint32_t limit, temperature;
    int ready;
} gh_exp_table;

typedef struct {
    gh_header header;
    gh_section section[GH_SECTIONS];
    uint32_t rows, cols, cell_unit;
    uint32_t enc_a_bytes, enc_bytes, pred_a_bytes, pred_bytes; /* bytes: A and C parts together */
    size_t enc_stride, pred_stride;
    uint8_t *weights; /* tiles, each repacked for the kernel */
    size_t tiles;
    gh_scales scales;
    size_t scale_rows;
    int32_t *biases;
    size_t bias_rows;
    int8_t *embedding;
    size_t embedding_bytes;
    int16_t *sigmoid, *tanh;    /* of a pre-activation, indexed by it as uint16 */
    int16_t *tanh_cell[16];     /* of c, by qc; made for the qc that occur */
    int32_t tables[2][512 * 2]; /* sigmoid, tanh: base, slope */
    int32_t exp_table[64 * 2], log_table[64 * 2];
    gh_exp_table exp_terms;
} gh_program;

typedef struct {
    const uint8_t *data;
    size_t bytes;
} gh_image;

/* Images in the order of their space numbers. Returns NULL and sets *error to a text, or to NULL for lack of memory. */
gh_program *gh_program_new(const gh_image image[6], uint32_t rows, uint32_t cols, const gh_kernel *kernel,
                           const char **error);
void gh_program_free(gh_program *program);

/* Decodes the instruction for the section that reaches it; returns 0, or -1 for lack of memory. */
int gh_decode(gh_program *program, int section, const uint8_t *code, gh_instruction *out);

/* The function over all int16 arguments, taken as u = argument << shift; indexed by the argument as uint16. */
int16_t *gh_function_table(const int32_t *pairs, int shift, int32_t complement);

#endif
