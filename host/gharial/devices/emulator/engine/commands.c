/* SPDX-License-Identifier: Apache-2.0
 * ENCODE, DECODE and GREEDY (docs/isa.md, section 5). */
#include "engine.h"

int gh_touches(const gh_range *range, uint64_t address, uint64_t bytes)
{
    return range->low < range->high && address < range->high && range->low < address + bytes;
}

/* Where an entry's result goes; NULL with the fault set if the memory answers with an error. */
static uint8_t *result_at(gh_engine *engine, const gh_command *c, uint32_t entry, uint64_t bytes)
{
    const uint64_t address = c->results + (uint64_t)c->stride * entry;
    if (gh_touches(&engine->bad_write, address, bytes)) {
        gh_set_fault(engine, GH_BUS_WRITE, GH_UNIT_MEMORY, 0, (uint32_t)address); /* which entry's, only the address tells */
        return NULL;
    }
    return engine->memory + address;
}

static int load_features(gh_engine *engine, const gh_command *c, gh_lane *lane, const uint32_t w[4])
{
    const gh_program *p = engine->program;
    const uint64_t address = c->features + w[1];
    const size_t bytes = (size_t)lane->vectors * p->header.feature_bytes;
    const uint8_t *from = engine->memory + address;
    if (gh_touches(&engine->bad_read, address, bytes)) {
        gh_set_fault(engine, GH_BUS_READ, GH_UNIT_MEMORY, lane->entry, (uint32_t)address);
        return -1;
    }
    memcpy(lane->scratch + (size_t)p->header.feature_unit * p->cols, from, bytes);
    if (c->checked) {
        /* Of what was taken: the host may be writing. */
        uint32_t crc = gh_crc32((const uint8_t *)lane->scratch + (size_t)p->header.feature_unit * p->cols, bytes);
        if (crc != w[2]) {
            gh_set_fault(engine, GH_CHECKSUM, GH_UNIT_HOST, lane->entry, crc);
            return -1;
        }
    }
    for (uint32_t v = 0; engine->trace.on && v < lane->vectors; v++) {
        size_t at = gh_trace_record(&engine->trace, GH_ENCODE, 0, (int)v, lane->entry, GH_REC_FEATURES,
                                    p->header.feature_bytes, p->header.feature_bytes);
        if (!engine->trace.failed)
            memcpy(engine->trace.data + at,
                   lane->scratch + (size_t)p->header.feature_unit * p->cols + (size_t)v * p->header.feature_bytes,
                   p->header.feature_bytes);
    }
    return 0;
}

static int encode(gh_engine *engine, const gh_command *c)
{
    const gh_program *p = engine->program;
    const gh_header *h = &p->header;
    for (uint32_t i = 0; i < c->count; i++) {
        gh_lane *lane = &engine->lanes[i];
        uint32_t w[4];
        gh_entry(c, i, w);
        uint8_t *slot = gh_enc_slot(engine, gh_bits(w[0], 0, 16));
        lane->vectors = gh_bits(w[0], 18, 3);
        if (gh_bits(w[0], 16, 1)) {
            memset(slot, 0, p->enc_bytes);
            engine->enc_flags[gh_bits(w[0], 0, 16)] = GH_LIVE;
        }
        lane->source = lane->destination = slot;
        lane->bank = (int16_t *)(slot + p->enc_a_bytes) +
                     (h->joint_enc_unit + gh_bits(w[0], 17, 1) * h->joint_enc_units) * p->cell_unit;
        if (load_features(engine, c, lane, w))
            return -1;
        engine->active[i] = lane;
    }
    if (gh_run_section(engine, GH_ENCODE, engine->active, c->count))
        return -1;
    for (uint32_t i = 0; i < c->count; i++)
        if (engine->lanes[i].vectors < h->vectors)
            engine->enc_flags[gh_load32(c->entries + 16 * (size_t)i) & 0xFFFF] = GH_ENDED;
    return 0;
}

static int predict(gh_engine *engine, gh_lane **lanes, uint32_t count)
{
    if (gh_run_section(engine, GH_PREDICT, lanes, count))
        return -1;
    engine->predictions += count;
    return 0;
}

static int joint(gh_engine *engine, const gh_command *c, gh_lane **lanes, uint32_t count)
{
    if (gh_run_section(engine, GH_JOINT_SECTION, lanes, count))
        return -1;
    engine->joints += count;
    for (uint32_t i = 0; engine->trace.on && i < count; i++) {
        size_t at = gh_trace_record(&engine->trace, GH_JOINT_SECTION, 0, 0, lanes[i]->entry, GH_REC_LSE, 1, 4);
        if (!engine->trace.failed)
            gh_store32(engine->trace.data + at,
                       (uint32_t)gh_log_sum_exp(engine->program, lanes[i]->logits, c->temperature));
    }
    return 0;
}

