/* SPDX-License-Identifier: Apache-2.0
 * Power spectra of windowed frames in single precision, every operation in a fixed order: docs/features.md. */
#ifndef GHARIAL_TRANSFORM_H
#define GHARIAL_TRANSFORM_H

#include <stddef.h>

typedef struct gh_transform gh_transform;

/* A transform of `points` (a power of two, 8 or more) for frames of `length` samples, times `window`; NULL: no memory. */
gh_transform *gh_transform_new(const float *window, size_t length, size_t points);

void gh_transform_free(gh_transform *transform);

size_t gh_transform_length(const gh_transform *transform);

size_t gh_transform_bins(const gh_transform *transform);

/* Power of the bins 0 to points / 2 of one frame. */
void gh_transform_power(gh_transform *transform, const float *samples, double *power);

#endif
