/* SPDX-License-Identifier: Apache-2.0
 * Counted items by number. */
#include "pool.h"

#include <stdlib.h>

enum { MOST = 1 << 30 };

static int resize(gh_pool *pool, uint32_t capacity)
{
    void *moved = pool->size ? realloc(pool->items, (size_t)capacity * pool->size) : NULL;
    if (pool->size && !moved)
        return -1;
    pool->items = moved;
    if (!(moved = realloc(pool->holders, (size_t)capacity * sizeof *pool->holders)))
        return -1;
    pool->holders = moved;
    if (!(moved = realloc(pool->unused, (size_t)capacity * sizeof *pool->unused)))
        return -1;
    pool->unused = moved;
    for (uint32_t item = capacity; item-- > pool->capacity;) { /* the lowest number comes first */
        pool->holders[item] = 0;
        pool->unused[pool->free++] = (int32_t)item;
    }
    pool->capacity = capacity;
    return 0;
}

int gh_pool_init(gh_pool *pool, size_t size, uint32_t capacity, int grows)
{
    pool->size = size;
    pool->grows = grows;
    return resize(pool, capacity ? capacity : 1);
}

void gh_pool_clear(gh_pool *pool)
{
    free(pool->items);
    free(pool->holders);
    free(pool->unused);
    *pool = (gh_pool){0};
}

int32_t gh_pool_take(gh_pool *pool)
{
    if (!pool->free && (!pool->grows || pool->capacity >= MOST || resize(pool, pool->capacity * 2)))
        return -1;
    const int32_t item = pool->unused[--pool->free];
    pool->holders[item] = 1;
    return item;
}

int gh_pool_drop(gh_pool *pool, int32_t item)
{
    if (--pool->holders[item])
        return 0;
    pool->unused[pool->free++] = item;
    return 1;
}
