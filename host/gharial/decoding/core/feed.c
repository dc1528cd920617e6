/* SPDX-License-Identifier: Apache-2.0
 * Results of a round come in: candidates, and what the n-gram says of them.
 *
 * Each pass over the entries asks for the memory that the next one reads, so that a batch waits for it once. */
#include "search.h"

#include <math.h>

void gh_let_go(gh_search *search, const gh_lane *lane)
{
    for (int32_t i = 0; i < lane->entry_count; i++) {
        gh_drop_slot(search, lane->entries[i].source);
        gh_drop_slot(search, lane->entries[i].destination);
    }
}

/* What the entries are about. */
static void fetch(const gh_search *search, const gh_lane *lane)
{
    for (int32_t i = 0; i < lane->entry_count; i++) {
        const gh_entry *entry = &lane->entries[i];
        const char *stream = (const char *)gh_stream_at(search, entry->stream);
        if (!i || entry->stream != entry[-1].stream) {
            __builtin_prefetch(stream, 1);
            __builtin_prefetch(stream + LINE, 1);
        }
        __builtin_prefetch(gh_at(search, entry->hypothesis), 1);
        __builtin_prefetch((gh_slot *)(void *)search->slots.items + entry->source, 1);
        __builtin_prefetch((gh_slot *)(void *)search->slots.items + entry->destination, 1);
    }
}

static gh_fault take_result(gh_search *search, const gh_entry *asked, const uint8_t *result)
{
    const int32_t number = gh_pool_new(&search->evaluations);
    if (number == NONE)
        return GH_MEMORY;
    gh_hypothesis *one = gh_at(search, asked->hypothesis);
    gh_evaluation *evaluation = gh_evaluation_at(search, number);
    evaluation->count = 0;
    one->evaluation = number;
    const gh_fault fault = gh_read(search, result, one->symbols >= search->options.max_symbols, evaluation);
    for (int32_t i = 0; i < evaluation->count; i++) {
        __builtin_prefetch(&search->words[evaluation->candidates[i].token]);
        __builtin_prefetch(&search->piece_flags[evaluation->candidates[i].token]);
        __builtin_prefetch(&search->pieces[evaluation->candidates[i].token]);
    }
    if (one->tail != NONE)
        __builtin_prefetch(gh_token_at(search, one->tail), 1);
    if (evaluation->count && one->ngram != NONE && search->ngram)
        __builtin_prefetch(gh_state_at(search, one->ngram), 1);
    return fault;
}

/* The free item that will be taken after so many others. */
static void fetch_unused(const gh_pool *pool, int32_t after)
{
    if ((uint32_t)after < pool->free)
        __builtin_prefetch(gh_pool_at(pool, pool->unused[pool->free - 1 - (uint32_t)after]), 1);
}

/* A state behind each candidate that the n-gram scores, and a query for it. */
static gh_fault query(gh_search *search, gh_lane *lane, int32_t entry)
{
    const gh_hypothesis *one = gh_at(search, lane->entries[entry].hypothesis);
    gh_evaluation *evaluation = gh_evaluation_at(search, one->evaluation);
    for (int32_t i = 0; i < evaluation->count; i++) {
        gh_candidate *candidate = &evaluation->candidates[i];
        const uint32_t word = search->words[candidate->token];
        if (word == (uint32_t)NOT_SCORED)
            continue;
        const int32_t to = gh_pool_take(&search->ngrams);
        if (to == NONE)
            return GH_MEMORY;
        candidate->ngram = to;
        fetch_unused(&search->hypotheses, lane->query_count);
        fetch_unused(&search->tokens, lane->query_count);
        if (search->ngram)
            gh_ngram_prefetch(search->ngram, gh_state_at(search, one->ngram), word);
        lane->queries[lane->query_count++] = (gh_query){one->evaluation, i, one->ngram, candidate->token, to, entry};
    }
    return GH_FINE;
}

/* ln p of all queries. */
static void score(gh_search *search, const gh_lane *lane)
{
    static const double LN_10 = 2.302585092994046;
    for (int32_t i = 0; i < lane->query_count; i++) {
        const gh_query *one = &lane->queries[i];
        const gh_entry *entry = &lane->entries[one->entry];
        if (!gh_present(search, entry->generation, entry->stream))
            continue;
        const float log10_p = gh_ngram_score(search->ngram, gh_state_at(search, one->from), search->words[one->token], gh_state_at(search, one->to));
        if (!isfinite(log10_p))
            gh_fail(search, entry->stream, GH_NGRAM);
        else
            gh_evaluation_at(search, one->evaluation)->candidates[one->candidate].ngram_log_p = log10_p * LN_10;
    }
}

void gh_feed(gh_search *search, int32_t number, const uint8_t *results, int32_t stride)
{
    gh_lane *lane = &search->lanes[number];
    lane->query_count = lane->outcome_count = lane->final_count = 0;
    fetch(search, lane);
    gh_let_go(search, lane);
    for (int32_t i = 0; i < lane->entry_count; i++) {
        const gh_entry *entry = &lane->entries[i];
        if (!entry->joint || !gh_present(search, entry->generation, entry->stream))
            continue;
        const gh_fault fault = take_result(search, entry, results + (size_t)i * (size_t)stride);
        if (fault)
            gh_fail(search, entry->stream, fault);
    }
    for (int32_t i = 0; search->options.ngram && i < lane->entry_count; i++) {
        const gh_entry *entry = &lane->entries[i];
        if (entry->joint && gh_present(search, entry->generation, entry->stream) && query(search, lane, i))
            gh_fail(search, entry->stream, GH_MEMORY);
    }
    lane->stage = LANE_SCORES;
    if (search->ngram)
        score(search, lane);
}
