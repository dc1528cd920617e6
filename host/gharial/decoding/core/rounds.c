/* SPDX-License-Identifier: Apache-2.0
 * Rounds: what a step wants to know goes out as DECODE entries (docs/isa.md, section 5).
 *
 * A lane holds one round. A stream wants at least its best hypothesis evaluated, and asks for others that are likely to be expanded as well;
 * which of them come early changes no outcome. Slots on their way are held by their entry, whatever becomes of the stream. */
#include "search.h"

#include <math.h>
#include <string.h>

void gh_fetch(const gh_search *search, const int32_t *streams, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        for (size_t at = 0; at < search->stream_bytes && at < 2 * LINE; at += LINE)
            __builtin_prefetch((const char *)gh_stream_at(search, streams[i]) + at, 1);
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; j < gh_stream_at(search, streams[i])->kept_count; j++)
            __builtin_prefetch(gh_at(search, gh_stream_at(search, streams[i])->kept[j]), 1);
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; j < gh_stream_at(search, streams[i])->kept_count; j++) {
            const gh_hypothesis *one = gh_at(search, gh_stream_at(search, streams[i])->kept[j]);
            if (one->slot != NONE)
                __builtin_prefetch((gh_slot *)(void *)search->slots.items + one->slot, 1);
        }
}

void gh_begin(gh_search *search, int32_t number, const int32_t *streams, const int32_t *encoders, const int32_t *banks, int32_t count)
{
    gh_lane *lane = &search->lanes[number];
    lane->member_count = count;
    lane->entry_count = lane->query_count = lane->outcome_count = lane->final_count = 0;
    for (int32_t i = 0; i < count; i++) {
        gh_stream *stream = gh_stream_at(search, streams[i]);
        lane->members[i] = (gh_member){streams[i], stream->generation, 0};
        search->counted += !stream->counted;
        stream->counted = 1;
        stream->stage = WITHIN;
        stream->encoder = encoders[i];
        stream->bank = (uint8_t)banks[i];
        stream->expanded = stream->asked = stream->finished_count = 0;
        for (int32_t j = 0; j < stream->kept_count; j++) {
            gh_at(search, stream->kept[j])->symbols = 0;
            gh_append_to(search, &stream->active, stream->kept[j]);
        }
        stream->kept_count = 0;
    }
}

/* How high a hypothesis must be to be expanded at all, as far as can be known: `width` others will be finished with as much or more. */
static double bar(const gh_search *search, const gh_stream *stream)
{
    const int32_t width = search->options.width;
    double best[MOST_WIDTH];
    int32_t count = 0;
    for (int32_t list = 0; list < 2; list++)
        for (int32_t at = list ? stream->active.first : stream->finished.first; at != NONE; at = gh_at(search, at)->next) {
            const gh_hypothesis *one = gh_at(search, at);
            double score = one->score;
            if (list) {
                if (one->evaluation == NONE)
                    continue;
                score += gh_evaluation_at(search, one->evaluation)->blank;
            }
            if (count == width && !(score > best[count - 1]))
                continue;
            int32_t place = count < width ? count++ : count - 1;
            for (; place > 0 && best[place - 1] < score; place--)
                best[place] = best[place - 1];
            best[place] = score;
        }
    return count == width ? best[width - 1] : -INFINITY;
}

/* The stream's hypotheses to be asked for, the best first: that one always, others above the bar. */
static void want(const gh_search *search, gh_stream *stream)
{
    const gh_options *o = &search->options;
    int32_t *wanted = gh_wanted(search, stream), room = o->max_expansions - stream->asked, count = 0, known = stream->finished_count;
    double scores[MOST_WIDTH];
    room = room < 1 ? 1 : room > o->width ? o->width : room;
    for (int32_t at = stream->active.first; at != NONE; at = gh_at(search, at)->next) {
        const gh_hypothesis *one = gh_at(search, at);
        if (one->evaluation != NONE) {
            known++;
            continue;
        }
        int32_t place = count;
        while (place > 0 && scores[place - 1] < one->score)
            place--;
        if (place == room)
            continue;
        count += count < room;
        for (int32_t i = count - 1; i > place; i--) {
            wanted[i] = wanted[i - 1];
            scores[i] = scores[i - 1];
        }
        wanted[place] = at;
        scores[place] = one->score;
    }
    if (count > 1 && known >= o->width) {
        const double least = bar(search, stream);
        while (count > 1 && !(scores[count - 1] > least))
            count--;
    }
    stream->wanted_count = (uint8_t)count;
}

static void put_word(uint8_t *to, uint32_t word)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    memcpy(to, &word, sizeof word);
}

/* Whether a lane's member may have one more slot. The lane's first one may take as many as it can need, so that it gets to the end of its
 * step and the next one is the first; the others, and what is not certain to be needed, leave as many for each lane's first. Several lanes
 * count every stream that there can be: one may begin while the others are at work. */
static int may_take(const gh_search *search, int32_t place, int certain)
{
    const gh_options *o = &search->options;
    const int64_t slots = search->slots.capacity, reserve = (int64_t)search->lane_count * o->max_expansions;
    const int64_t streams = search->lane_count > 1 ? search->stream_count : search->counted;
    if (certain && (place == 0 || slots < (int64_t)o->width * search->stream_count + reserve))
        return 1;
    return slots - o->width * streams - search->taken > reserve;
}

