/* SPDX-License-Identifier: Apache-2.0
 * A search's memory in one piece, so that a few large pages hold all of it: between two steps of a stream others' code and data take the
 * processor's table of pages as well as its caches. */
#ifndef GHARIAL_MEMORY_H
#define GHARIAL_MEMORY_H

#include <stddef.h>

enum { LINE = 64 };

/* Laid out twice: without a base to find out how much is used, then for good. */
typedef struct {
    char *base;
    size_t used;
} gh_memory;

/* So many bytes from a cache line's begin on, not initialised; NULL without a base. */
static inline void *gh_take(gh_memory *memory, size_t bytes)
{
    const size_t at = memory->used;
    memory->used += (bytes + LINE - 1) / LINE * LINE;
    return memory->base ? memory->base + at : NULL;
}

/* Memory from a cache line's begin on, in large pages if it is much and the system has them; for free(). NULL if there is none. */
void *gh_aligned(size_t bytes);

#endif
