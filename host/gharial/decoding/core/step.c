/* SPDX-License-Identifier: Apache-2.0
 * Section 2 of docs/decoding.md: hypotheses are expanded in the order of their scores, as far as their results are there. */
#include "search.h"

static int same_text(const gh_hypothesis *a, const gh_hypothesis *b)
{
    return a->text[0] == b->text[0] && a->text[1] == b->text[1];
}

static int32_t with_text(const gh_search *search, const gh_list *those, const gh_hypothesis *one)
{
    int32_t at = those->first;
    while (at != NONE && !same_text(gh_at(search, at), one))
        at = gh_at(search, at)->next;
    return at;
}

/* The expanded hypothesis, finished by a blank: it goes into its list as it is, or its score into the one that is there. */
static void finish(gh_search *search, gh_stream *stream, int32_t hypothesis, double score)
{
    gh_hypothesis *one = gh_at(search, hypothesis);
    const int32_t there = with_text(search, &stream->finished, one);
    if (there == NONE) {
        one->score = score;
        gh_append_to(search, &stream->finished, hypothesis);
        stream->finished_count++;
        return;
    }
    gh_hypothesis *other = gh_at(search, there);
    other->score = gh_log_add(other->score, score);
    gh_discard(search, hypothesis);
}

/* The list's hypothesis, or a new one at its end, for a child that has no hold of anything yet; NONE without memory. */
static int32_t place(gh_search *search, gh_stream *stream, gh_hypothesis *child, double *merged)
{
    const int32_t there = with_text(search, &stream->active, child);
    *merged = child->score;
    if (there == NONE) {
        const int32_t added = gh_pool_new(&search->hypotheses);
        if (added != NONE) {
            gh_at(search, added)->slot = gh_at(search, added)->evaluation = NONE;
            gh_at(search, added)->ngram = gh_at(search, added)->tail = NONE;
            gh_append_to(search, &stream->active, added);
        }
        return added;
    }
    gh_hypothesis *other = gh_at(search, there);
    *merged = gh_log_add(other->score, child->score);
    if (child->score > other->score)
        gh_release(search, other);
    else {
        other->score = *merged;
        child->tokens = NONE; /* nothing of it stays */
    }
    return there;
}

/* `parent` by value: the pools may move. It and what it holds live on until all its children are there. */
static gh_fault extend(gh_search *search, gh_stream *stream, const gh_hypothesis *parent, const gh_candidate *by)
{
    gh_hypothesis child = *parent;
    double merged;
    child.score += by->log_p;
    if (by->ngram != NONE)
        child.score += search->options.ngram_scale * by->ngram_log_p;
    if (stream->trie)
        child.score += gh_extend_keywords(search, stream->trie, &child.keyword, by->token);
    gh_extend_text(search, &child, by->token);
    child.tokens++;
    child.symbols++;
    const int32_t at = place(search, stream, &child, &merged);
    if (at == NONE)
        return GH_MEMORY;
    if (child.tokens == NONE)
        return GH_FINE;
    const int32_t token = gh_pool_new(&search->tokens);
    if (token == NONE) { /* the hypothesis in the list holds nothing: the stream ends in order */
        return GH_MEMORY;
    }
    *gh_token_at(search, token) = (gh_token){parent->tail, by->token, stream->steps, 1, by->log_p, 0};
    if (parent->tail != NONE)
        gh_token_at(search, parent->tail)->holders++;
    child.tail = token;
    if (parent->first == NONE) {
        child.first = token;
        child.first_id = by->token;
    }
    child.slot = gh_hold_slot(search, parent->slot);
    child.asked = 0;
    child.evaluation = NONE;
    child.ngram = by->ngram != NONE ? by->ngram : parent->ngram;
    if (child.ngram != NONE)
        gh_pool_hold(&search->ngrams, child.ngram);
    child.score = merged;
    child.next = gh_at(search, at)->next;
    *gh_at(search, at) = child;
    return GH_FINE;
}

static gh_fault expand(gh_search *search, gh_stream *stream, int32_t hypothesis)
{
    const gh_hypothesis *one = gh_at(search, hypothesis);
    const gh_evaluation *evaluation = gh_evaluation_at(search, one->evaluation);
    const double finished = one->score + evaluation->blank;
    gh_fault fault = GH_FINE;
    if (evaluation->count) {
        const gh_hypothesis parent = *one;
        for (int32_t i = 0; i < evaluation->count && !fault; i++)
            fault = extend(search, stream, &parent, &evaluation->candidates[i]);
    }
    /* The two lists have nothing to do with one another: blank's place among the candidates does not show. */
    gh_hypothesis *same = gh_at(search, hypothesis);
    gh_drop_evaluation(search, same->evaluation);
    same->evaluation = NONE;
    finish(search, stream, hypothesis, finished);
    return fault;
}

static void take_out(gh_search *search, gh_list *list, int32_t before, int32_t hypothesis)
{
    const int32_t next = gh_at(search, hypothesis)->next;
    if (before == NONE)
        list->first = next;
    else
        gh_at(search, before)->next = next;
    if (list->last == hypothesis)
        list->last = before;
}

int gh_step(gh_search *search, gh_stream *stream, gh_fault *fault)
{
    const gh_options *o = &search->options;
    while (stream->active.first != NONE && stream->expanded < o->max_expansions) {
        int32_t best = NONE, before = NONE, above = 0;
        for (int32_t at = stream->active.first, last = NONE; at != NONE; last = at, at = gh_at(search, at)->next)
            if (best == NONE || gh_at(search, at)->score > gh_at(search, best)->score) {
                best = at;
                before = last;
            }
        const gh_hypothesis *one = gh_at(search, best);
        for (int32_t at = stream->finished_count < o->width ? NONE : stream->finished.first; at != NONE; at = gh_at(search, at)->next)
            above += gh_at(search, at)->score > one->score;
        if (above >= o->width)
            break;
        if (one->evaluation == NONE)
            return 0;
        stream->expanded++;
        take_out(search, &stream->active, before, best);
        *fault = expand(search, stream, best);
        if (*fault)
            return -1;
    }
    return 1;
}
