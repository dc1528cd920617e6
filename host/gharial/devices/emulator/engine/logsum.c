/* SPDX-License-Identifier: Apache-2.0
 * Log-sum-exp (docs/numerics.md, section 8). A class's term depends on Lmax - L alone once the temperature is given, so
 * the terms are tabulated for the temperature last used: programs use one, or few. */
#include <stdlib.h>

#include "engine.h"

int gh_prepare_exp(gh_program *program, uint32_t temperature)
{
    gh_exp_table *t = &program->exp_terms;
    if (t->ready && t->temperature == temperature)
        return 0;
    if (!t->term)
        t->term = malloc(65537 * sizeof *t->term);
    if (!t->term)
        return -1;
    const int shift = (int)program->header.logit_bits + 2;
    uint32_t d = 0;
    for (; d < 65536; d++) {
        const int64_t q = gh_rsr(gh_rsr((int64_t)d * temperature, shift) * 47274, 15);
        if (q >> 12 >= 25)
            break;
        const int32_t *pair = program->exp_table + 2 * ((q & 4095) >> 6);
        const int64_t v = (int64_t)pair[0] * 64 + (int64_t)pair[1] * (q & 63);
        t->term[d] = (int32_t)(2 * v >> (q >> 12));
    }
    t->term[d] = 0;
    t->limit = d;
    t->temperature = temperature;
    t->ready = 1;
    return 0;
}

static GH_CLONES int64_t sum_terms(const int16_t *logits, uint32_t count, const int32_t *term, int32_t limit, int32_t most)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        int32_t d = most - logits[i];
        sum += term[d < limit ? d : limit];
    }
    return sum;
}

int32_t gh_log_sum_exp(const gh_program *program, const int16_t *logits, uint32_t temperature)
{
    const gh_exp_table *t = &program->exp_terms;
    const int e = (int)program->header.logit_bits;
    const int32_t most = logits[gh_argmax(logits, program->header.classes)];
    int64_t sum = sum_terms(logits, program->header.classes, t->term, (int32_t)t->limit, most);
    if (sum < 1)
        sum = 1; /* only under tables that are no exponential */
    int b = 0;
    while (sum >> b > 1)
        b++;
    const int64_t z = (b >= 16 ? sum >> (b - 16) : sum << (16 - b)) - 65536;
    const int32_t *pair = program->log_table + 2 * (z >> 10);
    const int64_t w = gh_rsr((int64_t)pair[0] * 1024 + (int64_t)pair[1] * (z & 1023), 11);
    return (int32_t)(gh_rsr((int64_t)most * temperature, e - 2) +
                     gh_rsr(((int64_t)(b - 24) * 65536 + w) * 45426, 16));
}
