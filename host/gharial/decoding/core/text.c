/* SPDX-License-Identifier: Apache-2.0
 * Texts of hypotheses as hashes, and the way of keyword threads.
 *
 * Two texts count as the same if two polynomial hashes modulo 2^61 - 1 agree: of texts of a million letters two different ones do so
 * by chance about once in 10^24. */
#include "search.h"

#include <stdlib.h>

static const uint64_t PRIME = ((uint64_t)1 << 61) - 1;
static const uint64_t FACTORS[2] = {0x0F1E2D3C4B5A6979, 0x165667B19E3779F9};
enum { WORD_MARK = 0x2581 };

static uint64_t times(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    const uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    const uint64_t sum = a + b;
    return sum >= PRIME ? sum - PRIME : sum;
}

static gh_append appended(const uint32_t *letters, uint32_t count, int behind_mark)
{
    gh_append one = {{1, 1}, {0, 0}, 0, (uint8_t)behind_mark};
    for (uint32_t i = 0; i < count; i++) {
        const int mark = letters[i] == WORD_MARK;
        if (mark && one.ends_with_mark)
            continue;
        for (int j = 0; j < 2; j++) {
            one.factor[j] = times(one.factor[j], FACTORS[j]);
            one.sum[j] = plus(times(one.sum[j], FACTORS[j]), letters[i] + 1);
        }
        one.letters = 1;
        one.ends_with_mark = (uint8_t)mark;
    }
    return one;
}

int gh_set_pieces(gh_search *search, const uint32_t *letters, const int32_t *ends, const uint8_t *scored)
{
    const int32_t count = search->options.classes;
    const uint32_t total = (uint32_t)ends[count - 1];
    search->pieces = calloc((size_t)count, sizeof *search->pieces);
    search->letters = malloc((total + 1) * sizeof *search->letters);
    if (!search->pieces || !search->letters)
        return -1;
    for (uint32_t i = 0; i < total; i++)
        search->letters[i] = letters[i];
    for (int32_t token = 0; token < count; token++) {
        gh_piece *piece = &search->pieces[token];
        piece->first = token ? (uint32_t)ends[token - 1] : 0;
        piece->letters = (uint32_t)ends[token] - piece->first;
        piece->whole = appended(letters + piece->first, piece->letters, 0);
        piece->behind_mark = appended(letters + piece->first, piece->letters, 1);
        piece->scored = scored[token];
    }
    return 0;
}

void gh_extend_text(const gh_search *search, gh_hypothesis *one, int32_t token)
{
    const gh_piece *piece = &search->pieces[token];
    const int behind = one->ends_with_mark || (!one->any_text && search->options.merge_lone_marks);
    const gh_append *append = behind ? &piece->behind_mark : &piece->whole;
    if (!append->letters)
        return;
    for (int j = 0; j < 2; j++)
        one->text[j] = plus(times(one->text[j], append->factor[j]), append->sum[j]);
    one->any_text = 1;
    one->ends_with_mark = append->ends_with_mark;
}

static int32_t following(const gh_trie *trie, int32_t node, uint32_t letter)
{
    int32_t low = trie->first[node], high = trie->first[node + 1];
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (trie->letters[middle] < letter)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trie->first[node + 1] && trie->letters[low] == letter ? trie->targets[low] : NONE;
}

double gh_extend_keywords(const gh_search *search, const gh_trie *trie, int32_t *node, int32_t token)
{
    const gh_piece *piece = &search->pieces[token];
    double total = 0.0;
    for (uint32_t i = 0; i < piece->letters; i++) {
        const uint32_t letter = search->letters[piece->first + i];
        double delta = 0.0;
        int32_t longest = NONE;
        /* The live threads are the suffixes of the text that the trie has, the longest one the oldest; each either goes on or gives back. */
        for (int32_t thread = *node;; thread = trie->suffix[thread]) {
            const int32_t next = following(trie, thread, letter);
            if (next == NONE)
                delta -= trie->at_risk[thread];
            else {
                delta += trie->gain[next];
                longest = longest == NONE ? next : longest;
            }
            if (!thread)
                break;
        }
        *node = longest == NONE ? 0 : longest;
        total += delta;
    }
    return total;
}

void gh_trie_free(gh_trie *trie)
{
    if (!trie)
        return;
    free(trie->first);
    free(trie->letters);
    free(trie->targets);
    free(trie->suffix);
    free(trie->gain);
    free(trie->at_risk);
    free(trie);
}
