/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/lib/memory.h"
#include "tests/lib/samples.h"

/* Every message a node may send, one behind the other. */
static const uint32_t node_types[] = {
    GPUL__FRAME__BODY_HELLO,        GPUL__FRAME__BODY_HEARTBEAT,
    GPUL__FRAME__BODY_READY,        GPUL__FRAME__BODY_PROBE_LISTENING,
    GPUL__FRAME__BODY_PROBE_RESULT, GPUL__FRAME__BODY_EXITS,
    GPUL__FRAME__BODY_OUTPUT,       GPUL__FRAME__BODY_IDLE,
    GPUL__FRAME__BODY_NOTICE,
};
enum { NODE_TYPE_COUNT = sizeof(node_types) / sizeof(node_types[0]) };

static struct gpul_buf node_stream(void)
{
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    for (size_t i = 0; i < NODE_TYPE_COUNT; i++) {
        sample_append(&b, node_types[i]);
    }
    return b;
}

/* Whatever the size of the pieces, the same frames come out. */
static void test_cuts(void **state)
{
    (void)state;
    struct gpul_buf b = node_stream();
    for (size_t piece = 1; piece <= b.used; piece++) {
        struct gpul_deframer d;
        gpul_deframer_init(&d, GPUL_PEER_NODE);
        size_t frames = 0;
        const uint8_t *expected = b.data;
        for (size_t at = 0; at < b.used; at += piece) {
            size_t n = b.used - at < piece ? b.used - at : piece;
            assert_int_equal(gpul_deframer_feed(&d, b.data + at, n, NULL), 0);
            const uint8_t *body;
            size_t body_bytes;
            while (gpul_deframer_next(&d, &body, &body_bytes, NULL) == 1) {
                expected += GPUL_FRAME_PREFIX_BYTES;
                assert_memory_equal(body, expected, body_bytes);
                expected += body_bytes;
                frames++;
            }
            assert_null(body);
        }
        assert_int_equal(frames, NODE_TYPE_COUNT);
        assert_ptr_equal(expected, b.data + b.used);
        gpul_deframer_release(&d);
    }
    gpul_buf_release(&b);
}

struct broken_case {
    uint8_t bytes[8];
    size_t judged_at; /* bytes that must have come before it is refused */
    int status;
    const char *text;
};

/* A frame is refused with the byte that tells, not later; and the stream
 * stays broken. */