static int decode_result(gh_engine *engine, const gh_command *c, gh_lane *lane)
{
    const gh_header *h = &engine->program->header;
    const uint32_t listed = c->mode == GH_ALL ? h->classes : c->k;
    uint8_t *to = result_at(engine, c, lane->entry, c->result_bytes);
    uint32_t index[GH_MAX_K];
    if (!to)
        return -1;
    if (c->mode == GH_FUZZY) {
        gh_top_k(engine->survivors, gh_fuzzy(engine, lane->logits, h->classes), c->k, index);
        for (uint32_t i = 0; i < c->k; i++)
            index[i] = engine->order[index[i]];
    } else if (c->mode == GH_TOP_K) {
        gh_top_k(lane->logits, h->classes, c->k, index);
    }
    gh_store32(to, (uint32_t)gh_log_sum_exp(engine->program, lane->logits, c->temperature));
    for (uint32_t i = 0; i < GH_MAX_NAMED; i++)
        gh_store16(to + 4 + 2 * i, i < c->named ? (uint16_t)lane->logits[c->class[i]] : 0);
    gh_store32(to + 12, listed);
    if (c->mode == GH_ALL) {
        memcpy(to + 16, lane->logits, 2 * (size_t)listed);
        if (listed % 2)
            gh_store16(to + 16 + 2 * (size_t)listed, 0);
        return 0;
    }
    for (uint32_t i = 0; i < listed; i++)
        gh_store32(to + 16 + 4 * i, index[i] << 16 | (uint16_t)lane->logits[index[i]]);
    return 0;
}

static int decode(gh_engine *engine, const gh_command *c)
{
    uint32_t predicted = 0, joined = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        gh_lane *lane = &engine->lanes[i];
        uint32_t w[4];
        gh_entry(c, i, w);
        const uint32_t source = gh_bits(w[1], 0, 16), destination = gh_bits(w[1], 16, 16);
        const gh_program *p = engine->program;
        lane->kind = gh_bits(w[0], 21, 2);
        lane->token = w[2];
        lane->vectors = 0;
        lane->destination = gh_pred_slot(engine, destination);
        lane->source = lane->kind == GH_START ? engine->zero_slot : gh_pred_slot(engine, source);
        if (!gh_bits(w[0], 23, 1)) {
            uint8_t *slot = gh_enc_slot(engine, gh_bits(w[0], 0, 16));
            lane->bank = (int16_t *)(slot + p->enc_a_bytes) +
                         (p->header.joint_enc_unit + gh_bits(w[0], 17, 1) * p->header.joint_enc_units) * p->cell_unit;
            engine->stepping[joined++] = lane;
        }
        if (lane->kind == GH_NONE)
            continue;
        if (engine->pred_flags[destination] != GH_LIVE)
            memset(lane->destination, 0, p->pred_bytes);
        engine->pred_flags[destination] = GH_LIVE;
        engine->active[predicted++] = lane;
    }
    if (predict(engine, engine->active, predicted) || joint(engine, c, engine->stepping, joined))
        return -1;
    for (uint32_t i = 0; i < joined; i++)
        if (decode_result(engine, c, engine->stepping[i]))
            return -1;
    return 0;
}

/* The prediction slots of entries with reset make their first step. */
static int start_predictions(gh_engine *engine, const gh_command *c)
{
    uint32_t starting = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        gh_lane *lane = &engine->lanes[i];
        uint32_t w[4];
        gh_entry(c, i, w);
        const uint32_t slot = gh_bits(w[3], 0, 16);
        lane->vectors = 0;
        lane->source = lane->destination = gh_pred_slot(engine, slot);
        if (!gh_bits(w[0], 16, 1))
            continue;
        if (engine->pred_flags[slot] != GH_LIVE)
            memset(lane->destination, 0, engine->program->pred_bytes);
        engine->pred_flags[slot] = GH_LIVE;
        lane->kind = GH_START;
        lane->source = engine->zero_slot;
        engine->active[starting++] = lane;
    }
    if (predict(engine, engine->active, starting))
        return -1;
    for (uint32_t i = 0; i < c->count; i++) {
        engine->lanes[i].source = engine->lanes[i].destination;
        engine->lanes[i].kind = GH_TOKEN;
    }
    return 0;
}

