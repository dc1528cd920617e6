// SPDX-License-Identifier: Apache-2.0
// Where the simulation prints to. Included before everything else in the build, so that Verilator's runtime uses it too: standard output
// belongs to the program that the device is part of.
#pragma once

#ifdef __cplusplus
extern "C"
#endif
    int
    gharial_print(const char* format, ...) __attribute__((format(printf, 1, 2)));

#define VL_PRINTF gharial_print
