/* SPDX-License-Identifier: Apache-2.0
 * Largest logits: argmax, top-k, fuzzy top-k. Equal logits come in the order of their classes. */
#include "engine.h"

static GH_CLONES int16_t largest(const int16_t *logits, uint32_t count)
{
    int16_t best = INT16_MIN;
    for (uint32_t i = 0; i < count; i++)
        best = logits[i] > best ? logits[i] : best;
    return best;
}

uint32_t gh_argmax(const int16_t *logits, uint32_t count)
{
    const int16_t best = largest(logits, count);
    uint32_t i = 0;
    while (logits[i] != best)
        i++;
    return i;
}

void gh_top_k(const int16_t *logits, uint32_t count, uint32_t k, uint32_t *index)
{
    enum { RUN = 128 }; /* classes looked at in one go: once the list is good, most runs hold nothing for it */
    int16_t value[GH_MAX_K];
    uint32_t held = 0;
    for (uint32_t start = 0; start < count; start += RUN) {
        const uint32_t end = count - start < RUN ? count : start + RUN;
        if (held == k && largest(logits + start, end - start) <= value[k - 1])
            continue;
        for (uint32_t i = start; i < end; i++) {
            if (held == k && logits[i] <= value[k - 1])
                continue;
            uint32_t at = held < k ? held++ : k - 1;
            for (; at > 0 && value[at - 1] < logits[i]; at--) {
                value[at] = value[at - 1];
                index[at] = index[at - 1];
            }
            value[at] = logits[i];
            index[at] = i;
        }
    }
}

uint32_t gh_fuzzy(gh_engine *engine, int16_t *logits, uint32_t classes)
{
    enum { LANES = 32, DEEP = 8, BLOCK = LANES * DEEP };
    int16_t smallest = INT16_MAX;
    uint32_t survivors = 0;
    for (uint32_t start = 0; start < classes; start += BLOCK) {
        uint8_t deep[LANES] = {0};
        int16_t best[LANES];
        memcpy(best, logits + start, sizeof best);
        for (uint8_t d = 1; d < DEEP; d++)
            for (int lane = 0; lane < LANES; lane++)
                if (logits[start + d * LANES + lane] > best[lane]) {
                    best[lane] = logits[start + d * LANES + lane];
                    deep[lane] = d;
                }
        for (uint8_t d = 0; d < DEEP; d++)
            for (int lane = 0; lane < LANES; lane++)
                if (deep[lane] == d) {
                    engine->order[survivors] = (uint16_t)(start + d * LANES + lane);
                    engine->survivors[survivors++] = best[lane];
                    smallest = best[lane] < smallest ? best[lane] : smallest;
                }
    }
    for (uint32_t i = 0; i < classes; i++)
        logits[i] = smallest;
    for (uint32_t i = 0; i < survivors; i++)
        logits[engine->order[i]] = engine->survivors[i];
    return survivors;
}
