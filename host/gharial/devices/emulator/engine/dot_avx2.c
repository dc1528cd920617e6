/* SPDX-License-Identifier: Apache-2.0
 * The kernel for AVX2: bytes widened to 16 bits, multiplied and added in pairs; exact, since a pair is below 2^16. */
#include "dot.h"

#if GH_X86
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* Sums of pairs (even lanes: columns 0 and 1, odd: 2 and 3) of 16 rows into sums of rows. */
static inline AVX2 void store_rows(int32_t *to, const __m256i sum[4])
{
    for (int half = 0; half < 2; half++) {
        /* hadd works within 128-bit lanes: rows come out as 0 1 4 5 2 3 6 7 and are put in order. */
        __m256i mixed = _mm256_hadd_epi32(sum[2 * half], sum[2 * half + 1]);
        _mm256_storeu_si256((__m256i *)(to + 8 * half), _mm256_permute4x64_epi64(mixed, 0xD8));
    }
}

GH_INLINE AVX2 void block_columns(const gh_dot *job, const uint8_t *base, const int8_t *x, int32_t *acc, const int columns)
{
    const size_t step = (size_t)job->blocks * 64;
    __m256i sum[2][4];
#pragma GCC unroll 2
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            sum[j][i] = _mm256_setzero_si256();
    for (uint32_t tile = 0; tile < job->tiles; tile++) {
        const uint8_t *w = base + tile * job->tile_step;
        for (uint32_t quad = 0; quad < job->quads; quad++, w += step, x += 4) {
            __m256i four[2];
#pragma GCC unroll 2
            for (int j = 0; j < columns; j++)
                four[j] = _mm256_cvtepi8_epi16(_mm_set1_epi32((int)gh_load32(x + (size_t)j * job->x_stride)));
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                __m256i rows = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + 16 * i)));
#pragma GCC unroll 2
                for (int j = 0; j < columns; j++)
                    sum[j][i] = _mm256_add_epi32(sum[j][i], _mm256_madd_epi16(rows, four[j]));
            }
        }
    }
#pragma GCC unroll 2
    for (int j = 0; j < columns; j++)
        store_rows(acc + j * GH_ACC_STRIDE, sum[j]);
}

AVX2 void gh_dot_avx2(const gh_dot *job)
{
    for (int block = 0; block < job->panels * job->blocks; block++) {
        const uint8_t *base = job->weights[block / job->blocks] + (size_t)(block % job->blocks) * 64;
        int32_t *acc = job->acc + block * GH_BLOCK;
        int column = 0;
        for (; column + 2 <= job->columns; column += 2)
            block_columns(job, base, job->x + (size_t)column * job->x_stride, acc + column * GH_ACC_STRIDE, 2);
        if (column < job->columns)
            block_columns(job, base, job->x + (size_t)column * job->x_stride, acc + column * GH_ACC_STRIDE, 1);
    }
}
#endif
