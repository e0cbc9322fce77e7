/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/opening.h"

#include <stdbool.h>
#include <string.h>

#include "proto/limits.h"

enum {
    RECORD_HANDSHAKE = 22,
    HANDSHAKE_CLIENT_HELLO = 1,
    RECORD_HEADER_BYTES = 5,
    HANDSHAKE_HEADER_BYTES = 4,
};

const char *gpul_stranger_words(enum gpul_stranger kind)
{
    static const char *const words[] = {
#define X(name, words) words,
        GPUL_STRANGER_MAP(X)
#undef X
    };
    return (unsigned)kind < GPUL_STRANGER_COUNT ? words[kind] : NULL;
}

/* The first four bytes of each request of HTTP/1, and of HTTP/2's preface. */
static bool is_http(const uint8_t *bytes)
{
    static const char methods[][5] = {"GET ", "POST", "HEAD", "PUT ", "DELE",
                                      "OPTI", "CONN", "TRAC", "PATC", "PRI "};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (memcmp(bytes, methods[i], 4) == 0) {
            return true;
        }
    }
    return false;
}

/* A length of less than 16 MiB, then the key of a Hello. */
static bool is_frame(const uint8_t *bytes)
{
    return bytes[0] == 0 && bytes[4] == 0x0a;
}

static enum gpul_stranger kind_of(const uint8_t *bytes)
{
    if (is_http(bytes)) {
        return GPUL_STRANGER_HTTP;
    }
    if (memcmp(bytes, "SSH-", 4) == 0) {
        return GPUL_STRANGER_SSH;
    }
    return is_frame(bytes) ? GPUL_STRANGER_FRAMES : GPUL_STRANGER_GARBAGE;
}

static int refuse(enum gpul_stranger *kind, enum gpul_stranger is)
{
    *kind = is;
    return -1;
}

int gpul_opening_judge(enum gpul_stranger *kind, const uint8_t *bytes, size_t n)
{
    *kind = GPUL_STRANGER_NONE;
    if (n < GPUL_OPENING_BYTES) {
        return 0;
    }
    if (bytes[0] != RECORD_HANDSHAKE || bytes[1] != 3 || bytes[2] > 4) {
        return refuse(kind, kind_of(bytes));
    }
    int size = RECORD_HEADER_BYTES + (bytes[3] << 8 | bytes[4]);
    if (size > (int)GPUL_FIRST_RECORD_BYTES_MAX) {
        return refuse(kind, GPUL_STRANGER_LARGE);
    }
    if (size < RECORD_HEADER_BYTES + HANDSHAKE_HEADER_BYTES) {
        return refuse(kind, GPUL_STRANGER_GARBAGE);
    }
    if (n < RECORD_HEADER_BYTES + HANDSHAKE_HEADER_BYTES) {
        return size;
    }
    /* The whole ClientHello, and nothing but it. */
    int hello = bytes[6] << 16 | bytes[7] << 8 | bytes[8];
    bool is_hello =
        bytes[5] == HANDSHAKE_CLIENT_HELLO &&
        size == RECORD_HEADER_BYTES + HANDSHAKE_HEADER_BYTES + hello;
    return is_hello ? size : refuse(kind, GPUL_STRANGER_GARBAGE);
}
