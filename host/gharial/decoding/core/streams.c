/* SPDX-License-Identifier: Apache-2.0
 * A search and its streams: all memory is taken here; pools but that of slots double when a stream needs more than is usual. */
#include "search.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Of each stream at the start, for each hypothesis that can be kept; of so many streams. */
enum { HYPOTHESES = 6, EVALUATIONS = 2, TOKENS = 16, NGRAMS = 8, STREAMS = 1024 };
enum { FINALS = 4 }; /* of a stream in a step */

static int32_t usual_streams(const gh_search *search)
{
    return search->stream_count < STREAMS ? search->stream_count : STREAMS;
}

static void lay_out_lane(const gh_search *search, gh_memory *memory, gh_lane *lane)
{
    const size_t streams = (size_t)search->stream_count, entries = (size_t)search->most_entries;
    lane->members = gh_take(memory, streams * sizeof *lane->members);
    lane->outcomes = gh_take(memory, streams * sizeof *lane->outcomes);
    lane->entries = gh_take(memory, entries * sizeof *lane->entries);
    lane->queries = gh_take(memory, entries * (size_t)(search->options.width + 1) * sizeof *lane->queries);
}

/* All that there is at the start, what is used in every step first. */
static void lay_out(gh_search *search, gh_memory *memory, int32_t slot_count)
{
    const gh_options *o = &search->options;
    const uint32_t wide = (uint32_t)usual_streams(search) * (uint32_t)o->width;
    const size_t classes = (size_t)o->classes, evaluation = sizeof(gh_evaluation) + (size_t)o->width * sizeof(gh_candidate);
    search->streams = gh_take(memory, (size_t)search->stream_count * search->stream_bytes);
    for (int32_t i = 0; i < search->lane_count; i++)
        lay_out_lane(search, memory, &search->lanes[i]);
    gh_pool_init(&search->slots, memory, sizeof(gh_slot), offsetof(gh_slot, holders), (uint32_t)slot_count, 0);
    gh_pool_init(&search->hypotheses, memory, sizeof(gh_hypothesis), ONE_OWNER, HYPOTHESES * wide, 1);
    gh_pool_init(&search->evaluations, memory, (evaluation + LINE - 1) / LINE * LINE, ONE_OWNER, EVALUATIONS * wide, 1);
    gh_pool_init(&search->tokens, memory, sizeof(gh_token), offsetof(gh_token, holders), TOKENS * wide, 1);
    if (search->ngram)
        gh_pool_init(&search->ngrams, memory, sizeof(gh_context), offsetof(gh_context, holders), NGRAMS * wide, 1);
    else
        gh_pool_init(&search->ngrams, memory, 0, APART, o->ngram ? NGRAMS * wide : 1, 1);
    search->words = gh_take(memory, classes * sizeof *search->words);
    search->piece_flags = gh_take(memory, classes);
    search->pieces = gh_take(memory, classes * sizeof *search->pieces);
}

static int set_up(gh_search *search, const int32_t *slots, int32_t slot_count)
{
    gh_memory memory = {NULL, 0};
    search->stream_bytes = (sizeof(gh_stream) + 2 * (size_t)search->options.width * sizeof(int32_t) + LINE - 1) / LINE * LINE;
    search->lanes = calloc((size_t)search->lane_count, sizeof *search->lanes);
    if (!search->lanes)
        return -1;
    lay_out(search, &memory, slot_count);
    search->memory = gh_aligned(memory.used);
    if (!search->memory)
        return -1;
    memory = (gh_memory){search->memory, 0};
    lay_out(search, &memory, slot_count);
    memset(search->streams, 0, (size_t)search->stream_count * search->stream_bytes);
    for (int32_t i = 0; i < search->stream_count; i++) {
        gh_stream *stream = gh_stream_at(search, i);
        stream->active = stream->finished = (gh_list){NONE, NONE};
    }
    for (int32_t i = 0; i < slot_count; i++)
        *(gh_slot *)gh_pool_at(&search->slots, i) = (gh_slot){0, (uint32_t)slots[i]};
    for (int32_t i = 0; i < search->lane_count; i++) {
        gh_lane *lane = &search->lanes[i];
        lane->final_room = FINALS * usual_streams(search);
        lane->finals = malloc((size_t)lane->final_room * sizeof *lane->finals);
        if (!lane->finals)
            return -1;
    }
    return 0;
}

