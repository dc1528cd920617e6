/* SPDX-License-Identifier: Apache-2.0
 * The running machine: device memory, slots, the entries being worked on, and what a command came to. */
#ifndef GHARIAL_ENGINE_H
#define GHARIAL_ENGINE_H

#include "program.h"

enum {
    GH_OK = 0,
    GH_BAD_ENTRY = 2,
    GH_BAD_SLOT = 3,
    GH_HAZARD = 4,
    GH_ADDRESS = 5,
    GH_CHECKSUM = 6,
    GH_BAD_OPCODE = 9,
    GH_BUS_READ = 10,
    GH_BUS_WRITE = 11,
    GH_WATCHDOG = 13
};
enum { GH_UNIT_HOST = 1, GH_UNIT_SEQUENCER = 2, GH_UNIT_MEMORY = 5 };
enum { GH_FREE = 0, GH_LIVE = 1, GH_ENDED = 2 };
enum { GH_OP_ENCODE = 16, GH_OP_DECODE = 17, GH_OP_GREEDY = 18 };
enum { GH_NONE = 0, GH_TOKEN = 1, GH_START = 2 };
enum { GH_TOP_K = 0, GH_FUZZY = 1, GH_ALL = 2 };
enum { GH_MAX_K = 33, GH_MAX_NAMED = 4 };

typedef struct {
    uint32_t code, unit, entry, detail;
} gh_fault;

/* An entry being worked on: its own memories, and the slots it reads and writes. */
typedef struct {
    int8_t *scratch;
    int32_t *sums;
    int16_t *logits;
    const uint8_t *source;
    uint8_t *destination;
    int16_t *bank; /* joint_enc's, in the encoder slot */
    uint32_t entry, vectors, kind, token;
    uint32_t emitted, joints, capped;
} gh_lane;

/* A vector of a lane in a matrix product. */
typedef struct {
    gh_lane *lane;
    int vector;
    size_t trace; /* where its record's payload lies, if one is kept */
} gh_column;

/* What instructions wrote, as records for the tracer; see trace.c. */
typedef struct {
    uint8_t *data;
    size_t used, size;
    int on, failed;
} gh_trace;

typedef struct {
    uint64_t low, high; /* [low, high); empty if equal */
} gh_range;

typedef struct {
    uint32_t rows, cols, max_entries;
    const gh_kernel *kernel;
    gh_program *program;
    uint8_t *memory;
    size_t memory_bytes;
    uint8_t *state; /* encoder slots, then prediction slots */
    uint32_t enc_slots, pred_slots;
    uint8_t *enc_flags, *pred_flags; /* GH_FREE, GH_LIVE, GH_ENDED */
    uint8_t *enc_marks, *pred_marks; /* slots of the command at hand: bit 0 read, bit 1 written; zero between commands */
    uint8_t *zero_slot;              /* a prediction slot before its first step */
    uint32_t lanes_made, columns_made;
    gh_lane *lanes, **active, **chosen, **stepping;
    uint8_t *lane_memory;
    gh_column *columns;
    int8_t *x;
    size_t x_bytes;
    int32_t *corrections;
    uint16_t *order; /* fuzzy top-k: classes that survive */
    int16_t *survivors;
    gh_range bad_read, bad_write; /* device memory that answers with a bus error */
    int watchdog;                 /* the next instruction reached takes too long */
    gh_trace trace;
    uint32_t predictions, joints;
    gh_fault fault;
} gh_engine;

/* Runs an ENCODE, DECODE or GREEDY whose descriptor has been checked, on a private copy of its entries: the host may be
 * writing to device memory. Returns 0 with engine->fault set (code GH_OK if all went well), -1 for lack of memory, -2 if
 * the descriptor should not have come here. */
int gh_run(gh_engine *engine, const uint32_t descriptor[16], const uint8_t *entries, size_t entry_bytes);

/* The fields of a descriptor, and its entries. */
typedef struct {
    uint32_t operation, checked, count;
    uint64_t results, features;
    uint32_t stride, k, mode, named, temperature, class[GH_MAX_NAMED];
    uint32_t result_bytes; /* of one entry, at most */
    const uint8_t *entries;
} gh_command;

/* Entry checks (entries.c): 0, or -1 with engine->fault set. Leaves no marks. */
int gh_check_entries(gh_engine *engine, const gh_command *command);
/* Every destination slot of the command becomes free. */
void gh_drop_destinations(gh_engine *engine, const gh_command *command);
void gh_entry(const gh_command *command, uint32_t index, uint32_t words[4]);

/* Lanes and their memories for that many entries; 0 or -1 (lanes.c). */
int gh_make_lanes(gh_engine *engine, uint32_t count);
void gh_free_lanes(gh_engine *engine);
void gh_clear_lane(gh_engine *engine, gh_lane *lane);

uint8_t *gh_enc_slot(const gh_engine *engine, uint32_t slot);
uint8_t *gh_pred_slot(const gh_engine *engine, uint32_t slot);

/* Runs a section for the lanes (section.c); 0, or -1 with engine->fault set or, if its code is GH_OK, out of memory. */
int gh_run_section(gh_engine *engine, int section, gh_lane **lanes, uint32_t count);
int gh_matvec(gh_engine *engine, int section, uint32_t index, gh_lane **lanes, uint32_t count);
void gh_finish(gh_engine *engine, int section, const gh_instruction *instruction, const gh_column *column,
               uint32_t row, uint32_t rows, const int32_t *acc);
void gh_joint_values(int8_t *to, const int16_t *encoder, const int16_t *prediction, uint32_t count, int shift);
int32_t gh_byte_sum(const int8_t *x, uint32_t count);

uint8_t *gh_operand_at(const gh_lane *lane, const gh_operand *operand, int vector);

/* Ties go to the lowest index everywhere (topk.c). */
uint32_t gh_argmax(const int16_t *logits, uint32_t count);
void gh_top_k(const int16_t *logits, uint32_t count, uint32_t k, uint32_t *index);
/* Replaces what does not survive; engine->order and ->survivors list the survivors by class; returns their number. */
uint32_t gh_fuzzy(gh_engine *engine, int16_t *logits, uint32_t classes);
/* 0, or -1 for lack of memory. */
int gh_prepare_exp(gh_program *program, uint32_t temperature);
int32_t gh_log_sum_exp(const gh_program *program, const int16_t *logits, uint32_t temperature);

enum { GH_REC_CELL = 1, GH_REC_I16, GH_REC_I8, GH_REC_LOGIT, GH_REC_JOINT, GH_REC_LSE, GH_REC_FEATURES };
size_t gh_trace_record(gh_trace *trace, int section, uint32_t instruction, int vector, uint32_t entry, int kind,
                       uint32_t rows, size_t bytes);

void gh_crc32_init(void);
uint32_t gh_crc32(const uint8_t *data, size_t bytes);
int gh_touches(const gh_range *range, uint64_t address, uint64_t bytes);
void gh_set_fault(gh_engine *engine, uint32_t code, uint32_t unit, uint32_t entry, uint32_t detail);

#endif
