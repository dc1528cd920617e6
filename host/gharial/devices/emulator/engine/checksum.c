/* SPDX-License-Identifier: Apache-2.0
 * CRC-32 as in IEEE 802.3 and zlib, for the features of an entry; longer things are checked with zlib itself. */
#include "engine.h"

static uint32_t table[256];

void gh_crc32_init(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        table[byte] = crc;
    }
}

uint32_t gh_crc32(const uint8_t *data, size_t bytes)
{
    uint32_t crc = 0xFFFFFFFFu;
    while (bytes--)
        crc = table[(crc ^ *data++) & 0xFF] ^ crc >> 8;
    return ~crc;
}
