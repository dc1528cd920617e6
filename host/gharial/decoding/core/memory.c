/* SPDX-License-Identifier: Apache-2.0
 * Memory in large pages. */
#define _DEFAULT_SOURCE
#include "memory.h"

#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { LARGE_PAGE = 2 << 20, MUCH = 1 << 20 };

void *gh_aligned(size_t bytes)
{
    const size_t align = bytes >= MUCH ? LARGE_PAGE : LINE;
    if (bytes > (size_t)-1 - align)
        return NULL;
    bytes = (bytes + align - 1) / align * align;
    void *memory = aligned_alloc(align, bytes);
#if defined(MADV_HUGEPAGE)
    if (memory && align == LARGE_PAGE) /* a hint */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}
