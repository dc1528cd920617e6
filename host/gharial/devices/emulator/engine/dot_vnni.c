/* SPDX-License-Identifier: Apache-2.0
 * The kernel for AVX-512 VNNI: four unsigned weights times four signed activations added to an int32 lane. Weights are
 * stored 128 too high; the correction, 128 times the activations' sum, is where the sums start. Everything is modulo
 * 2^32, so what the detour adds comes off exactly. */
#include "dot.h"

#if GH_X86
#include <immintrin.h>

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

/* With constant arguments the loops unroll and the sums stay in registers: at most 24 of them, 4 weights, 1 broadcast. */
GH_INLINE VNNI void product(const gh_dot *job, const int panels, const int blocks, const int columns)
{
    const uint8_t *weights[GH_MAX_PANELS];
    __m512i sum[GH_MAX_BATCH][GH_MAX_PANELS * GH_MAX_BLOCKS];
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++)
        weights[p] = job->weights[p];
#pragma GCC unroll 6
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 16
        for (int i = 0; i < panels * blocks; i++)
            sum[j][i] = _mm512_set1_epi32(-job->correction[j]);
    const int8_t *x = job->x;
    const size_t stride = job->x_stride;
    for (uint32_t tile = 0; tile < job->tiles; tile++) {
        size_t at = tile * job->tile_step;
        for (uint32_t quad = 0; quad < job->quads; quad++, at += (size_t)blocks * 64, x += 4) {
            __m512i w[GH_MAX_PANELS * GH_MAX_BLOCKS];
#pragma GCC unroll 16
            for (int i = 0; i < panels * blocks; i++)
                w[i] = _mm512_loadu_si512(weights[i / blocks] + at + (size_t)(i % blocks) * 64);
#pragma GCC unroll 6
            for (int j = 0; j < columns; j++) {
                __m512i four = _mm512_set1_epi32((int)gh_load32(x + (size_t)j * stride));
#pragma GCC unroll 16
                for (int i = 0; i < panels * blocks; i++)
                    sum[j][i] = _mm512_dpbusd_epi32(sum[j][i], w[i], four);
            }
        }
    }
#pragma GCC unroll 6
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 16
        for (int i = 0; i < panels * blocks; i++)
            _mm512_storeu_si512(job->acc + j * GH_ACC_STRIDE + i * GH_BLOCK, sum[j][i]);
}

GH_INLINE VNNI void four_blocks(const gh_dot *job, const int panels, const int blocks)
{
    switch (job->columns) {
    case 1: product(job, panels, blocks, 1); break;
    case 2: product(job, panels, blocks, 2); break;
    case 3: product(job, panels, blocks, 3); break;
    case 4: product(job, panels, blocks, 4); break;
    case 5: product(job, panels, blocks, 5); break;
    default: product(job, panels, blocks, 6); break;
    }
}

/* Any shape, a column at a time: the last panels of a product whose panels do not divide evenly. */
static VNNI void one_by_one(const gh_dot *job)
{
    gh_dot part = *job;
    part.columns = 1;
    part.panels = 1;
    for (int panel = 0; panel < job->panels; panel++)
        for (int column = 0; column < job->columns; column++) {
            part.weights[0] = job->weights[panel];
            part.x = job->x + (size_t)column * job->x_stride;
            part.correction = job->correction + column;
            part.acc = job->acc + column * GH_ACC_STRIDE + panel * job->blocks * GH_BLOCK;
            switch (job->blocks) {
            case 1: product(&part, 1, 1, 1); break;
            case 2: product(&part, 1, 2, 1); break;
            default: product(&part, 1, 4, 1); break;
            }
        }
}

VNNI void gh_dot_vnni(const gh_dot *job)
{
    const int shape = job->panels * 8 + job->blocks;
    if (shape == 1 * 8 + 4)
        four_blocks(job, 1, 4);
    else if (shape == 2 * 8 + 2)
        four_blocks(job, 2, 2);
    else if (shape == 4 * 8 + 1)
        four_blocks(job, 4, 1);
    else if (shape == 4 * 8 + 2 && job->columns == 1)
        product(job, 4, 2, 1);
    else if (shape == 2 * 8 + 4 && job->columns == 1)
        product(job, 2, 4, 1);
    else if (shape == 4 * 8 + 4 && job->columns == 1)
        product(job, 4, 4, 1);
    else
        one_by_one(job);
}
#endif
