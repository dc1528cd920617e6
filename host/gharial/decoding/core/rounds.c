/* SPDX-License-Identifier: Apache-2.0
 * Rounds: what a step wants to know goes out as DECODE entries (docs/isa.md, section 5), results come in.
 *
 * A lane holds one round. A stream wants at least its best hypothesis evaluated, and asks for others that are likely to be expanded as well;
 * which of them come early changes no outcome. Slots on their way are held by their entry, whatever becomes of the stream. */
#include "search.h"

#include <math.h>
#include <string.h>

void gh_begin(gh_search *search, int32_t number, const int32_t *streams, const int32_t *encoders, const int32_t *banks, int32_t count)
{
    gh_lane *lane = &search->lanes[number];
    lane->member_count = count;
    lane->entry_count = lane->query_count = lane->outcome_count = lane->final_count = 0;
    for (int32_t i = 0; i < count; i++) {
        gh_stream *stream = &search->streams[streams[i]];
        lane->members[i] = (gh_member){streams[i], stream->generation, 0};
        search->counted += !stream->counted;
        stream->counted = 1;
        stream->stage = WITHIN;
        stream->encoder = encoders[i];
        stream->bank = banks[i];
        stream->expanded = stream->asked = 0;
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
    const int32_t width = search->options.width, blank = search->options.blank;
    double best[MOST_WIDTH];
    int32_t count = 0;
    for (int32_t list = 0; list < 2; list++)
        for (int32_t at = list ? stream->active.first : stream->finished.first; at != NONE; at = gh_at(search, at)->next) {
            double score = gh_at(search, at)->score;
            if (list) {
                if (gh_at(search, at)->evaluation == NONE)
                    continue;
                const gh_evaluation *one = gh_evaluation_at(search, gh_at(search, at)->evaluation);
                for (int32_t i = 0; i < one->count; i++)
                    if (one->candidates[i].token == blank)
                        score += one->candidates[i].log_p;
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

/* The stream's hypotheses to be asked for, the best first. */
static void want(const gh_search *search, gh_stream *stream)
{
    const gh_options *o = &search->options;
    const double least = bar(search, stream);
    int32_t room = o->max_expansions - stream->asked;
    room = room < 1 ? 1 : room > o->width ? o->width : room;
    stream->wanted_count = 0;
    for (int32_t at = stream->active.first; at != NONE; at = gh_at(search, at)->next) {
        const gh_hypothesis *one = gh_at(search, at);
        if (one->evaluation != NONE)
            continue;
        int32_t place = stream->wanted_count;
        while (place > 0 && gh_at(search, stream->wanted[place - 1])->score < one->score)
            place--;
        if (place == room || (place > 0 && !(one->score > least)))
            continue;
        if (stream->wanted_count < room)
            stream->wanted_count++;
        for (int32_t i = stream->wanted_count - 1; i > place; i--)
            stream->wanted[i] = stream->wanted[i - 1];
        stream->wanted[place] = at;
    }
}

static void put_word(uint8_t *to, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(word >> 8 * i);
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
    gh_stream *stream = &search->streams[member->stream];
    gh_hypothesis *one = gh_at(search, hypothesis);
    gh_kind kind = KIND_NONE;
    int32_t token = 0, joint = 1;
    if (lane->entry_count == search->most_entries)
        return 0;
    if (one->slot == NONE) {
        const int32_t slot = may_take(search, place, certain) ? gh_pool_take(&search->slots) : NONE;
        if (slot == NONE)
            return 0;
        member->taken++;
        search->taken++;
        kind = one->source == NONE ? KIND_START : KIND_TOKEN;
        token = kind == KIND_TOKEN ? gh_token_at(search, one->tail)->id : 0;
        joint = kind == KIND_TOKEN || !stream->prefix_length;
        one->slot = slot;
    } else if (stream->primed < stream->prefix_length) {
        kind = KIND_TOKEN;
        token = stream->prefix[stream->primed++];
        joint = stream->primed == stream->prefix_length;
    }
    const int32_t source = one->source == NONE ? gh_pool_hold(&search->slots, one->slot) : one->source; /* the entry holds it from here on */
    one->source = NONE;
    uint8_t *to = entries + ENTRY_BYTES * lane->entry_count;
    put_word(to, (uint32_t)(stream->encoder | stream->bank << 17 | (int32_t)kind << 21 | (!joint) << 23));
    put_word(to + 4, (uint32_t)search->slot_numbers[source] | (uint32_t)search->slot_numbers[one->slot] << 16);
    put_word(to + 8, (uint32_t)token);
    put_word(to + 12, 0);
    gh_pool_hold(&search->slots, one->slot);
    lane->entries[lane->entry_count++] = (gh_entry){member->stream, hypothesis, source, one->slot, member->generation, (uint8_t)joint};
    stream->asked++;
    return 1;
}

static int present(const gh_search *search, uint32_t generation, int32_t stream)
{
    return search->streams[stream].generation == generation && search->streams[stream].stage == WITHIN;
}

static void report(gh_search *search, gh_lane *lane, int32_t number, gh_fault fault)
{
    gh_outcome *outcome = &lane->outcomes[lane->outcome_count++];
    *outcome = (gh_outcome){number, (int32_t)fault, lane->final_count, 0};
    if (!fault)
        fault = gh_end_step(search, &search->streams[number], lane, outcome);
    outcome->fault = (int32_t)fault;
    if (fault)
        gh_fail(search, number, fault);
}

/* Take member `i` off the lane: its step is done, or it has gone. */
static void leave(gh_search *search, gh_lane *lane, int32_t *i)
{
    search->taken -= lane->members[*i].taken;
    for (int32_t j = *i; j + 1 < lane->member_count; j++)
        lane->members[j] = lane->members[j + 1];
    lane->member_count--;
    --*i;
}

int32_t gh_ask(gh_search *search, int32_t number, uint8_t *entries)
{
    gh_lane *lane = &search->lanes[number];
    lane->entry_count = 0;
    for (int32_t i = 0; i < lane->member_count; i++) {
        const gh_member member = lane->members[i];
        gh_stream *stream = &search->streams[member.stream];
        gh_fault fault = GH_FINE;
        if (stream->generation != member.generation) {
            leave(search, lane, &i);
            continue;
        }
        const int done = stream->stage == FAILED ? -1 : gh_step(search, stream, &fault);
        if (done) {
            report(search, lane, member.stream, stream->stage == FAILED ? stream->fault : fault);
            leave(search, lane, &i);
        }
    }
    for (;;) {
        for (int32_t i = 0; i < lane->member_count; i++) {
            want(search, &search->streams[lane->members[i].stream]);
            emit(search, lane, i, search->streams[lane->members[i].stream].wanted[0], 1, entries);
        }
        if (lane->entry_count || !lane->member_count)
            break;
        int32_t first = 0; /* nobody here can go on: one gives its slots back */
        report(search, lane, lane->members[0].stream, GH_SLOTS);
        leave(search, lane, &first);
    }
    for (int32_t i = 0; i < lane->member_count; i++) {
        gh_stream *stream = &search->streams[lane->members[i].stream];
        for (int32_t j = 1; j < stream->wanted_count; j++)
            emit(search, lane, i, stream->wanted[j], 0, entries);
    }
    lane->stage = lane->entry_count ? LANE_RESULTS : LANE_FREE;
    return lane->entry_count;
}

static gh_fault take_result(gh_search *search, gh_lane *lane, int32_t entry, const uint8_t *result)
{
    const gh_entry *asked = &lane->entries[entry];
    const gh_options *o = &search->options;
    const int32_t number = gh_pool_take(&search->evaluations);
    if (number == NONE)
        return GH_MEMORY;
    gh_hypothesis *one = gh_at(search, asked->hypothesis);
    gh_evaluation *evaluation = gh_evaluation_at(search, number);
    evaluation->count = 0;
    one->evaluation = number;
    const gh_fault fault = gh_read(search, result, one->symbols >= o->max_symbols, evaluation);
    if (fault || !o->ngram)
        return fault;
    for (int32_t i = 0; i < evaluation->count; i++) {
        gh_candidate *candidate = &evaluation->candidates[i];
        if (candidate->token == o->blank || !search->pieces[candidate->token].scored)
            continue;
        candidate->ngram = gh_pool_take(&search->ngrams);
        if (candidate->ngram == NONE)
            return GH_MEMORY;
        if (search->ngram)
            gh_ngram_prefetch(search->ngram, gh_state_at(search, one->ngram), search->words[candidate->token]);
        lane->queries[lane->query_count++] = (gh_query){number, i, one->ngram, candidate->token, candidate->ngram, entry};
    }
    return GH_FINE;
}

/* ln p of all queries, whose tables have been asked for. */
static void score(gh_search *search, const gh_lane *lane)
{
    static const double LN_10 = 2.302585092994046;
    for (int32_t i = 0; i < lane->query_count; i++) {
        const gh_query *query = &lane->queries[i];
        const gh_entry *entry = &lane->entries[query->entry];
        if (!present(search, entry->generation, entry->stream))
            continue;
        const float log10_p = gh_ngram_score(search->ngram, gh_state_at(search, query->from), search->words[query->token], gh_state_at(search, query->to));
        if (!isfinite(log10_p))
            gh_fail(search, entry->stream, GH_NGRAM);
        else
            gh_evaluation_at(search, query->evaluation)->candidates[query->candidate].ngram_log_p = log10_p * LN_10;
    }
}

static void let_go(gh_search *search, gh_lane *lane)
{
    for (int32_t i = 0; i < lane->entry_count; i++) {
        gh_pool_drop(&search->slots, lane->entries[i].source);
        gh_pool_drop(&search->slots, lane->entries[i].destination);
    }
}

void gh_feed(gh_search *search, int32_t number, const uint8_t *results, int32_t stride)
{
    gh_lane *lane = &search->lanes[number];
    lane->query_count = lane->outcome_count = lane->final_count = 0;
    let_go(search, lane);
    for (int32_t i = 0; i < lane->entry_count; i++) {
        const gh_entry *entry = &lane->entries[i];
        if (!entry->joint || !present(search, entry->generation, entry->stream))
            continue;
        const int32_t before = lane->query_count;
        const gh_fault fault = take_result(search, lane, i, results + (size_t)i * (size_t)stride);
        if (!fault)
            continue;
        gh_fail(search, entry->stream, fault);
        lane->query_count = before;
    }
    /* Queries of a stream that failed later in the list are nobody's. */
    int32_t count = 0;
    for (int32_t i = 0; i < lane->query_count; i++) {
        const gh_entry *entry = &lane->entries[lane->queries[i].entry];
        if (present(search, entry->generation, entry->stream))
            lane->queries[count++] = lane->queries[i];
    }
    lane->query_count = count;
    lane->stage = LANE_SCORES;
    if (search->ngram)
        score(search, lane);
}

void gh_cancel(gh_search *search, int32_t number)
{
    gh_lane *lane = &search->lanes[number];
    if (lane->stage == LANE_RESULTS)
        let_go(search, lane);
    for (int32_t i = 0; i < lane->member_count; i++) {
        search->taken -= lane->members[i].taken;
        if (present(search, lane->members[i].generation, lane->members[i].stream))
            gh_fail(search, lane->members[i].stream, GH_LOST);
    }
    lane->member_count = lane->entry_count = lane->query_count = 0;
    lane->stage = LANE_FREE;
}