static void test_refused_early(void **state)
{
    (void)state;
    const struct broken_case cases[] = {
        {{0, 0, 0, 0}, 4, GPUL_EPROTO, "unknown message from a node"},
        {{0, 0, 0, 1, 0x08}, 5, GPUL_EPROTO, "unknown message from a node"},
        {{0xff, 0xff, 0xff, 0xff, 0x12},
         5,
         GPUL_EPROTO,
         "a node may not send \"welcome\""},
        {{0, 0, 16, 1, 0x0a},
         5,
         GPUL_ELIMIT,
         "\"hello\" has 4097 bytes, at most 4096 are allowed"},
        {{0, 0, 0, 1, 0x82, 0x01},
         5,
         GPUL_EPROTO,
         "unknown message from a node"}, /* the key is cut by the length */
        {{0, 0, 0, 9, 0x82, 0x01},
         6,
         GPUL_EPROTO,
         "a node may not send \"stop\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct broken_case *c = &cases[i];
        struct gpul_deframer d;
        struct gpul_error err = {0};
        gpul_deframer_init(&d, GPUL_PEER_NODE);
        for (size_t at = 0; at + 1 < c->judged_at; at++) {
            assert_int_equal(gpul_deframer_feed(&d, c->bytes + at, 1, &err), 0);
        }
        int rc = gpul_deframer_feed(&d, c->bytes + c->judged_at - 1, 1, &err);
        assert_string_equal(err.text, c->text);
        assert_int_equal(rc, c->status);

        const uint8_t *body;
        size_t n;
        assert_int_equal(gpul_deframer_next(&d, &body, &n, &err), c->status);
        assert_int_equal(gpul_deframer_feed(&d, c->bytes, 1, &err), c->status);
        gpul_deframer_release(&d);
    }
}

/* Frames in front of a bad one are handed out, then the failure. */
static void test_good_before_bad(void **state)
{
    (void)state;
    struct gpul_buf b;
    gpul_buf_init(&b, 1u << 20);
    sample_append(&b, GPUL__FRAME__BODY_HEARTBEAT);
    sample_append(&b, GPUL__FRAME__BODY_STOP);
    struct gpul_deframer d;
    gpul_deframer_init(&d, GPUL_PEER_NODE);
    assert_int_equal(gpul_deframer_feed(&d, b.data, b.used, NULL), 0);
    const uint8_t *body;
    size_t n;
    struct gpul_error err = {0};
    assert_int_equal(gpul_deframer_next(&d, &body, &n, &err), 1);
    assert_int_equal(gpul_message_type(body, n), GPUL__FRAME__BODY_HEARTBEAT);
    assert_int_equal(gpul_deframer_next(&d, &body, &n, &err), GPUL_EPROTO);
    assert_string_equal(err.text, "a node may not send \"stop\"");
    assert_int_equal(gpul_deframer_next(&d, &body, &n, &err), GPUL_EPROTO);
    assert_string_equal(err.text, "the stream is broken: protocol violation");
    assert_null(body);
    gpul_deframer_release(&d);
    gpul_buf_release(&b);
}

/* What a peer may send can be narrowed between two frames that came
 * together. */
static void test_phase(void **state)
{
    (void)state;
    struct gpul_buf b = node_stream();
    struct gpul_deframer d;
    struct gpul_error err = {0};
    gpul_deframer_init(&d, GPUL_PEER_NODE);
    d.allowed = GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HELLO);
    gpul_deframer_feed(&d, b.data, b.used, NULL);
    const uint8_t *body;
    size_t n;
    assert_int_equal(gpul_deframer_next(&d, &body, &n, &err), 1);
    d.allowed = GPUL_MESSAGE_BIT(GPUL__FRAME__BODY_HEARTBEAT);
    assert_int_equal(gpul_deframer_next(&d, &body, &n, &err), 1);
    assert_int_equal(gpul_deframer_next(&d, &body, &n, &err), GPUL_EPROTO);
    assert_string_equal(err.text, "a node may not send \"ready\" now");
    gpul_deframer_release(&d);
    gpul_buf_release(&b);
}

/* An announced length costs nothing until its bytes are here, and a stream
 * from which all was taken holds no memory. */
static void test_memory(void **state)
{
    (void)state;
    static uint8_t piece[GPUL_READ_BYTES_MAX];
    const uint8_t head[] = {0, 0x20, 0, 0, 0x32}; /* a job of 2 MiB */
    struct gpul_deframer d;
    memory_watch();
    gpul_deframer_init(&d, GPUL_PEER_OPERATOR);
    assert_int_equal(gpul_deframer_feed(&d, head, sizeof(head), NULL), 0);
    assert_in_range(memory_peak(), 0, 256);
    for (size_t i = 0; i < GPUL_JOB_BYTES_MAX / sizeof(piece); i++) {
        assert_int_equal(gpul_deframer_feed(&d, piece, sizeof(piece), NULL), 0);
    }
    const uint8_t *body;
    size_t n;
    assert_int_equal(gpul_deframer_next(&d, &body, &n, NULL), 1);
    assert_int_equal(n, GPUL_JOB_BYTES_MAX);
    /* One byte is left over: the first of the next prefix. */
    assert_int_equal(gpul_deframer_next(&d, &body, &n, NULL), 0);
    const uint8_t rest[] = {0, 0, 5, 0x32, 0, 0, 0, 0};
    assert_int_equal(gpul_deframer_feed(&d, rest, sizeof(rest), NULL), 0);
    assert_int_equal(gpul_deframer_next(&d, &body, &n, NULL), 1);
    assert_int_equal(n, 5);
    assert_int_equal(gpul_deframer_next(&d, &body, &n, NULL), 0);
    assert_int_equal(memory_held(), 0);
    assert_in_range(memory_peak(), GPUL_JOB_BYTES_MAX, 2 * GPUL_JOB_BYTES_MAX);
    gpul_deframer_release(&d);
    assert_int_equal(memory_held(), 0);
}

