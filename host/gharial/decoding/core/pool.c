/* SPDX-License-Identifier: Apache-2.0
 * The memory of pools. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 30 };

/* `bytes` from a cache line's begin on, with what `old` has; NULL without memory, and `old` is as it was. */
static char *moved(char *old, size_t old_bytes, size_t bytes)
{
    char *new = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    if (new && old)
        memcpy(new, old, old_bytes);
    if (new)
        free(old);
    return new;
}

static int resize(gh_pool *pool, uint32_t capacity)
{
    if (pool->size) {
        char *items = moved(pool->items, (size_t)pool->capacity * pool->size, (size_t)capacity * pool->size);
        if (!items)
            return -1;
        pool->items = items;
    }
    if (pool->holder_at == APART) {
        char *holders = realloc(pool->holders, (size_t)capacity * sizeof(uint32_t));
        if (!holders)
            return -1;
        pool->holders = holders;
        pool->holder_stride = sizeof(uint32_t);
    } else if (pool->holder_at != ONE_OWNER) {
        pool->holders = pool->items + pool->holder_at;
        pool->holder_stride = pool->size;
    }
    int32_t *unused = realloc(pool->unused, (size_t)capacity * sizeof *unused);
    if (!unused)
        return -1;
    pool->unused = unused;
    for (uint32_t item = capacity; item-- > pool->capacity;) /* the lowest number comes first */
        pool->unused[pool->free++] = (int32_t)item;
    pool->capacity = capacity;
    return 0;
}

int gh_pool_init(gh_pool *pool, size_t size, int holder_at, uint32_t capacity, int grows)
{
    pool->size = size;
    pool->holder_at = holder_at;
    pool->grows = grows;
    return resize(pool, capacity ? capacity : 1);
}

void gh_pool_clear(gh_pool *pool)
{
    free(pool->items);
    if (pool->holder_at == APART)
        free(pool->holders);
    free(pool->unused);
    *pool = (gh_pool){0};
}

int gh_pool_grow(gh_pool *pool)
{
    if (!pool->grows || pool->capacity >= MOST || resize(pool, pool->capacity * 2))
        return -1;
    pool->grown++;
    return 0;
}
