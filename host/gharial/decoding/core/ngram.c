/* SPDX-License-Identifier: Apache-2.0
 * The score of a word behind a context, for both kinds of tables; hash tables.
 *
 * Sums are of single precision, from the longest n-gram that is there to the longest back-off, as KenLM makes them. */
#include "ngram.h"

#include <string.h>

static const uint64_t HASH = 0xC6A4A7935BD1E995, KEY = 0x7C9BA2733B63F585, WORD = 0xF8574E1221634907;
static const uint32_t SIGN = 0x80000000;
enum { WIDEST = 57, WIDEST_VALUE = 25 }; /* bits that can be read from a byte on; bits of a quantised value */

static uint64_t load64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static uint32_t load32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static float real(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A back-off of minus zero says that nothing begins with the n-gram: it need not be remembered. */
static int goes_on(float backoff)
{
    uint32_t bits;
    memcpy(&bits, &backoff, sizeof bits);
    return bits != SIGN;
}

static int inside(const gh_ngram *ngram, uint64_t at, uint64_t count, uint64_t unit)
{
    uint64_t bytes;
    return at <= ngram->size && !__builtin_mul_overflow(count, unit, &bytes) && bytes <= ngram->size - at;
}

static int trie_table_fits(const gh_ngram *n, const gh_ngram_table *t, int longest)
{
    const uint64_t values = n->prob_bits ? n->prob_bits + (longest ? 0 : n->backoff_bits) : longest ? 31 : 63;
    uint64_t bits;
    if (t->next_bits > WIDEST || t->next_at != n->word_bits + values || t->stride != t->next_at + t->next_bits || (longest && t->next_bits))
        return 0;
    /* One entry more, and eight bytes that the last read may run over into. */
    if (t->entries == UINT64_MAX || __builtin_mul_overflow(t->entries + 1, t->stride, &bits) || !inside(n, t->at, bits / 8 + 8, 1))
        return 0;
    if (n->prob_bits && (!inside(n, t->probs, (uint64_t)1 << n->prob_bits, 4) || !inside(n, t->backoffs, longest ? 0 : (uint64_t)1 << n->backoff_bits, 4)))
        return 0;
    return inside(n, t->high, t->high_count, 8) && (!t->high_count || t->next_bits + 1 < 64);
}

int gh_ngram_fits(gh_ngram *n)
{
    if (n->order < LEAST_ORDER || n->order > MOST_ORDER || !n->words || n->word_bits > WIDEST || n->prob_bits > WIDEST_VALUE ||
        n->backoff_bits > WIDEST_VALUE || !n->prob_bits != !n->backoff_bits)
        return 0;
    if (n->trie ? n->unigram_stride != 16 : n->unigram_stride != 8 && n->unigram_stride != 12)
        return 0;
    /* A trie's unigrams are one more: each range ends where the next one begins. */
    if (!inside(n, n->vocabulary, n->places, n->trie ? 8 : 12) || !inside(n, n->unigrams, (uint64_t)n->words + (n->trie ? 1 : 0), n->unigram_stride) ||
        (n->trie ? n->places >= n->words : !n->places))
        return 0;
    for (uint32_t i = 0; i + 1 < n->order; i++) {
        gh_ngram_table *t = &n->tables[i];
        const int longest = i + 2 == n->order;
        if (n->trie ? !trie_table_fits(n, t, longest) : t->stride != (longest ? 12u : 8u + n->unigram_stride) || !t->entries || !inside(n, t->at, t->entries, t->stride))
            return 0;
        t->inverse = t->entries > 1 ? (uint64_t)(((unsigned __int128)1 << 64) / t->entries) : 0;
    }
    return 1;
}

/* MurmurHash64A with seed 0. */
static uint64_t hash(const uint8_t *text, size_t length)
{
    uint64_t value = (uint64_t)length * HASH, last = 0;
    for (; length >= 8; text += 8, length -= 8) {
        const uint64_t mixed = load64(text) * HASH;
        value = (value ^ (mixed ^ mixed >> 47) * HASH) * HASH;
    }
    if (length) {
        memcpy(&last, text, length);
        value = (value ^ last) * HASH;
    }
    value = (value ^ value >> 47) * HASH;
    return value ^ value >> 47;
}

/* key modulo the table's places: the quotient by way of the inverse is right or one too small. */
static uint64_t first_place(const gh_ngram_table *table, uint64_t key)
{
    const uint64_t quotient = (uint64_t)((unsigned __int128)key * table->inverse >> 64), rest = key - quotient * table->entries;
    return table->entries > 1 ? rest < table->entries ? rest : rest - table->entries : 0;
}

/* The entry of a key, or NULL. */
static const uint8_t *found(const uint8_t *table, uint64_t places, uint32_t stride, uint64_t key, uint64_t place)
{
    for (uint64_t left = places; left; left--) {
        const uint8_t *entry = table + place * stride;
        const uint64_t there = load64(entry);
        if (there == key)
            return entry;
        if (!there)
            return NULL;
        place = place + 1 == places ? 0 : place + 1;
    }
    return NULL;
}

uint32_t gh_ngram_word(const gh_ngram *n, const uint8_t *text, size_t length)
{
    const uint64_t key = hash(text, length);
    const uint8_t *hashes = n->bytes + n->vocabulary;
    if (!n->trie) {
        const uint8_t *entry = found(hashes, n->places, 12, key, key % n->places);
        const uint32_t number = entry ? load32(entry + 8) : 0;
        return number < n->words ? number : 0;
    }
    uint64_t low = 0, high = n->places;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2, there = load64(hashes + 8 * middle);
        if (there == key)
            return (uint32_t)middle + 1;
        if (there < key)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* The key of an n-gram with one word more on its left. */
static uint64_t longer(uint64_t key, uint32_t word)
{
    return key * KEY ^ ((uint64_t)word + 1) * WORD;
}

void gh_ngram_begin(const gh_ngram *n, uint32_t word, gh_ngram_state *state)
{
    *state = (gh_ngram_state){.length = 1, .words = {word}};
    state->backoffs[0] = real(load32(n->bytes + n->unigrams + (uint64_t)word * n->unigram_stride + 4));
}

/* The probability without back-off, and how long the n-gram is that it is of. */
static float in_hashes(const gh_ngram *n, const gh_ngram_state *from, uint32_t word, gh_ngram_state *to, uint32_t *length)
{
    const uint8_t *entry = n->bytes + n->unigrams + (uint64_t)word * n->unigram_stride;
    uint32_t prob = load32(entry);
    uint64_t key = word;
    to->backoffs[0] = real(load32(entry + 4));
    to->length = goes_on(to->backoffs[0]);
    *length = 1;
    /* A sign says that no longer n-gram ends in this one. */
    for (uint32_t i = 0; i < from->length && !(prob & SIGN); i++) {
        const gh_ngram_table *table = &n->tables[i];
        key = longer(key, from->words[i]);
        entry = found(n->bytes + table->at, table->entries, table->stride, key, first_place(table, key));
        if (!entry)
            break;
        prob = load32(entry + 8);
        *length = i + 2;
        if (*length == n->order)
            return real(prob);
        to->backoffs[i + 1] = real(load32(entry + 12));
        if (goes_on(to->backoffs[i + 1]))
            to->length = *length;
    }
    return real(prob | SIGN);
}

static float in_trie(const gh_ngram *n, const gh_ngram_state *from, uint32_t word, gh_ngram_state *to, uint32_t *length)
{
    float prob;
    gh_ngram_range range = gh_trie_unigram(n, word, &prob, &to->backoffs[0]);
    to->length = goes_on(to->backoffs[0]);
    *length = 1;
    for (uint32_t i = 0; i < from->length && range.begin != range.end; i++) {
        float backoff = 0.0f;
        if (!gh_trie_find(n, i, from->words[i], &range, &prob, &backoff))
            break;
        *length = i + 2;
        if (*length == n->order)
            break;
        to->backoffs[i + 1] = backoff;
        if (goes_on(backoff))
            to->length = *length;
    }
    return prob;
}

float gh_ngram_score(const gh_ngram *n, const gh_ngram_state *from, uint32_t word, gh_ngram_state *to)
{
    uint32_t length;
    float total = n->trie ? in_trie(n, from, word, to, &length) : in_hashes(n, from, word, to, &length);
    for (uint32_t i = length - 1; i < from->length; i++)
        total += from->backoffs[i];
    to->words[0] = word;
    for (uint32_t i = 1; i < to->length; i++)
        to->words[i] = from->words[i - 1];
    return total;
}

void gh_ngram_prefetch(const gh_ngram *n, const gh_ngram_state *from, uint32_t word)
{
    uint64_t key = word;
    __builtin_prefetch(n->bytes + n->unigrams + (uint64_t)word * n->unigram_stride);
    for (uint32_t i = 0; !n->trie && i < from->length; i++) {
        const gh_ngram_table *table = &n->tables[i];
        key = longer(key, from->words[i]);
        const uint8_t *entry = n->bytes + table->at + first_place(table, key) * table->stride;
        __builtin_prefetch(entry);

    }
}
