/* SPDX-License-Identifier: Apache-2.0
 * The kernel for any processor, the packing, and the choice among kernels. */
#include "dot.h"

void gh_dot_plain(const gh_dot *job)
{
    const size_t step = (size_t)job->blocks * 64;
    for (int block = 0; block < job->panels * job->blocks; block++) {
        const uint8_t *base = job->weights[block / job->blocks] + (size_t)(block % job->blocks) * 64;
        for (int column = 0; column < job->columns; column++) {
            int32_t sum[GH_BLOCK] = {0};
            const int8_t *x = job->x + (size_t)column * job->x_stride;
            for (uint32_t tile = 0; tile < job->tiles; tile++) {
                const int8_t *w = (const int8_t *)base + tile * job->tile_step;
                for (uint32_t quad = 0; quad < job->quads; quad++, w += step, x += 4)
                    for (int r = 0; r < GH_BLOCK; r++)
                        sum[r] += w[4 * r] * x[0] + w[4 * r + 1] * x[1] + w[4 * r + 2] * x[2] + w[4 * r + 3] * x[3];
            }
            memcpy(job->acc + column * GH_ACC_STRIDE + block * GH_BLOCK, sum, sizeof sum);
        }
    }
}

int gh_panel_blocks(uint32_t rows)
{
    uint32_t blocks = rows / GH_BLOCK;
    return blocks % 4 == 0 ? 4 : blocks % 2 == 0 ? 2 : 1;
}

void gh_pack_tile(uint8_t *to, const uint8_t *from, uint32_t rows, uint32_t cols, uint8_t flip)
{
    uint32_t panel_rows = (uint32_t)gh_panel_blocks(rows) * GH_BLOCK;
    for (uint32_t first = 0; first < rows; first += panel_rows)
        for (uint32_t column = 0; column < cols; column += 4)
            for (uint32_t row = first; row < first + panel_rows; row++, to += 4) {
                uint32_t four = gh_load32(from + (size_t)row * cols + column);
                gh_store32(to, four ^ flip * 0x01010101u);
            }
}

#if GH_X86
static const gh_kernel vnni = {"avx512vnni", 0x80, gh_dot_vnni};
static const gh_kernel avx2 = {"avx2", 0, gh_dot_avx2};
#endif
static const gh_kernel plain = {"plain", 0, gh_dot_plain};

const gh_kernel *const *gh_kernels(void)
{
    static const gh_kernel *found[4];
    int count = 0;
#if GH_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni"))
        found[count++] = &vnni;
    if (__builtin_cpu_supports("avx2"))
        found[count++] = &avx2;
#endif
    found[count++] = &plain;
    found[count] = NULL;
    return found;
}
