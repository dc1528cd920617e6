/* SPDX-License-Identifier: Apache-2.0
 * Records of what instructions wrote. A record is a head of 20 bytes: section, kind, vector, 0 (bytes); instruction
 * within the section, entry (16 bits each); rows; bytes of payload; payload padded to a multiple of 4. Then the payload. */
#include <stdlib.h>

#include "engine.h"

enum { HEAD = 20 };

size_t gh_trace_record(gh_trace *trace, int section, uint32_t instruction, int vector, uint32_t entry, int kind,
                       uint32_t rows, size_t bytes)
{
    const size_t room = HEAD + (bytes + 3) / 4 * 4;
    if (trace->failed)
        return 0;
    if (trace->used + room > trace->size) {
        size_t size = (trace->used + room) * 2 + 65536;
        uint8_t *data = realloc(trace->data, size);
        if (!data) {
            trace->failed = 1;
            return 0;
        }
        trace->data = data;
        trace->size = size;
    }
    uint8_t *head = trace->data + trace->used;
    memset(head, 0, room);
    head[0] = (uint8_t)section;
    head[1] = (uint8_t)kind;
    head[2] = (uint8_t)vector;
    gh_store16(head + 4, (uint16_t)instruction);
    gh_store16(head + 6, (uint16_t)entry);
    gh_store32(head + 8, rows);
    gh_store32(head + 12, (uint32_t)bytes);
    gh_store32(head + 16, (uint32_t)(room - HEAD));
    trace->used += room;
    return (size_t)(head - trace->data) + HEAD;
}
