/* SPDX-License-Identifier: Apache-2.0
 * Hypotheses: their lists, and what they hold of the pools. */
#include "search.h"

#include <math.h>

double gh_log_add(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

void gh_drop_tokens(gh_search *search, int32_t tail)
{
    while (tail != NONE) {
        gh_token *one = gh_token_at(search, tail);
        if (--one->holders)
            return;
        gh_pool_free(&search->tokens, tail);
        tail = one->parent;
    }
}

void gh_drop_evaluation(gh_search *search, int32_t evaluation)
{
    const gh_evaluation *one = gh_evaluation_at(search, evaluation);
    for (int32_t i = 0; i < one->count; i++)
        if (one->candidates[i].ngram != NONE)
            gh_pool_drop(&search->ngrams, one->candidates[i].ngram);
    gh_pool_free(&search->evaluations, evaluation);
}

void gh_release(gh_search *search, gh_hypothesis *one)
{
    if (one->slot != NONE)
        gh_drop_slot(search, one->slot);
    if (one->evaluation != NONE)
        gh_drop_evaluation(search, one->evaluation);
    if (one->ngram != NONE)
        gh_pool_drop(&search->ngrams, one->ngram);
    gh_drop_tokens(search, one->tail);
    one->slot = one->evaluation = one->ngram = one->tail = one->first = NONE;
}

void gh_discard(gh_search *search, int32_t hypothesis)
{
    gh_release(search, gh_at(search, hypothesis));
    gh_pool_free(&search->hypotheses, hypothesis);
}

void gh_discard_list(gh_search *search, gh_list *list)
{
    for (int32_t at = list->first, next; at != NONE; at = next) {
        next = gh_at(search, at)->next;
        gh_discard(search, at);
    }
    list->first = list->last = NONE;
}

void gh_append_to(gh_search *search, gh_list *list, int32_t hypothesis)
{
    gh_at(search, hypothesis)->next = NONE;
    if (list->last == NONE)
        list->first = hypothesis;
    else
        gh_at(search, list->last)->next = hypothesis;
    list->last = hypothesis;
}