/* One more joint for the lanes listed in engine->stepping; those that emit step on. Returns how many go on, or -1. */
static int64_t greedy_round(gh_engine *engine, const gh_command *c, uint32_t count)
{
    const gh_header *h = &engine->program->header;
    uint32_t emitted = 0, left = 0;
    if (joint(engine, c, engine->stepping, count))
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        gh_lane *lane = engine->stepping[i];
        const uint32_t class = gh_argmax(lane->logits, h->classes);
        lane->joints++;
        if (class == h->blank)
            continue;
        uint8_t *to = result_at(engine, c, lane->entry, 8 + 8 * (uint64_t)(lane->emitted + 1));
        if (!to)
            return -1;
        gh_store32(to + 8 + 8 * lane->emitted, class << 16 | (uint16_t)lane->logits[class]);
        gh_store32(to + 12 + 8 * lane->emitted,
                   (uint32_t)gh_log_sum_exp(engine->program, lane->logits, c->temperature));
        lane->emitted++;
        lane->token = class;
        engine->active[emitted++] = lane;
    }
    if (predict(engine, engine->active, emitted))
        return -1;
    for (uint32_t i = 0; i < emitted; i++) {
        engine->active[i]->capped = engine->active[i]->emitted == c->k;
        if (!engine->active[i]->capped)
            engine->stepping[left++] = engine->active[i];
    }
    return left;
}

static int greedy(gh_engine *engine, const gh_command *c)
{
    if (encode(engine, c) || start_predictions(engine, c))
        return -1;
    for (uint32_t i = 0; i < c->count; i++)
        engine->stepping[i] = &engine->lanes[i];
    for (int64_t left = c->count; left > 0;) {
        left = greedy_round(engine, c, (uint32_t)left);
        if (left < 0)
            return -1;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const gh_lane *lane = &engine->lanes[i];
        uint8_t *to = result_at(engine, c, i, 8);
        if (!to)
            return -1;
        gh_store32(to, lane->emitted | lane->capped << 16);
        gh_store32(to + 4, lane->joints);
    }
    return 0;
}

/* The device has checked the descriptor; what the engine's memory safety rests on is looked at again. */
static int read_command(const gh_engine *engine, const uint32_t d[16], gh_command *c)
{
    const gh_header *h = &engine->program->header;
    c->result_bytes = 0;
    c->operation = gh_bits(d[0], 0, 8);
    c->checked = gh_bits(d[0], 9, 1);
    c->count = gh_bits(d[0], 16, 16);
    c->results = d[4] | (uint64_t)d[5] << 32;
    c->k = gh_bits(d[6], 0, 8);
    c->mode = gh_bits(d[6], 8, 2);
    c->named = gh_bits(d[6], 10, 6);
    c->temperature = gh_bits(d[6], 16, 16);
    c->stride = d[9];
    c->features = d[10] | (uint64_t)d[11] << 32;
    for (int i = 0; i < GH_MAX_NAMED; i++)
        c->class[i] = gh_bits(d[7 + i / 2], i % 2 * 16, 16);
    if (c->operation == GH_OP_DECODE) {
        const uint32_t candidates = c->mode == GH_FUZZY ? h->classes / 8 : h->classes;
        if (c->mode > GH_ALL || (c->mode == GH_FUZZY && h->classes % 256) || c->named > GH_MAX_NAMED ||
            (c->mode != GH_ALL && (c->k < 1 || c->k > GH_MAX_K || c->k > candidates)))
            return -1;
        for (uint32_t i = 0; i < c->named; i++)
            if (c->class[i] >= h->classes)
                return -1;
        c->result_bytes = 16 + (c->mode == GH_ALL ? (2 * h->classes + 3) / 4 * 4 : 4 * c->k);
    } else if (c->operation == GH_OP_GREEDY) {
        if (c->k < 1)
            return -1;
        c->result_bytes = 8 + 8 * c->k;
    } else if (c->operation != GH_OP_ENCODE) {
        return -1;
    }
    return c->count <= engine->max_entries ? 0 : -1;
}

int gh_run(gh_engine *engine, const uint32_t d[16], const uint8_t *entries, size_t entry_bytes)
{
    gh_command c;
    int failed;
    memset(&engine->fault, 0, sizeof engine->fault);
    engine->predictions = engine->joints = 0;
    if (read_command(engine, d, &c) || entry_bytes != 16 * (size_t)c.count)
        return -2;
    if (c.count == 0)
        return 0;
    if (gh_make_lanes(engine, c.count) ||
        (c.operation != GH_OP_ENCODE && gh_prepare_exp(engine->program, c.temperature)))
        return -1;
    c.entries = entries;
    if (gh_check_entries(engine, &c))
        return 0;
    for (uint32_t i = 0; i < c.count; i++) {
        gh_clear_lane(engine, &engine->lanes[i]);
        engine->lanes[i].entry = i;
    }
    failed = c.operation == GH_OP_ENCODE   ? encode(engine, &c)
             : c.operation == GH_OP_DECODE ? decode(engine, &c)
                                           : greedy(engine, &c);
    if (!failed)
        return 0;
    gh_drop_destinations(engine, &c);
    return engine->fault.code == GH_OK ? -1 : 0;
}
