/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that were damaged or made to hurt: whatever the bytes are, decoding
 * ends in an error or in a message with one meaning, within its budget.
 */
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

/* malloc rounds the few blocks of a decode up, to pages at most. */
#define ROUNDING_BYTES (16u << 10)

static size_t budget_of(size_t n)
{
    return GPUL_DECODE_BUDGET_FACTOR * n + GPUL_DECODE_BUDGET_BYTES +
           ROUNDING_BYTES;
}

/* Encoded and decoded again, the message gives the same bytes. */
static void assert_one_meaning(const Gpul__Frame *frame, enum gpul_peer from)
{
    struct gpul_buf first, second;
    gpul_buf_init(&first, GPUL_FRAME_BYTES_MAX);
    gpul_buf_init(&second, GPUL_FRAME_BYTES_MAX);
    assert_int_equal(gpul_message_encode(&first, frame, NULL), 0);
    Gpul__Frame *again;
    assert_int_equal(
        gpul_message_decode(&again, first.data + GPUL_FRAME_PREFIX_BYTES,
                            first.used - GPUL_FRAME_PREFIX_BYTES, from, NULL),
        0);
    assert_int_equal(gpul_message_encode(&second, again, NULL), 0);
    assert_int_equal(first.used, second.used);
    assert_memory_equal(first.data, second.data, first.used);
    gpul_message_release(again);
    gpul_buf_release(&second);
    gpul_buf_release(&first);
}

/* Returns whether it decoded. */
static int try_decode(const uint8_t *bytes, size_t n, enum gpul_peer from)
{
    struct gpul_error err = {0};
    Gpul__Frame *frame;
    memory_watch();
    int rc = gpul_message_decode(&frame, bytes, n, from, &err);
    assert_true(memory_peak() <= budget_of(n));
    if (rc != 0) {
        assert_null(frame);
        assert_int_equal(memory_held(), 0);
        assert_true(rc == GPUL_EPROTO || rc == GPUL_ELIMIT);
        assert_true(err.text[0] != 0);
        return 0;
    }
    assert_one_meaning(frame, from);
    gpul_message_release(frame);
    assert_int_equal(memory_held(), 0);
    return 1;
}

/* Every message cut off at every byte. Only between two fields of the frame
 * can a message end early and still be one: before each of its two numbers. */
static void test_truncated(void **state)
{
    (void)state;
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        struct gpul_buf b;
        gpul_buf_init(&b, GPUL_FRAME_BYTES_MAX);
        sample_append(&b, type);
        size_t n = b.used - GPUL_FRAME_PREFIX_BYTES;
        int decoded = 0;
        for (size_t cut = 0; cut < n; cut++) {
            /* A copy of its own, so that a sanitizer sees its end. */
            uint8_t *part = test_malloc(cut + 1);
            memcpy(part, b.data + GPUL_FRAME_PREFIX_BYTES, cut);
            decoded += try_decode(part, cut, sample_sender(type));
            test_free(part);
        }
        assert_int_equal(decoded, 2);
        gpul_buf_release(&b);
    }
}

