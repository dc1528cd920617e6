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

/* Whether one of the first `at` classes listed is that one. */
static int listed_before(const uint8_t *listed, int32_t at, uint32_t class)
{
    for (int32_t i = 0; i < at; i++)
        if (word(listed + 4 * i) >> 16 == class)
            return 1;
    return 0;
}

/* Whether these are k classes that there are, once each, their logits falling and the lower class first where two are equal. */
static inline gh_fault check(const uint8_t *listed, int32_t k, uint32_t classes)
{
    uint64_t seen = 0; /* classes modulo 64: only where one is there already can a class be there twice */
    int64_t before = INT64_MAX;
    for (int32_t i = 0; i < k; i++) {
        const uint32_t both = word(listed + 4 * i), class = both >> 16;
        const uint64_t bit = (uint64_t)1 << class % 64;
        const int32_t rank = (int32_t)(both << 16 | (class ^ 0xFFFF)); /* falls where logits do, and where classes rise behind equal ones */
        if (class >= classes || (seen & bit && listed_before(listed, i, class)))
            return GH_CLASS;
        if (rank > before)
            return GH_ORDER;
        seen |= bit;
        before = rank;
    }
    return GH_FINE;
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
    }
    return check(result + RESULT_HEAD, k, (uint32_t)o->classes);
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

/* A list of which nothing but blank is named, and no probability is changed: it is in order already, and is read where it lies. */
static gh_fault read_list(const gh_search *search, const uint8_t *result, int only_blank, gh_evaluation *out)
{
    const gh_options *o = &search->options;
    const int32_t k = o->listed, width = o->width, blank = o->blank;
    const uint8_t *listed = result + RESULT_HEAD;
    const double scale = search->scale, lse = (int32_t)word(result) * 0x1p-16;
    if ((int32_t)(word(result + 12) & 0xFFFF) != k)
        return GH_COUNT;
    const gh_fault fault = check(listed, k, (uint32_t)o->classes);
    if (fault)
        return fault;
    const double highest = signed16(listed) * scale;
    if (cannot_be(lse, highest, search->most_lse))
        return GH_LSE;
    const int32_t logit = signed16(result + 4);
    int32_t place = 0;
    while (place < k && (int32_t)(word(listed + 4 * place) >> 16) != blank)
        place++;
    if (place == k ? logit > signed16(listed + 4 * (k - 1)) : signed16(listed + 4 * place) != logit)
        return GH_NAMED;
    out->blank = logit * scale - lse;
    if (only_blank)
        return GH_FINE;
    const double least = o->topk_threshold >= 0 ? highest - lse - o->topk_threshold : -INFINITY;
    int32_t count = k < width ? k : width;
    /* Blank may belong before the last one, which then is one too many. */
    if (place == k && count == width && signed16(listed + 4 * (width - 1)) == logit && blank < (int32_t)(word(listed + 4 * (width - 1)) >> 16))
        count--;
    for (int32_t i = 0; i < count; i++) {
        const uint32_t both = word(listed + 4 * i);
        const double log_p = (int16_t)(both & 0xFFFF) * scale - lse;
        if (!(log_p >= least))
            break;
        if (i != place)
            put(out, (int32_t)(both >> 16), log_p);
    }
    return GH_FINE;
}

/* The others. */
static gh_fault read_any(const gh_search *search, const uint8_t *result, int only_blank, gh_evaluation *out)
{
    const gh_options *o = &search->options;
    const double lse = (int32_t)word(result) * 0x1p-16;
    int32_t classes[MOST_LISTED], logits[MOST_LISTED], blank = NONE, eos = NONE, count = o->listed;
    item items[MOST_LISTED + MOST_NAMED];
    const gh_fault fault = list(o, result, classes, logits);
    if (fault)
        return fault;
    if (cannot_be(lse, logits[0] * search->scale, search->most_lse))
        return GH_LSE;
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

gh_fault gh_read(const gh_search *search, const uint8_t *result, int only_blank, gh_evaluation *out)
{
    const gh_options *o = &search->options;
    out->count = 0;
    if (o->blank_penalty == 0.0 && o->eos_token == NONE && o->mode != MODE_ALL)
        return read_list(search, result, only_blank, out);
    return read_any(search, result, only_blank, out);
}
