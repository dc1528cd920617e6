/* SPDX-License-Identifier: Apache-2.0
 * CRC-32 as in IEEE 802.3 and zlib, for the features of an entry; longer things are checked with zlib itself. */
#include "engine.h"

/* table[n][byte]: what a byte does to the remainder n bytes further on, so that eight can be taken at a time. */
static uint32_t table[8][256];

void gh_crc32_init(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        table[0][byte] = crc;
    }
    for (int n = 1; n < 8; n++)
        for (uint32_t byte = 0; byte < 256; byte++)
            table[n][byte] = table[n - 1][byte] >> 8 ^ table[0][table[n - 1][byte] & 0xFF];
}

uint32_t gh_crc32(const uint8_t *data, size_t bytes)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (; bytes >= 8; bytes -= 8, data += 8) {
        const uint32_t low = gh_load32(data) ^ crc, high = gh_load32(data + 4);
        crc = table[7][low & 0xFF] ^ table[6][low >> 8 & 0xFF] ^ table[5][low >> 16 & 0xFF] ^ table[4][low >> 24] ^
              table[3][high & 0xFF] ^ table[2][high >> 8 & 0xFF] ^ table[1][high >> 16 & 0xFF] ^ table[0][high >> 24];
    }
    while (bytes--)
        crc = table[0][(crc ^ *data++) & 0xFF] ^ crc >> 8;
    return ~crc;
}