/* Every message with every bit flipped, one at a time. */
static void test_flipped(void **state)
{
    (void)state;
    size_t refused = 0;
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        struct gpul_buf b;
        gpul_buf_init(&b, GPUL_FRAME_BYTES_MAX);
        sample_append(&b, type);
        uint8_t *body = b.data + GPUL_FRAME_PREFIX_BYTES;
        size_t n = b.used - GPUL_FRAME_PREFIX_BYTES;
        for (size_t bit = 0; bit < 8 * n; bit++) {
            body[bit / 8] ^= (uint8_t)(1u << bit % 8);
            refused += !try_decode(body, n, sample_sender(type));
            body[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_int_equal(try_decode(body, n, sample_sender(type)), 1);
        gpul_buf_release(&b);
    }
    assert_true(refused > 1000);
}

/* Feed a stream and decode what comes out of it; how many bodies that were.
 * The stream may be broken, or wait for more. */
static int run_stream(const uint8_t *bytes, size_t n, enum gpul_peer from)
{
    struct gpul_deframer d;
    struct gpul_error err = {0};
    const uint8_t *body;
    size_t body_bytes;
    int bodies = 0, rc;
    memory_watch();
    gpul_deframer_init(&d, from);
    rc = gpul_deframer_feed(&d, bytes, n, &err);
    while (rc == 0 &&
           (rc = gpul_deframer_next(&d, &body, &body_bytes, &err)) == 1) {
        Gpul__Frame *frame;
        rc = gpul_message_decode(&frame, body, body_bytes, from, &err);
        gpul_message_release(frame);
        bodies++;
    }
    assert_true(rc == 0 || rc == GPUL_EPROTO || rc == GPUL_ELIMIT);
    assert_int_equal(rc, err.status);
    assert_true(memory_peak() <= budget_of(n));
    gpul_deframer_release(&d);
    assert_int_equal(memory_held(), 0);
    return bodies;
}

/* The stream around them: a frame that is cut off is waited for, and a length
 * that is wrong in any bit costs no memory and, where more is announced than
 * came, gives nothing. */
static void test_stream(void **state)
{
    (void)state;
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        enum gpul_peer from = sample_sender(type);
        struct gpul_buf b;
        gpul_buf_init(&b, GPUL_FRAME_BYTES_MAX);
        sample_append(&b, type);
        size_t n = b.used - GPUL_FRAME_PREFIX_BYTES;
        for (size_t cut = 0; cut < b.used; cut++) {
            assert_int_equal(run_stream(b.data, cut, from), 0);
        }
        for (size_t bit = 0; bit < 8 * GPUL_FRAME_PREFIX_BYTES; bit++) {
            size_t length = n ^ (size_t)1 << bit;
            b.data[3 - bit / 8] ^= (uint8_t)(1u << bit % 8);
            int bodies = run_stream(b.data, b.used, from);
            assert_true(length > 0 && length < n ? bodies >= 1 : bodies == 0);
            b.data[3 - bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_int_equal(run_stream(b.data, b.used, from), 1);
        gpul_buf_release(&b);
    }
}

/* A frame body of about `n` bytes: a body field of the type that holds `head`
 * and then `unit` again and again. */
static size_t fill(uint8_t *bytes, size_t n, uint32_t type, const char *head,
                   size_t head_bytes, const char *unit, size_t unit_bytes)
{
    uint8_t *p = bytes;
    size_t units = (n - head_bytes - 5) / unit_bytes;
    size_t body_bytes = head_bytes + units * unit_bytes;
    if (type < 16) {
        *p++ = (uint8_t)(type << 3 | 2);
    } else {
        *p++ = (uint8_t)((type << 3 | 2) | 0x80);
        *p++ = (uint8_t)(type >> 4);
    }
    *p++ = (uint8_t)(body_bytes | 0x80);
    *p++ = (uint8_t)(body_bytes >> 7 | 0x80);
    *p++ = (uint8_t)(body_bytes >> 14);
    memcpy(p, head, head_bytes);
    p += head_bytes;
    for (size_t i = 0; i < units; i++) {
        memcpy(p, unit, unit_bytes);
        p += unit_bytes;
    }
    return (size_t)(p - bytes);
}

/* Large frames that are all of one small thing end at the budget or at a
 * limit. */
static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        const char *head;
        size_t head_bytes;
        const char *unit;
        size_t unit_bytes;
        size_t n;
        const char *text;
    } cases[] = {
        /* unknown fields of number 15 */
        {GPUL__FRAME__BODY_IDLE, "", 0, "\x78\x01", 2, 60005,
         "decoding \"idle\" of 60005 bytes: over a limit"},
        /* empty strings, then strings of one byte */
        {GPUL__FRAME__BODY_IDLE, "", 0, "\x0a\0", 2, 60005,
         "decoding \"idle\" of 60005 bytes: over a limit"},
        {GPUL__FRAME__BODY_IDLE, "", 0, "\x0a\1x", 3, 30005,
         "decoding \"idle\" of 30005 bytes: over a limit"},
        /* empty messages */
        {GPUL__FRAME__BODY_EXITS, "", 0, "\x0a\0", 2, 60005,
         "decoding \"exits\" of 60004 bytes: over a limit"},
        /* a packed list of 59,989 ports */
        {GPUL__FRAME__BODY_ROSTER, "\x10\1\x20\1\x2a\1a\x32\xd5\xd4\3", 11,
         "\1", 1, 60005,
         "roster: port_bases: has 59989 entries, not within 1 to 896"},
        /* groups, which no version has and which could nest */
        {GPUL__FRAME__BODY_IDLE, "", 0, "\x7b", 1, 60005,
         "\"idle\" is malformed"},
    };
    static uint8_t bytes[60010];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n =
            fill(bytes, cases[i].n, cases[i].type, cases[i].head,
                 cases[i].head_bytes, cases[i].unit, cases[i].unit_bytes);
        struct gpul_error err = {0};
        Gpul__Frame *frame;
        memory_watch();
        int rc = gpul_message_decode(&frame, bytes, n,
                                     sample_sender(cases[i].type), &err);
        assert_string_equal(err.text, cases[i].text);
        assert_true(rc == GPUL_EPROTO || rc == GPUL_ELIMIT);
        assert_true(memory_peak() <= budget_of(n));
        assert_int_equal(memory_held(), 0);
    }
}

/* The budget leaves room for what people do: a command of many short
 * arguments. */
static void test_many_arguments(void **state)
{
    (void)state;
    static uint8_t argument[] = "f.txt";
    static ProtobufCBinaryData arguments[10000];
    enum { COUNT = sizeof(arguments) / sizeof(arguments[0]) };
    for (size_t i = 0; i < COUNT; i++) {
        arguments[i] = (ProtobufCBinaryData){5, argument};
    }
    Gpul__Command command = GPUL__COMMAND__INIT;
    command.n_arguments = COUNT;
    command.arguments = arguments;
    Gpul__Frame frame = sample_frame(GPUL__FRAME__BODY_JOB);
    Gpul__Job job = *frame.job;
    job.command = &command;
    frame.job = &job;
    struct gpul_buf b;
    gpul_buf_init(&b, GPUL_JOB_BYTES_MAX);
    assert_int_equal(gpul_message_encode(&b, &frame, NULL), 0);
    Gpul__Frame *decoded;
    struct gpul_error err = {0};
    gpul_message_decode(&decoded, b.data + GPUL_FRAME_PREFIX_BYTES,
                        b.used - GPUL_FRAME_PREFIX_BYTES, GPUL_PEER_OPERATOR,
                        &err);
    assert_string_equal(err.text, "");
    assert_int_equal(decoded->job->command->n_arguments, COUNT);
    assert_memory_equal(decoded->job->command->arguments[COUNT - 1].data,
                        "f.txt", 5);
    gpul_message_release(decoded);
    gpul_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated),      cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_stream),         cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_many_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
