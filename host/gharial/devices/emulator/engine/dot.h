/* SPDX-License-Identifier: Apache-2.0
 * Dot products of weight panels with activations, the part that depends on the processor.
 *
 * A tile of R x C weights is repacked in place of itself into panels of `blocks` blocks of 16 rows (R / 16 divided by a
 * power of two up to 4): byte ((q * blocks + b) * 16 + r) * 4 + c of a panel is column 4q + c of row 16b + r. One vector
 * of 64 bytes then holds 4 columns of 16 rows, which is what a dot product of bytes into int32 lanes takes, and a panel
 * is read forward. A kernel may ask for weights with the top bit flipped (unsigned, 128 more), and takes 128 times the
 * activations' sum off again. */
#ifndef GHARIAL_DOT_H
#define GHARIAL_DOT_H

#include "portable.h"

enum { GH_BLOCK = 16, GH_MAX_PANELS = 4, GH_MAX_BLOCKS = 4, GH_MAX_BATCH = 6 };
enum { GH_ACC_STRIDE = GH_BLOCK * GH_MAX_BLOCKS * GH_MAX_PANELS };

/* `columns` activation vectors against `panels` panels. Accumulators of a column are consecutive rows. */
typedef struct {
    const uint8_t *weights[GH_MAX_PANELS];
    size_t tile_step;          /* bytes from one tile to the next in its row group */
    uint32_t tiles, quads;     /* a row group's tiles; groups of 4 columns in each */
    const int8_t *x;           /* column j from x + j * x_stride */
    size_t x_stride;
    const int32_t *correction; /* of each column: what the kernel takes off each of its sums */
    int32_t *acc;              /* column j from acc + j * GH_ACC_STRIDE */
    int panels, blocks, columns;
} gh_dot;

typedef struct {
    const char *name;
    uint8_t flip; /* what each weight byte is combined with (exclusive or) when packed */
    void (*run)(const gh_dot *job);
} gh_kernel;

/* The kernels that this processor can run, best first; NULL after the last. */
const gh_kernel *const *gh_kernels(void);

/* Panels' blocks for tiles of that many rows, a multiple of 16. */
int gh_panel_blocks(uint32_t rows);

/* Packs one tile. */
void gh_pack_tile(uint8_t *to, const uint8_t *from, uint32_t rows, uint32_t cols, uint8_t flip);

void gh_dot_plain(const gh_dot *job);
#if GH_X86
void gh_dot_avx2(const gh_dot *job);
void gh_dot_vnni(const gh_dot *job);
#endif

#endif
