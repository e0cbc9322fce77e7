/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream cut at places of the fuzzer's choice gives the same frames and the
 * same end as the stream in one piece, and is held in memory of one frame
 * and one piece.
 *
 * Input: 1 byte sender, 1 byte number of pieces c (0 to 15), c sizes of one
 * byte that are used in turn, the stream.
 */
#include <stdbool.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/lib/fuzz.h"

enum { PIECES_MAX = 15, PEER_COUNT = 6 };

/* What came out of a stream. */
struct outcome {
    uint64_t digest; /* FNV-1a over sizes and bytes of the frames */
    size_t frames;
    int status;
};

struct cuts {
    const uint8_t *sizes; /* each one less than the size of a piece */
    size_t count;         /* 0: the whole stream at once */
    bool is_copied;       /* feed; else room and fill */
};

static void digest(struct outcome *o, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        o->digest = (o->digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
}

static int put(struct gpul_deframer *d, const uint8_t *bytes, size_t n,
               bool is_copied)
{
    if (is_copied) {
        return gpul_deframer_feed(d, bytes, n, NULL);
    }
    size_t room_bytes;
    uint8_t *room = gpul_deframer_room(d, &room_bytes);
    FUZZ_CHECK(room != NULL && room_bytes >= n);
    memcpy(room, bytes, n);
    return gpul_deframer_fill(d, n, NULL);
}

/* A buffer doubles, and a quiet one keeps a little. */
static void check_memory(const struct gpul_deframer *d, size_t piece)
{
    size_t frame = d->frame_bytes > 0 ? d->frame_bytes : 16;
    FUZZ_CHECK(d->buf.capacity <= 2 * (frame + piece) + (16u << 10));
}

static void take_frames(struct gpul_deframer *d, struct outcome *o)
{
    const uint8_t *body;
    size_t n;
    while ((o->status = gpul_deframer_next(d, &body, &n, NULL)) == 1) {
        int type = gpul_message_type(body, n);
        FUZZ_CHECK(type > 0);
        FUZZ_CHECK(n <= gpul_message_rule((uint32_t)type)->bytes_max);
        digest(o, (const uint8_t *)&n, sizeof(n));
        digest(o, body, n);
        o->frames++;
    }
}

static struct outcome run(const uint8_t *stream, size_t n, enum gpul_peer from,
                          const struct cuts *cuts)
{
    struct outcome o = {.digest = UINT64_C(0xcbf29ce484222325)};
    struct gpul_deframer d;
    gpul_deframer_init(&d, from);
    size_t at = 0;
    for (size_t i = 0; at < n && o.status == 0; i++) {
        size_t piece = cuts->count == 0 ? GPUL_READ_BYTES_MAX
                                        : cuts->sizes[i % cuts->count] + 1u;
        piece = piece < n - at ? piece : n - at;
        o.status = put(&d, stream + at, piece, cuts->is_copied);
        check_memory(&d, cuts->is_copied ? piece : GPUL_READ_BYTES_MAX);
        if (o.status == 0) {
            take_frames(&d, &o);
        }
        at += piece;
    }
    gpul_deframer_release(&d);
    return o;
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
    FUZZ_CHECK(a->frames == b->frames);
    FUZZ_CHECK(a->digest == b->digest);
    FUZZ_CHECK(a->status == b->status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2) {
        return 0;
    }
    enum gpul_peer from = (enum gpul_peer)(1u << (data[0] % PEER_COUNT));
    struct cuts cuts = {.sizes = data + 2, .count = data[1] % (PIECES_MAX + 1)};
    if (n < 2 + cuts.count) {
        return 0;
    }
    const uint8_t *stream = data + 2 + cuts.count;
    n -= 2 + cuts.count;
    const struct cuts whole = {.is_copied = true};
    struct outcome want = run(stream, n, from, &whole);
    struct outcome filled = run(stream, n, from, &cuts);
    check_same(&filled, &want);
    cuts.is_copied = true;
    struct outcome fed = run(stream, n, from, &cuts);
    check_same(&fed, &want);
    return 0;
}
