/* SPDX-License-Identifier: Apache-2.0
 * The memory of pools. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 30 };

static void free_items(gh_pool *pool, uint32_t from)
{
    for (uint32_t item = pool->capacity; item-- > from;) /* the lowest number comes first */
        pool->unused[pool->free++] = (int32_t)item;
}

/* Where the holders are of a pool with these items, or with this array of holders. */
static void find_holders(gh_pool *pool, char *apart)
{
    pool->holders = pool->holder_at == APART ? apart : pool->holder_at == ONE_OWNER ? NULL : pool->items + pool->holder_at;
    pool->holder_stride = pool->holder_at == APART ? sizeof(uint32_t) : pool->size;
}

void gh_pool_init(gh_pool *pool, gh_memory *memory, size_t size, int holder_at, uint32_t capacity, int grows)
{
    capacity = capacity ? capacity : 1;
    *pool = (gh_pool){.size = size, .holder_at = holder_at, .capacity = capacity, .grows = grows};
    pool->items = gh_take(memory, (size_t)capacity * size);
    char *apart = gh_take(memory, holder_at == APART ? (size_t)capacity * sizeof(uint32_t) : 0);
    pool->unused = gh_take(memory, (size_t)capacity * sizeof *pool->unused);
    if (!memory->base)
        return;
    find_holders(pool, apart);
    free_items(pool, 0);
}

static void let_go(const gh_pool *pool)
{
    free(pool->items);
    if (pool->holder_at == APART)
        free(pool->holders);
    free(pool->unused);
}

void gh_pool_clear(gh_pool *pool)
{
    if (pool->apart)
        let_go(pool);
    *pool = (gh_pool){0};
}

int gh_pool_grow(gh_pool *pool)
{
    if (!pool->grows || pool->capacity >= MOST)
        return -1;
    gh_pool more = *pool;
    const size_t had = pool->capacity, counted = pool->holder_at == APART ? sizeof(uint32_t) : 0;
    more.capacity *= 2;
    more.items = gh_aligned(2 * had * pool->size + 1);
    char *apart = gh_aligned(2 * had * counted + 1);
    more.unused = gh_aligned(2 * had * sizeof *more.unused);
    if (!more.items || !apart || !more.unused) {
        free(more.items);
        free(apart);
        free(more.unused);
        return -1;
    }
    memcpy(more.items, pool->items, had * pool->size);
    memcpy(apart, counted ? pool->holders : apart, had * counted);
    memcpy(more.unused, pool->unused, pool->free * sizeof *more.unused);
    find_holders(&more, apart);
    if (!counted)
        free(apart);
    if (pool->apart)
        let_go(pool);
    more.apart = 1;
    more.grown++;
    *pool = more;
    free_items(pool, (uint32_t)had);
    return 0;
}
