/* SPDX-License-Identifier: Apache-2.0
 * Items by number: a hypothesis, a slot or a token is an index. Some have one owner, others are counted and free again when their
 * last holder drops them. What was let go of last is taken first: it is still in the cache. */
#ifndef GHARIAL_POOL_H
#define GHARIAL_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"

enum { ONE_OWNER = -1, APART = -2 };

typedef struct {
    char *items;          /* capacity x size, from a cache line's begin on; NULL if the items lie elsewhere (size 0) */
    char *holders;        /* of item 0; 0: free. NULL if items have one owner */
    size_t holder_stride; /* from one item's to the next one's */
    int32_t *unused;      /* stack of free items */
    size_t size;          /* bytes of an item */
    int holder_at;        /* where in an item its holders are counted, ONE_OWNER, or APART: in an array of their own */
    uint32_t capacity;    /* items there are */
    uint32_t free;        /* items on the stack */
    uint32_t grown;       /* how often it has doubled */
    int grows;            /* whether it doubles when it is used up */
    int apart;            /* whether its memory is its own, as it is once it has grown */
} gh_pool;

/* Has its place in `memory`; where that has a base, all items are free then. */
void gh_pool_init(gh_pool *pool, gh_memory *memory, size_t size, int holder_at, uint32_t capacity, int grows);

void gh_pool_clear(gh_pool *pool);

/* Makes it twice as large; -1 if it cannot. */
int gh_pool_grow(gh_pool *pool);

static inline void *gh_pool_at(const gh_pool *pool, int32_t item)
{
    return pool->items + (size_t)item * pool->size;
}

static inline uint32_t *gh_pool_holders(const gh_pool *pool, int32_t item)
{
    return (uint32_t *)(void *)(pool->holders + (size_t)item * pool->holder_stride);
}

/* An item without holders, not initialised; -1 if there is none. Pointers into the pool end here: it may have moved. */
static inline int32_t gh_pool_new(gh_pool *pool)
{
    if (!pool->free && gh_pool_grow(pool))
        return -1;
    return pool->unused[--pool->free];
}

/* Of items with one owner: it is free. */
static inline void gh_pool_free(gh_pool *pool, int32_t item)
{
    pool->unused[pool->free++] = item;
}

/* Of counted items: one with one holder, not initialised; -1 if there is none. */
static inline int32_t gh_pool_take(gh_pool *pool)
{
    const int32_t item = gh_pool_new(pool);
    if (item >= 0)
        *gh_pool_holders(pool, item) = 1;
    return item;
}

static inline int32_t gh_pool_hold(gh_pool *pool, int32_t item)
{
    ++*gh_pool_holders(pool, item);
    return item;
}

/* One holder less; whether it was the last one. */
static inline int gh_pool_drop(gh_pool *pool, int32_t item)
{
    if (--*gh_pool_holders(pool, item))
        return 0;
    gh_pool_free(pool, item);
    return 1;
}

#endif
