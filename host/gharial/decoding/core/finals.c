/* SPDX-License-Identifier: Apache-2.0
 * The end of a step: which hypotheses are kept, and which tokens are final (docs/decoding.md, sections 2 and 6). */
#include "search.h"

#include <stdlib.h>

static const double STEP_S = 0.06;
/* Times are whole steps but for their rounding, and so is a limit such as 0.3. */
static const double ROUNDING_S = 1e-6;

void gh_by_mean(const gh_search *search, int32_t *those, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        const int32_t one = those[i];
        int32_t at = i;
        for (; at > 0 && gh_mean(gh_at(search, those[at - 1])) < gh_mean(gh_at(search, one)); at--)
            those[at] = those[at - 1];
        those[at] = one;
    }
}

/* The `width` finished ones of the largest score, of equal ones the first, less those of too small a mean. */
static void keep(gh_search *search, gh_stream *stream)
{
    const gh_options *o = &search->options;
    int32_t count = 0;
    double most = 0.0;
    for (int32_t at = stream->finished.first, next; at != NONE; at = next) {
        next = gh_at(search, at)->next;
        const double score = gh_at(search, at)->score;
        int32_t place = count;
        while (place > 0 && gh_at(search, stream->kept[place - 1])->score < score)
            place--;
        if (place == o->width) {
            gh_discard(search, at);
            continue;
        }
        if (count == o->width)
            gh_discard(search, stream->kept[--count]);
        for (int32_t i = count; i > place; i--)
            stream->kept[i] = stream->kept[i - 1];
        stream->kept[place] = at;
        count++;
    }
    stream->finished.first = stream->finished.last = NONE;
    stream->kept_count = count;
    if (o->score_threshold < 0)
        return;
    double means[MOST_WIDTH];
    for (int32_t i = 0; i < count; i++) {
        means[i] = gh_mean(gh_at(search, stream->kept[i]));
        most = !i || means[i] > most ? means[i] : most;
    }
    stream->kept_count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (means[i] >= most - o->score_threshold)
            stream->kept[stream->kept_count++] = stream->kept[i];
        else
            gh_discard(search, stream->kept[i]);
    }
}

/* Whether all kept hypotheses go on with the same token. */
static int agreed(const gh_search *search, const gh_stream *stream)
{
    const gh_hypothesis *best = gh_at(search, stream->kept[0]);
    for (int32_t i = 0; i < stream->kept_count; i++) {
        const gh_hypothesis *one = gh_at(search, stream->kept[i]);
        if (one->first == NONE || one->first_id != best->first_id)
            return 0;
    }
    return 1;
}

/* Number of tokens that are common to the first kept hypothesis and another one. */
static int32_t common(const gh_search *search, const gh_hypothesis *a, const gh_hypothesis *b, int32_t finals)
{
    int32_t x = a->tail, y = b->tail, length = a->tokens < b->tokens ? a->tokens : b->tokens, found = length;
    for (int32_t n = a->tokens; n > length; n--)
        x = gh_token_at(search, x)->parent;
    for (int32_t n = b->tokens; n > length; n--)
        y = gh_token_at(search, y)->parent;
    for (; length > finals && x != y; length--) { /* behind a token that both share all is the same */
        const gh_token *s = gh_token_at(search, x), *t = gh_token_at(search, y);
        if (s->id != t->id)
            found = length - 1;
        x = s->parent;
        y = t->parent;
    }
    return found;
}

static int32_t ancestor(const gh_search *search, int32_t token, int32_t by)
{
    while (by-- > 0)
        token = gh_token_at(search, token)->parent;
    return token;
}

/* The first kept hypothesis' tokens up to number `until` go to the lane. */
static int hand_over(gh_search *search, const gh_stream *stream, gh_lane *lane, int32_t until)
{
    const gh_hypothesis *one = gh_at(search, stream->kept[0]);
    const int32_t count = until - stream->finals;
    if (lane->final_count + count > lane->final_room) {
        const int32_t room = 2 * (lane->final_count + count);
        gh_token *moved = realloc(lane->finals, (size_t)room * sizeof *moved);
        if (!moved)
            return -1;
        lane->finals = moved;
        lane->final_room = room;
        search->grown++;
    }
    int32_t token = ancestor(search, one->tail, one->tokens - until);
    for (int32_t i = count; i-- > 0; token = gh_token_at(search, token)->parent)
        lane->finals[lane->final_count + i] = *gh_token_at(search, token);
    lane->final_count += count;
    return 0;
}

/* What is final is let go of. */
static void cut(gh_search *search, gh_stream *stream, int32_t until)
{
    for (int32_t i = 0; i < stream->kept_count; i++) {
        gh_hypothesis *one = gh_at(search, stream->kept[i]);
        if (one->tokens == until) {
            gh_drop_tokens(search, one->tail);
            one->tail = one->first = NONE;
            continue;
        }
        one->first = ancestor(search, one->tail, one->tokens - until - 1);
        gh_token *first = gh_token_at(search, one->first);
        const int32_t parent = first->parent;
        one->first_id = first->id;
        first->parent = NONE;
        gh_drop_tokens(search, parent);
    }
    stream->finals = until;
}

/* Of the tokens that are not final the step of the earliest, NONE if there is none. */
static int32_t first_step(const gh_search *search, const gh_stream *stream)
{
    int32_t earliest = NONE;
    for (int32_t i = 0; i < stream->kept_count; i++) {
        const int32_t first = gh_at(search, stream->kept[i])->first;
        if (first != NONE && (earliest == NONE || gh_token_at(search, first)->step < earliest))
            earliest = gh_token_at(search, first)->step;
    }
    return earliest;
}

gh_fault gh_end_step(gh_search *search, gh_stream *stream, gh_lane *lane, gh_outcome *outcome)
{
    const double limit = search->options.final_limit;
    gh_discard_list(search, &stream->active);
    keep(search, stream);
    stream->steps++;
    stream->stage = BETWEEN;
    const double now = STEP_S * (stream->steps - 1);
    while (!agreed(search, stream) && stream->kept_count > 1 && limit >= 0 && now - stream->clock > limit + ROUNDING_S) {
        gh_by_mean(search, stream->kept, stream->kept_count);
        gh_discard(search, stream->kept[--stream->kept_count]);
    }
    outcome->first = lane->final_count;
    outcome->count = 0;
    if (agreed(search, stream)) {
        int32_t until = gh_at(search, stream->kept[0])->tokens;
        for (int32_t i = 1; i < stream->kept_count; i++) {
            const int32_t with = common(search, gh_at(search, stream->kept[0]), gh_at(search, stream->kept[i]), stream->finals);
            until = with < until ? with : until;
        }
        if (hand_over(search, stream, lane, until))
            return GH_MEMORY;
        outcome->count = until - stream->finals;
        cut(search, stream, until);
    }
    if (stream->kept_count == 1)
        stream->clock = now;
    else if (outcome->count) {
        const int32_t earliest = first_step(search, stream);
        stream->clock = earliest == NONE ? now : STEP_S * earliest;
    }
    return GH_FINE;
}