/* One entry for a hypothesis of member `place`; 0 if there is no room for it now. */
static int emit(gh_search *search, gh_lane *lane, int32_t place, int32_t hypothesis, int certain, uint8_t *entries)
{
    gh_member *member = &lane->members[place];
    gh_stream *stream = gh_stream_at(search, member->stream);
    gh_hypothesis *one = gh_at(search, hypothesis);
    gh_kind kind = KIND_NONE;
    int32_t token = 0, joint = 1;
    if (lane->entry_count == search->most_entries)
        return 0;
    int32_t source = one->slot; /* the entry holds it from here on */
    if (!one->asked) {
        const int32_t slot = may_take(search, place, certain) ? gh_pool_take(&search->slots) : NONE;
        if (slot == NONE)
            return 0;
        member->taken++;
        search->taken++;
        kind = source == NONE ? KIND_START : KIND_TOKEN;
        token = kind == KIND_TOKEN ? gh_token_at(search, one->tail)->id : 0;
        joint = kind == KIND_TOKEN || !stream->prefix_length;
        source = kind == KIND_START ? gh_hold_slot(search, slot) : source;
        one->slot = slot;
        one->asked = 1;
    } else {
        gh_hold_slot(search, source);
        if (stream->primed < stream->prefix_length) {
            kind = KIND_TOKEN;
            token = stream->prefix[stream->primed++];
            joint = stream->primed == stream->prefix_length;
        }
    }
    uint8_t *to = entries + ENTRY_BYTES * lane->entry_count;
    put_word(to, (uint32_t)(stream->encoder | (int32_t)stream->bank << 17 | (int32_t)kind << 21 | (!joint) << 23));
    put_word(to + 4, gh_slot_number(search, source) | gh_slot_number(search, one->slot) << 16);
    put_word(to + 8, (uint32_t)token);
    put_word(to + 12, 0);
    gh_hold_slot(search, one->slot);
    gh_entry *entry = &lane->entries[lane->entry_count++];
    entry->stream = member->stream;
    entry->hypothesis = hypothesis;
    entry->source = source;
    entry->destination = one->slot;
    entry->generation = member->generation;
    entry->joint = (uint8_t)joint;
    stream->asked++;
    return 1;
}

static void report(gh_search *search, gh_lane *lane, int32_t number, gh_fault fault)
{
    gh_outcome *outcome = &lane->outcomes[lane->outcome_count++];
    *outcome = (gh_outcome){number, (int32_t)fault, lane->final_count, 0};
    if (!fault)
        fault = gh_end_step(search, gh_stream_at(search, number), lane, outcome);
    outcome->fault = (int32_t)fault;
    if (fault)
        gh_fail(search, number, fault);
}

/* Every member's step as far as it goes; those whose step is done, or that have gone, leave the lane. */
static void step_members(gh_search *search, gh_lane *lane)
{
    int32_t staying = 0;
    for (int32_t i = 0; i < lane->member_count; i++) {
        const gh_member member = lane->members[i];
        gh_stream *stream = gh_stream_at(search, member.stream);
        gh_fault fault = (gh_fault)stream->fault;
        const int gone = stream->generation != member.generation, done = !gone && (stream->stage == FAILED || gh_step(search, stream, &fault));
        if (done)
            report(search, lane, member.stream, fault);
        if (gone || done)
            search->taken -= member.taken;
        else
            lane->members[staying++] = member;
    }
    lane->member_count = staying;
}

int32_t gh_ask(gh_search *search, int32_t number, uint8_t *entries, int begun)
{
    gh_lane *lane = &search->lanes[number];
    lane->entry_count = 0;
    if (!begun) /* else each wants its best hypothesis evaluated */
        step_members(search, lane);
    for (;;) {
        for (int32_t i = 0; i < lane->member_count; i++) {
            gh_stream *stream = gh_stream_at(search, lane->members[i].stream);
            want(search, stream);
            emit(search, lane, i, gh_wanted(search, stream)[0], 1, entries);
        }
        if (lane->entry_count || !lane->member_count)
            break;
        /* Nobody here can go on: one gives its slots back. */
        report(search, lane, lane->members[0].stream, GH_SLOTS);
        search->taken -= lane->members[0].taken;
        memmove(lane->members, lane->members + 1, (size_t)--lane->member_count * sizeof *lane->members);
    }
    for (int32_t i = 0; i < lane->member_count; i++) {
        gh_stream *stream = gh_stream_at(search, lane->members[i].stream);
        for (int32_t j = 1; j < stream->wanted_count; j++)
            emit(search, lane, i, gh_wanted(search, stream)[j], 0, entries);
    }
    lane->stage = lane->entry_count ? LANE_RESULTS : LANE_FREE;
    return lane->entry_count;
}

void gh_cancel(gh_search *search, int32_t number)
{
    gh_lane *lane = &search->lanes[number];
    if (lane->stage == LANE_RESULTS)
        gh_let_go(search, lane);
    for (int32_t i = 0; i < lane->member_count; i++) {
        search->taken -= lane->members[i].taken;
        if (gh_present(search, lane->members[i].generation, lane->members[i].stream))
            gh_fail(search, lane->members[i].stream, GH_LOST);
    }
    lane->member_count = lane->entry_count = lane->query_count = 0;
    lane->stage = LANE_FREE;
}