/* Frames of output, `count` of them. */
static struct gpul_buf output_stream(unsigned count)
{
    static uint8_t data[GPUL_OUTPUT_BYTES_MAX];
    Gpul__Output output = GPUL__OUTPUT__INIT;
    output.stream = GPUL__OUTPUT__STREAM__STDOUT;
    output.data = (ProtobufCBinaryData){sizeof(data), data};
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_OUTPUT;
    frame.output = &output;
    struct gpul_buf b;
    gpul_buf_init(&b, count * (GPUL_OUTPUT_FRAME_BYTES_MAX + 4));
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(gpul_message_encode(&b, &frame, NULL), 0);
    }
    return b;
}

/* Read as a socket would be: room grows with what comes, up to its maximum,
 * shrinks when little comes, and the frames are the same. */
static void test_room(void **state)
{
    (void)state;
    enum { FRAMES = 20 };
    struct gpul_buf b = output_stream(FRAMES);
    struct gpul_deframer d;
    gpul_deframer_init(&d, GPUL_PEER_NODE);
    size_t at = 0, frames = 0, reads = 0, room_bytes;
    while (at < b.used) {
        uint8_t *room = gpul_deframer_room(&d, &room_bytes);
        assert_in_range(room_bytes, 4096, GPUL_READ_BYTES_MAX);
        size_t n = b.used - at < room_bytes ? b.used - at : room_bytes;
        memcpy(room, b.data + at, n);
        assert_int_equal(gpul_deframer_fill(&d, n, NULL), 0);
        at += n;
        reads++;
        const uint8_t *body;
        while (gpul_deframer_next(&d, &body, &n, NULL) == 1) {
            assert_int_equal(gpul_message_type(body, n),
                             GPUL__FRAME__BODY_OUTPUT);
            frames++;
        }
    }
    assert_int_equal(frames, FRAMES);
    assert_in_range(reads, FRAMES / 2, FRAMES / 2 + 5);
    for (unsigned i = 0; i < 10; i++) {
        assert_non_null(gpul_deframer_room(&d, &room_bytes));
        assert_int_equal(gpul_deframer_fill(&d, 0, NULL), 0);
    }
    assert_int_equal(room_bytes, 4096);
    gpul_deframer_release(&d);
    gpul_buf_release(&b);
}

/* A broken stream has no room, and without memory there is none either. */
static void test_no_room(void **state)
{
    (void)state;
    struct gpul_deframer d;
    size_t n = 1;
    gpul_deframer_init(&d, GPUL_PEER_NODE);
    memory_watch();
    memory_fail_at(1);
    assert_null(gpul_deframer_room(&d, &n));
    assert_int_equal(n, 0);
    uint8_t *room = gpul_deframer_room(&d, &n);
    assert_non_null(room);
    memcpy(room, "\0\0\0\0", 4);
    assert_int_equal(gpul_deframer_fill(&d, 4, NULL), GPUL_EPROTO);
    assert_null(gpul_deframer_room(&d, &n));
    struct gpul_error err = {0};
    assert_int_equal(gpul_deframer_fill(&d, 0, &err), GPUL_EPROTO);
    assert_string_equal(err.text, "the stream is broken: protocol violation");
    gpul_deframer_release(&d);
}

/* A caller that feeds without taking frames out meets a bound. */
static void test_bound(void **state)
{
    (void)state;
    static uint8_t piece[GPUL_READ_BYTES_MAX] = {0, 0x20, 0, 0, 0x32};
    struct gpul_deframer d;
    gpul_deframer_init(&d, GPUL_PEER_OPERATOR);
    int rc = 0;
    size_t fed = 0;
    struct gpul_error err = {0};
    while (rc == 0 && fed < 2 * GPUL_JOB_BYTES_MAX) {
        rc = gpul_deframer_feed(&d, piece, sizeof(piece), &err);
        fed += sizeof(piece);
    }
    assert_int_equal(rc, GPUL_ELIMIT);
    assert_string_equal(err.text, "65536 bytes were not taken: over a limit");
    gpul_deframer_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_refused_early),
        cmocka_unit_test(test_good_before_bad),
        cmocka_unit_test(test_phase),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
