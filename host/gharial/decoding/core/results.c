/* SPDX-License-Identifier: Apache-2.0
 * Candidates from a DECODE result (docs/isa.md, section 5; docs/decoding.md, section 3). Results are not trusted. */
#include "search.h"

#include <math.h>

/* The device's log-sum-exp is within 0.0014 of the exact one (docs/numerics.md, section 8). */
static const double SLACK = 0.01;

typedef struct {
    int32_t token;
    double log_p;
} item;

static int32_t signed16(const uint8_t *bytes)
{
    return (int16_t)(bytes[0] | bytes[1] << 8);
}

static uint32_t word(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

int32_t gh_result_bytes(const gh_options *options)
{
    return RESULT_HEAD + (options->mode == MODE_ALL ? (2 * options->classes + 3) / 4 * 4 : 4 * options->listed);
}

/* The k classes of the largest logits of them all, the lower class first where two are equal. */
static void choose(const uint8_t *logits, int32_t classes, int32_t k, int32_t *chosen, int32_t *values)
{
    int32_t count = 0, least = INT32_MIN;
    for (int32_t class = 0; class < classes; class++) {
        const int32_t value = signed16(logits + 2 * class);
        if (value <= least)
            continue;
        int32_t at = count < k ? count++ : k - 1;
        for (; at > 0 && values[at - 1] < value; at--) {
            values[at] = values[at - 1];
            chosen[at] = chosen[at - 1];
        }
        values[at] = value;
        chosen[at] = class;
        if (count == k)
            least = values[k - 1];
    }
}

/* Classes and logits of the list, checked. */
static gh_fault list(const gh_options *o, const uint8_t *result, int32_t *classes, int32_t *logits)
{
    const int32_t entries = (int32_t)(word(result + 12) & 0xFFFF), k = o->listed;
    if (entries != (o->mode == MODE_ALL ? o->classes : k))
        return GH_COUNT;
    if (o->mode == MODE_ALL) {
        choose(result + RESULT_HEAD, o->classes, k, classes, logits);
        return signed16(result + RESULT_HEAD + 2 * o->blank) == signed16(result + 4) ? GH_FINE : GH_NAMED;
    }
    for (int32_t i = 0; i < k; i++) {
        const uint32_t both = word(result + RESULT_HEAD + 4 * i);
        classes[i] = (int32_t)(both >> 16);
        logits[i] = (int16_t)(both & 0xFFFF);
        if (classes[i] >= o->classes)
            return GH_CLASS;
        for (int32_t j = 0; j < i; j++)
            if (classes[j] == classes[i])
                return GH_CLASS;
        if (i && (logits[i] > logits[i - 1] || (logits[i] == logits[i - 1] && classes[i] < classes[i - 1])))
            return GH_ORDER;
    }
    return GH_FINE;
}

static void apply_penalty(double penalty, int32_t blank, double log_blank, item *items, int32_t count)
{
    const double rest = log1p(expm1(-penalty) * exp(log_blank < 0.0 ? log_blank : 0.0));
    for (int32_t i = 0; i < count; i++)
        items[i].log_p = items[i].log_p - rest - (items[i].token == blank ? penalty : 0.0);
}

static void apply_eos(const gh_options *o, item *blank, item *eos)
{
    const double own = eos->log_p, scaled = o->alpha * own;
    if (o->eos == EOS_BLANK)
        blank->log_p = gh_log_add(blank->log_p, own);
    if (o->eos == EOS_PREDICT)
        eos->log_p = scaled > o->least ? scaled : -INFINITY;
    else if (o->eos != EOS_NONE)
        eos->log_p = -INFINITY;
}

/* Whether a log-sum-exp cannot be that of logits of which the largest is `top`. */
static int cannot_be(double lse, double top, double most)
{
    return !(lse >= top - SLACK && lse <= top + most + SLACK);
}

static void put(gh_evaluation *out, int32_t token, double log_p)
{
    out->candidates[out->count++] = (gh_candidate){token, NONE, log_p, 0.0};
}

/* Nothing but blank is named, and no probability is changed: the list is in order already. */
static gh_fault read_list(const gh_search *search, const int32_t *classes, const int32_t *logits, int32_t logit, double lse, int only_blank,
                          gh_evaluation *out)
{
    const gh_options *o = &search->options;
    const double scale = search->scale, top = logits[0] * scale - lse;
    const double least = o->topk_threshold >= 0 ? top - o->topk_threshold : -INFINITY;
    int32_t blank = NONE;
    for (int32_t i = 0; i < o->listed; i++)
        blank = classes[i] == o->blank ? i : blank;
    if (blank == NONE ? logit > logits[o->listed - 1] : logits[blank] != logit)
        return GH_NAMED;
    out->blank = logit * scale - lse;
    for (int32_t i = 0; i < o->listed && !only_blank; i++) {
        const double log_p = logits[i] * scale - lse;
        /* Blank may belong before the last one, which then is one too many. */
        const int before = blank == NONE && logit == logits[i] && o->blank < classes[i];
        if (!(log_p >= least) || i + before == o->width)
            break;
        if (i != blank)
            put(out, classes[i], log_p);
    }
    return GH_FINE;
}

gh_fault gh_read(const gh_search *search, const uint8_t *result, int only_blank, gh_evaluation *out)
{
    const gh_options *o = &search->options;
    const double lse = (int32_t)word(result) * 0x1p-16;
    int32_t classes[MOST_LISTED], logits[MOST_LISTED], blank = NONE, eos = NONE, count = o->listed;
    item items[MOST_LISTED + MOST_NAMED];
    out->count = 0;
    const gh_fault fault = list(o, result, classes, logits);
    if (fault)
        return fault;
    if (cannot_be(lse, logits[0] * search->scale, search->most_lse))
        return GH_LSE;
    if (o->blank_penalty == 0.0 && o->eos_token == NONE)
        return read_list(search, classes, logits, signed16(result + 4), lse, only_blank, out);
    for (int32_t i = 0; i < count; i++) {
        items[i] = (item){classes[i], logits[i] * search->scale - lse};
        blank = classes[i] == o->blank ? i : blank;
        eos = classes[i] == o->eos_token ? i : eos;
    }
    const int32_t named[MOST_NAMED] = {o->blank, o->eos_token};
    for (int32_t n = 0; n < MOST_NAMED && named[n] != NONE; n++) {
        const int32_t logit = signed16(result + 4 + 2 * n);
        int32_t *at = n ? &eos : &blank;
        if (*at == NONE) {
            *at = count;
            if (logit > logits[o->listed - 1])
                return GH_NAMED;
            items[count++] = (item){named[n], logit * search->scale - lse};
        } else if (logits[*at] != logit)
            return GH_NAMED;
    }
    if (o->blank_penalty != 0.0)
        apply_penalty(o->blank_penalty, o->blank, items[blank].log_p, items, count);
    if (eos != NONE)
        apply_eos(o, &items[blank], &items[eos]);
    out->blank = items[blank].log_p;
    if (only_blank)
        return GH_FINE;
    for (int32_t i = 1; i < count; i++) { /* nearly in order already */
        const item one = items[i];
        int32_t at = i;
        for (; at > 0 && (items[at - 1].log_p < one.log_p || (items[at - 1].log_p == one.log_p && items[at - 1].token > one.token)); at--)
            items[at] = items[at - 1];
        items[at] = one;
    }
    const double least = o->topk_threshold >= 0 ? items[0].log_p - o->topk_threshold : -INFINITY;
    for (int32_t i = 0; i < count && i < o->width; i++) {
        if (!(items[i].log_p >= least) || items[i].log_p == -INFINITY)
            break;
        if (items[i].token != o->blank)
            put(out, items[i].token, items[i].log_p);
    }
    return GH_FINE;
}
