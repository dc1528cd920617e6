/* SPDX-License-Identifier: Apache-2.0
 * What depends on the compiler and the processor: function versions, byte order, unaligned words. */
#ifndef GHARIAL_PORTABLE_H
#define GHARIAL_PORTABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "device memory and program images are little-endian, and are used in place"
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#define GH_X86 1
#else
#define GH_X86 0
#endif

/* Loops in plain C, compiled for several processors and chosen when the module is loaded. The loader of sanitizer
 * builds cannot resolve them (GH_NO_CLONES), nor can C libraries other than glibc. */
#if GH_X86 && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12 && !defined(GH_NO_CLONES)
#define GH_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GH_CLONES
#endif

#if defined(__GNUC__)
#define GH_INLINE static inline __attribute__((always_inline))
#else
#define GH_INLINE static inline
#endif

GH_INLINE uint32_t gh_load32(const void *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

GH_INLINE void gh_store32(void *to, uint32_t word)
{
    memcpy(to, &word, sizeof word);
}

GH_INLINE void gh_store16(void *to, uint16_t half)
{
    memcpy(to, &half, sizeof half);
}

/* A field of a word. */
GH_INLINE uint32_t gh_bits(uint32_t word, int low, int width)
{
    return width == 32 ? word : (word >> low) & ((1u << width) - 1);
}

/* Rounding shift right, half up, of a value that fits in 64 bits with room for the rounding; n > 0. */
GH_INLINE int64_t gh_rsr(int64_t value, int n)
{
    return (value + ((int64_t)1 << (n - 1))) >> n;
}

GH_INLINE int32_t gh_clamp(int64_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : (int32_t)value;
}

#endif
