/* SPDX-License-Identifier: Apache-2.0
 *
 * The first bytes of a connection, judged before TLS is given any: an object
 * of OpenSSL takes 72 KiB once it has seen six bytes, so it is made only for
 * one whole record that begins a handshake and is no larger than such a
 * record of ours. Pure.
 *
 * Source: the record and handshake headers of RFC 8446, 5.1 and 4.
 */
#ifndef GPUL_PROTO_OPENING_H
#define GPUL_PROTO_OPENING_H

#include <stddef.h>
#include <stdint.h>

/* What a peer turned out to be that was not let in. The words go into logs
 * and counts: "3 connections were closed: HTTP". */
#define GPUL_STRANGER_MAP(X)                                                   \
    X(NONE, "none")                                                            \
    X(HTTP, "HTTP")                                                            \
    X(SSH, "an ssh banner")                                                    \
    X(FRAMES, "frames without TLS")                                            \
    X(GARBAGE, "neither TLS nor anything known")                               \
    X(LARGE, "too many bytes before it was known")                             \
    X(OLD_TLS, "TLS older than 1.3")                                           \
    X(NO_KEY, "TLS without a key of gpulaunch")                                \
    X(OTHER_JOB, "a key of another job")                                       \
    X(WRONG_KEY, "a wrong secret")                                             \
    X(BROKEN, "a broken handshake")                                            \
    X(CLOSED, "closed before it was known")

enum gpul_stranger {
#define X(name, words) GPUL_STRANGER_##name,
    GPUL_STRANGER_MAP(X) GPUL_STRANGER_COUNT
#undef X
};

/* The words; NULL for what is no such kind. */
const char *gpul_stranger_words(enum gpul_stranger kind);

/* Bytes that are enough to know the size of the first record. */
#define GPUL_OPENING_BYTES 5u

/* Judge the first n bytes of a connection. Returns the size of the first
 * record with its header (GPUL_FIRST_RECORD_BYTES_MAX at most), 0 while that
 * cannot be told, or -1: then *kind says what it is instead. */
int gpul_opening_judge(enum gpul_stranger *kind, const uint8_t *bytes,
                       size_t n);

#endif
