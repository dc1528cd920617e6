/* SPDX-License-Identifier: Apache-2.0
 * Scores of an n-gram straight from the bytes of a KenLM binary (docs/ngram.md).
 *
 * The bytes are not trusted: every table lies inside them (gh_ngram_fits), and a number that is read is held against the
 * table that it leads into, so that whatever they say nothing outside is read and every search ends. */
#ifndef GHARIAL_NGRAM_H
#define GHARIAL_NGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_ORDER = 6, LEAST_ORDER = 2 };

/* N-grams of one order from 2 on: a hash table, or an array packed by the bit. */
typedef struct {
    uint64_t at, entries;     /* offset; places of the hash table, or n-grams of the array */
    uint64_t inverse;         /* 2^64 / places, rounded down: set by gh_ngram_fits */
    uint32_t stride;          /* of an entry: bytes, or bits */
    uint32_t next_at;         /* trie: bits before the pointer to the next order's n-grams */
    uint32_t next_bits;       /* trie: of that pointer, 0 in the longest order */
    uint64_t high, high_count; /* trie: list of the n-grams at which the pointers' high bits rise; count 0: there is none */
    uint64_t probs, backoffs; /* quantised trie: offsets of the values */
} gh_ngram_table;

typedef struct {
    const uint8_t *bytes;
    uint64_t size;
    uint32_t order, words;      /* words: their numbers are below it; 0 is the unknown word */
    int trie;
    uint64_t vocabulary, places; /* offset; places of the hash table, or hashes in rising order */
    uint64_t unigrams;
    uint32_t unigram_stride;
    uint32_t word_bits, prob_bits, backoff_bits; /* trie: of a word; of values where they are quantised, else 0 */
    gh_ngram_table tables[MOST_ORDER - 1];
} gh_ngram;

/* The context that matters for what follows, the last word first, and the back-off of each of its lengths. */
typedef struct {
    uint32_t length;
    uint32_t words[MOST_ORDER - 1];
    float backoffs[MOST_ORDER - 1];
} gh_ngram_state;

/* Whether all tables lie inside the bytes, and all widths are ones that can be read. Makes it ready. */
int gh_ngram_fits(gh_ngram *ngram);

/* The number of a word, 0 if it is unknown. */
uint32_t gh_ngram_word(const gh_ngram *ngram, const uint8_t *text, size_t length);

/* The context of one word without anything before it. */
void gh_ngram_begin(const gh_ngram *ngram, uint32_t word, gh_ngram_state *state);

/* log10 p(word | from), the context behind it to `to`. `word` and the words of `from` are below `words`. */
float gh_ngram_score(const gh_ngram *ngram, const gh_ngram_state *from, uint32_t word, gh_ngram_state *to);

/* Have what that will read brought near. */
void gh_ngram_prefetch(const gh_ngram *ngram, const gh_ngram_state *from, uint32_t word);

/* ngram_trie.c: n-grams of a trie one word longer to the left. A node is a range of n-grams of the next order. */
typedef struct {
    uint64_t begin, end;
} gh_ngram_range;

gh_ngram_range gh_trie_unigram(const gh_ngram *ngram, uint32_t word, float *prob, float *backoff);

/* Whether the n-gram is there; its values, and its range to `range`. */
int gh_trie_find(const gh_ngram *ngram, uint32_t below, uint32_t word, gh_ngram_range *range, float *prob, float *backoff);

#endif
