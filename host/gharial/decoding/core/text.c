/* SPDX-License-Identifier: Apache-2.0
 * Texts of hypotheses as hashes, and the way of keyword threads.
 *
 * Two texts count as the same if two polynomial hashes modulo 2^61 - 1 agree: of texts of a million letters two different ones do so
 * by chance about once in 10^24. */
#include "search.h"

#include <stdlib.h>
#include <string.h>

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

static gh_append appended(const uint32_t *letters, uint32_t count, int mark, uint8_t *flags)
{
    gh_append one = {{1, 1}, {0, 0}};
    *flags = 0;
    for (uint32_t i = 0; i < count; i++) {
        const int after_mark = mark;
        mark = letters[i] == WORD_MARK;
        if (mark && after_mark)
            continue;
        for (int j = 0; j < 2; j++) {
            one.factor[j] = times(one.factor[j], FACTORS[j]);
            one.sum[j] = plus(times(one.sum[j], FACTORS[j]), letters[i] + 1);
        }
        *flags = ADDS;
    }
    *flags |= mark ? ENDS_WITH_MARK : 0;
    return one;
}

int gh_set_pieces(gh_search *search, const uint32_t *letters, const int32_t *ends, const uint8_t *scored, const uint32_t *words)
{
    const size_t count = (size_t)search->options.classes, total = (size_t)ends[count - 1];
    search->letters_at = malloc((count + 1) * sizeof *search->letters_at);
    search->letters = malloc((total + 1) * sizeof *search->letters);
    if (!search->letters_at || !search->letters)
        return -1;
    memcpy(search->letters, letters, total * sizeof *letters);
    search->letters_at[0] = 0;
    for (size_t token = 0; token < count; token++) {
        const uint32_t first = token ? (uint32_t)ends[token - 1] : 0, length = (uint32_t)ends[token] - first;
        uint8_t whole, behind;
        search->letters_at[token + 1] = (uint32_t)ends[token];
        search->pieces[token].whole = appended(letters + first, length, 0, &whole);
        search->pieces[token].behind_mark = appended(letters + first, length, 1, &behind);
        search->piece_flags[token] = (uint8_t)(whole | behind << BEHIND_MARK);
        search->words[token] = !scored[token] ? (uint32_t)NOT_SCORED : search->ngram ? words[token] : 0;
    }
    return 0;
}

void gh_extend_text(const gh_search *search, gh_hypothesis *one, int32_t token)
{
    const gh_piece *piece = &search->pieces[token];
    const int behind = one->ends_with_mark || (!one->any_text && search->options.merge_lone_marks);
    const gh_append *append = behind ? &piece->behind_mark : &piece->whole;
    const uint8_t flags = (uint8_t)(search->piece_flags[token] >> (behind ? BEHIND_MARK : 0));
    if (!(flags & ADDS))
        return;
    for (int j = 0; j < 2; j++)
        one->text[j] = plus(times(one->text[j], append->factor[j]), append->sum[j]);
    one->any_text = 1;
    one->ends_with_mark = (flags & ENDS_WITH_MARK) != 0;
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
    double total = 0.0;
    for (uint32_t i = search->letters_at[token]; i < search->letters_at[token + 1]; i++) {
        const uint32_t letter = search->letters[i];
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
