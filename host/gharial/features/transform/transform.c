/* SPDX-License-Identifier: Apache-2.0
 * The transform of real frames: one of half as many complex points by conjugate-pair split radix (Kamar and Elcherif 1989), then the split of its
 * result into the spectrum of the real one.
 *
 * The results are round-off too: which sums are made first is part of what this computes (docs/features.md), so the compiler must not contract or
 * reorder them. It is compiled without contraction of products and sums. */
#include "transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    float re, im;
} point;

struct gh_transform {
    size_t length, points, offset; /* samples of a frame, points, zeros in front of the frame */
    float *window;                 /* length */
    point *twiddle;                /* points / 8: exp(-2 pi i k / (points / 2)) */
    point *low, *high;             /* points / 2: factors of Z[k] and of its mirror image */
    point *work;                   /* points / 2, input */
    point *out;                    /* points / 2 + 1 */
};

gh_transform *gh_transform_new(const float *window, size_t length, size_t points)
{
    const double turn = 6.283185307179586476925286766559;
    const size_t half = points / 2;
    gh_transform *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->length = length;
    t->points = points;
    t->offset = (points - length) / 2;
    t->window = malloc(length * sizeof *t->window);
    t->twiddle = malloc(half / 4 * sizeof *t->twiddle);
    t->low = malloc(half * sizeof *t->low);
    t->high = malloc(half * sizeof *t->high);
    t->work = malloc(half * sizeof *t->work);
    t->out = malloc((half + 1) * sizeof *t->out);
    if (!t->window || !t->twiddle || !t->low || !t->high || !t->work || !t->out) {
        gh_transform_free(t);
        return NULL;
    }
    memcpy(t->window, window, length * sizeof *window);
    for (size_t k = 0; k < half / 4; k++) {
        const double angle = turn * (double)k / (double)half;
        t->twiddle[k] = (point){(float)cos(angle), (float)-sin(angle)};
    }
    for (size_t k = 0; k < half; k++) {
        const double angle = turn * (double)k / (double)points;
        t->low[k] = (point){(float)(0.5 * (1.0 - sin(angle))), (float)(-0.5 * cos(angle))};
        t->high[k] = (point){(float)(0.5 * (1.0 + sin(angle))), (float)(0.5 * cos(angle))};
    }
    return t;
}

void gh_transform_free(gh_transform *t)
{
    if (!t)
        return;
    free(t->window);
    free(t->twiddle);
    free(t->low);
    free(t->high);
    free(t->work);
    free(t->out);
    free(t);
}

size_t gh_transform_length(const gh_transform *t)
{
    return t->length;
}

size_t gh_transform_bins(const gh_transform *t)
{
    return t->points / 2 + 1;
}

/* Transform of the n points start, start + stride, ... of the input (modulo its size) into out. */
static void split(const gh_transform *t, size_t start, size_t stride, size_t n, point *out)
{
    const size_t size = t->points / 2, q = n / 4;
    if (n == 1) {
        out[0] = t->work[start & (size - 1)];
        return;
    }
    if (n == 2) {
        const point a = t->work[start & (size - 1)], b = t->work[(start + stride) & (size - 1)];
        out[0] = (point){a.re + b.re, a.im + b.im};
        out[1] = (point){a.re - b.re, a.im - b.im};
        return;
    }
    split(t, start, 2 * stride, n / 2, out);
    split(t, start + stride, 4 * stride, q, out + 2 * q);
    split(t, start - stride, 4 * stride, q, out + 3 * q);
    for (size_t k = 0; k < q; k++) {
        const point u = out[k], v = out[k + q];
        point a = out[k + 2 * q], b = out[k + 3 * q];
        if (k) {
            const point w = t->twiddle[k * (size / n)], z = a, y = b;
            a = (point){z.re * w.re - z.im * w.im, z.im * w.re + z.re * w.im};
            b = (point){y.re * w.re + y.im * w.im, y.im * w.re - y.re * w.im};
        }
        const point sum = {a.re + b.re, a.im + b.im}, difference = {a.re - b.re, a.im - b.im};
        out[k] = (point){u.re + sum.re, u.im + sum.im};
        out[k + q] = (point){v.re + difference.im, v.im - difference.re};
        out[k + 2 * q] = (point){u.re - sum.re, u.im - sum.im};
        out[k + 3 * q] = (point){v.re - difference.im, v.im + difference.re};
    }
}

void gh_transform_power(gh_transform *t, const float *samples, double *power)
{
    const size_t half = t->points / 2;
    float *input = (float *)t->work; /* sample 2 k is the real part of point k, 2 k + 1 its imaginary part */
    memset(t->work, 0, half * sizeof *t->work);
    for (size_t n = 0; n < t->length; n++)
        input[t->offset + n] = samples[n] * t->window[n];
    split(t, 0, 1, half, t->out);
    t->out[half] = t->out[0];
    for (size_t k = 0; k < half; k++) {
        const point z = t->out[k], m = t->out[half - k], a = t->low[k], b = t->high[k];
        const float re = (z.re * a.re - z.im * a.im) + (m.re * b.re + m.im * b.im);
        const float im = (z.im * a.re + z.re * a.im) + (m.re * b.im - m.im * b.re);
        power[k] = (double)(re * re + im * im);
    }
    const float last = t->out[0].re - t->out[0].im;
    power[half] = (double)(last * last);
}