gh_search *gh_search_new(const gh_options *options, int32_t streams, int32_t lanes, int32_t most_entries, const int32_t *slots,
                         int32_t slot_count, const gh_ngram *ngram)
{
    gh_search *search = calloc(1, sizeof *search);
    if (!search)
        return NULL;
    search->options = *options;
    search->ngram = ngram;
    search->stream_count = streams;
    search->lane_count = lanes;
    search->most_entries = most_entries;
    search->scale = ldexp(options->temperature, -(options->logit_bits + 14));
    search->most_lse = log(options->classes);
    if (set_up(search, slots, slot_count)) {
        gh_search_free(search);
        return NULL;
    }
    gh_pool_take(&search->ngrams); /* state 0, the sentence's begin, is always there */
    if (ngram)
        gh_ngram_begin(ngram, gh_ngram_word(ngram, (const uint8_t *)"<s>", 3), gh_state_at(search, 0));
    return search;
}

void gh_search_free(gh_search *search)
{
    if (!search)
        return;
    for (int32_t i = 0; search->lanes && i < search->lane_count; i++)
        free(search->lanes[i].finals);
    for (int32_t i = 0; search->memory && i < search->stream_count; i++)
        free(gh_stream_at(search, i)->prefix);
    gh_pool_clear(&search->slots);
    gh_pool_clear(&search->hypotheses);
    gh_pool_clear(&search->evaluations);
    gh_pool_clear(&search->tokens);
    gh_pool_clear(&search->ngrams);
    free(search->letters_at);
    free(search->letters);
    free(search->lanes);
    free(search->memory);
    free(search);
}

/* Whatever the stream holds is let go of. */
static void empty(gh_search *search, gh_stream *stream)
{
    gh_discard_list(search, &stream->active);
    gh_discard_list(search, &stream->finished);
    while (stream->kept_count)
        gh_discard(search, stream->kept[--stream->kept_count]);
    free(stream->prefix);
    stream->prefix = NULL;
    stream->prefix_length = stream->primed = 0;
    search->counted -= stream->counted;
    stream->counted = 0;
}

void gh_close(gh_search *search, int32_t number)
{
    gh_stream *stream = gh_stream_at(search, number);
    empty(search, stream);
    stream->generation++;
    stream->stage = CLOSED;
    stream->fault = GH_FINE;
    stream->trie = NULL;
}

void gh_fail(gh_search *search, int32_t number, gh_fault fault)
{
    gh_stream *stream = gh_stream_at(search, number);
    empty(search, stream);
    stream->stage = FAILED;
    stream->fault = fault;
}

gh_fault gh_open(gh_search *search, int32_t number, const gh_trie *trie, const int32_t *prefix, int32_t prefix_length)
{
    gh_stream *stream = gh_stream_at(search, number);
    gh_close(search, number);
    const int32_t root = gh_pool_new(&search->hypotheses);
    if (root == NONE)
        return GH_MEMORY;
    if (prefix_length) {
        stream->prefix = malloc((size_t)prefix_length * sizeof *prefix);
        if (!stream->prefix) {
            gh_pool_free(&search->hypotheses, root);
            return GH_MEMORY;
        }
        memcpy(stream->prefix, prefix, (size_t)prefix_length * sizeof *prefix);
        stream->prefix_length = prefix_length;
    }
    gh_hypothesis *one = gh_at(search, root);
    memset(one, 0, sizeof *one);
    one->next = one->slot = one->evaluation = one->tail = one->first = one->ngram = NONE;
    if (search->options.ngram)
        one->ngram = gh_pool_hold(&search->ngrams, 0);
    stream->kept[0] = root;
    stream->kept_count = 1;
    stream->trie = trie;
    stream->steps = stream->finals = 0;
    stream->clock = 0.0;
    stream->stage = BETWEEN;
    return GH_FINE;
}
