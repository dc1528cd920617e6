/* SPDX-License-Identifier: Apache-2.0
 * Counted items by number: a hypothesis, a slot or a token is an index, and free again when its last holder drops it. */
#ifndef GHARIAL_POOL_H
#define GHARIAL_POOL_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *items;         /* capacity x size; NULL if the items lie elsewhere (size 0) */
    uint32_t *holders;   /* of each item; 0: free */
    int32_t *unused;     /* stack of free items */
    size_t size;         /* bytes of an item */
    uint32_t capacity;   /* items there are */
    uint32_t free;       /* items on the stack */
    int grows;           /* whether it doubles when it is used up */
} gh_pool;

/* 0, or -1 without memory; `pool` is all zero before. */
int gh_pool_init(gh_pool *pool, size_t size, uint32_t capacity, int grows);

void gh_pool_clear(gh_pool *pool);

/* An item with one holder, not initialised; -1 if there is none. Pointers into the pool end here: it may have moved. */
int32_t gh_pool_take(gh_pool *pool);

/* One holder less; whether it was the last one. */
int gh_pool_drop(gh_pool *pool, int32_t item);

static inline void *gh_pool_at(const gh_pool *pool, int32_t item)
{
    return pool->items + (size_t)item * pool->size;
}

static inline int32_t gh_pool_hold(gh_pool *pool, int32_t item)
{
    pool->holders[item]++;
    return item;
}

#endif
