/* SPDX-License-Identifier: Apache-2.0
 * N-grams in a trie: arrays packed by the bit, sorted by the word on the left, each entry with a pointer to where its
 * own longer ones begin. Values are single precision, or numbers of a table of such (quantised). */
#include "ngram.h"

#include <string.h>

static uint64_t load64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static float load_real(const uint8_t *from)
{
    float value;
    memcpy(&value, from, sizeof value);
    return value;
}

static float real(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

/* At most 57 bits. */
static uint64_t bits_at(const gh_ngram *n, const gh_ngram_table *t, uint64_t bit, uint32_t count)
{
    return load64(n->bytes + t->at + bit / 8) >> bit % 8 & (((uint64_t)1 << count) - 1);
}

static gh_ngram_range within(uint64_t begin, uint64_t end, uint64_t entries)
{
    end = end < entries ? end : entries;
    return (gh_ngram_range){begin < end ? begin : end, end};
}

gh_ngram_range gh_trie_unigram(const gh_ngram *n, uint32_t word, float *prob, float *backoff)
{
    const uint8_t *entry = n->bytes + n->unigrams + (uint64_t)word * 16;
    *prob = load_real(entry);
    *backoff = load_real(entry + 4);
    return within(load64(entry + 8), load64(entry + 24), n->tables[0].entries);
}

/* How many of the list's n-grams are not behind this one, less one: the high bits of its pointer. */
static uint64_t high_bits(const gh_ngram *n, const gh_ngram_table *t, uint64_t index)
{
    uint64_t low = 0, high = t->high_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (load64(n->bytes + t->high + 8 * middle) <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : 0;
}

static uint64_t pointer(const gh_ngram *n, const gh_ngram_table *t, uint64_t index)
{
    const uint64_t low = bits_at(n, t, index * t->stride + t->next_at, t->next_bits);
    return t->high_count ? high_bits(n, t, index) << t->next_bits | low : low;
}

int gh_trie_find(const gh_ngram *n, uint32_t below, uint32_t word, gh_ngram_range *range, float *prob, float *backoff)
{
    const gh_ngram_table *t = &n->tables[below];
    const int longest = below + 2 == n->order;
    uint64_t low = range->begin, high = range->end, at = 0;
    int there = 0;
    while (low < high && !there) {
        at = low + (high - low) / 2;
        const uint64_t value = bits_at(n, t, at * t->stride, n->word_bits);
        there = value == word;
        if (value < word)
            low = at + 1;
        else
            high = at;
    }
    if (!there)
        return 0;
    const uint64_t values = at * t->stride + n->word_bits;
    if (!n->prob_bits) {
        *prob = real(bits_at(n, t, values, 31) | 0x80000000);
        *backoff = longest ? 0.0f : real(bits_at(n, t, values + 31, 32));
    } else {
        const uint32_t backoff_bits = longest ? 0 : n->backoff_bits;
        *prob = load_real(n->bytes + t->probs + 4 * bits_at(n, t, values + backoff_bits, n->prob_bits));
        *backoff = longest ? 0.0f : load_real(n->bytes + t->backoffs + 4 * bits_at(n, t, values, backoff_bits));
    }
    if (!longest)
        *range = within(pointer(n, t, at), pointer(n, t, at + 1), n->tables[below + 1].entries);
    return 1;
}
