/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "proto/message.h"
#include "tests/lib/memory.h"
#include "tests/lib/samples.h"

#define PREFIX GPUL_FRAME_PREFIX_BYTES

static const enum gpul_peer peers[] = {
    GPUL_PEER_NODE, GPUL_PEER_COORDINATOR, GPUL_PEER_OPERATOR,
    GPUL_PEER_DESK, GPUL_PEER_PROBE,       GPUL_PEER_AGENT,
};
enum { PEER_COUNT = sizeof(peers) / sizeof(peers[0]) };

static struct gpul_buf encoded(const Gpul__Frame *frame)
{
    struct gpul_buf b;
    gpul_buf_init(&b, 4u << 20);
    assert_int_equal(gpul_message_encode(&b, frame, NULL), 0);
    return b;
}

static struct gpul_buf encoded_sample(uint32_t type)
{
    Gpul__Frame frame = sample_frame(type);
    return encoded(&frame);
}

static void assert_refused(const uint8_t *bytes, size_t n, enum gpul_peer from,
                           int status, const char *text)
{
    Gpul__Frame *frame = (Gpul__Frame *)1;
    struct gpul_error err = {0};
    assert_int_equal(gpul_message_decode(&frame, bytes, n, from, &err), status);
    assert_null(frame);
    assert_int_equal(err.status, status);
    assert_string_equal(err.text, text);
}

/* Every type survives the way out and in, from every peer that may send it,
 * and is packed to the same bytes again. */
static void test_round_trip(void **state)
{
    (void)state;
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        struct gpul_buf b = encoded_sample(type);
        size_t n = b.used - PREFIX;
        uint8_t prefix[PREFIX] = {0, 0, (uint8_t)(n >> 8), (uint8_t)n};
        assert_memory_equal(b.data, prefix, PREFIX);
        assert_int_equal(gpul_message_type(b.data + PREFIX, n), type);
        for (size_t i = 0; i < PEER_COUNT; i++) {
            if ((gpul_message_rule(type)->senders & peers[i]) == 0) {
                continue;
            }
            Gpul__Frame *frame;
            struct gpul_error err = {0};
            int rc =
                gpul_message_decode(&frame, b.data + PREFIX, n, peers[i], &err);
            assert_string_equal(err.text, "");
            assert_int_equal(rc, 0);
            assert_int_equal(frame->body_case, type);
            assert_int_equal(frame->epoch, 1);
            assert_int_equal(frame->generation, 2);
            struct gpul_buf again = encoded(frame);
            assert_int_equal(again.used, b.used);
            assert_memory_equal(again.data, b.data, b.used);
            gpul_buf_release(&again);
            gpul_message_release(frame);
        }
        gpul_buf_release(&b);
    }
}

/* Who may send what: the table of docs/protocol.md's channels. */
static void test_senders(void **state)
{
    (void)state;
    const unsigned n = GPUL_PEER_NODE, c = GPUL_PEER_COORDINATOR;
    const unsigned o = GPUL_PEER_OPERATOR, d = GPUL_PEER_DESK;
    const unsigned p = GPUL_PEER_PROBE, a = GPUL_PEER_AGENT;
    const struct {
        const char *name;
        unsigned senders;
    } want[] = {
        {"hello", n},
        {"welcome", c},
        {"refuse", c | d},
        {"heartbeat", n},
        {"heartbeat_ack", c},
        {"job", c | o},
        {"assign", c},
        {"ready", n},
        {"roster", c},
        {"probe_start", c | a},
        {"probe_listening", n | p},
        {"probe_connect", c | a},
        {"probe_result", n | p},
        {"launch", c},
        {"exits", n},
        {"stop", c | a},
        {"idle", n},
        {"finish", c},
        {"output", n | d},
        {"credit", c | o},
        {"env_report", n | d},
        {"event", d},
        {"job_end", d},
        {"cancel", o},
        {"node_gone", o},
        {"notice", n},
        {"probe_facts", n | p},
        {"probe_begin", c | a},
        {"probe_id", n | p},
        {"probe_ids", c | a},
        {"probe_phase", n | p},
        {"leave", n},
        {"signal", c | o},
        {"input", c | o},
        {"input_credit", n | d},
        {"stall", n},
        {"link_start", c},
        {"link_listening", n},
        {"link_peers", c},
        {"link_report", n},
        {"pair_start", c | a},
        {"pair_listening", n | p},
        {"trial_start", c | a},
        {"trial_result", n | p},
        {"pair_end", n | c | a},
        {"survey_start", c | a},
        {"survey", n | p},
        {"clock_ping", c},
        {"clock_pong", n},
    };
    size_t at = 0;
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        const struct gpul_message_rule *rule = gpul_message_rule(type);
        assert_string_equal(rule->name, want[at].name);
        assert_int_equal(rule->senders, want[at++].senders);
    }
    assert_null(gpul_message_rule(0));
    assert_null(gpul_message_rule(SAMPLE_TYPE_MAX + 1));
    assert_null(gpul_message_rule(UINT32_MAX));
}

/* A type is refused from every peer that may not send it, before its size or
 * its body is looked at. */
static void test_wrong_sender(void **state)
{
    (void)state;
    static uint8_t zeros[GPUL_JOB_BYTES_MAX + 1];
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        struct gpul_buf b = encoded_sample(type);
        memcpy(zeros, b.data + PREFIX, 2);
        gpul_buf_release(&b);
        for (size_t i = 0; i < PEER_COUNT; i++) {
            if ((gpul_message_rule(type)->senders & peers[i]) == 0) {
                Gpul__Frame *frame;
                assert_int_equal(gpul_message_decode(&frame, zeros,
                                                     sizeof(zeros), peers[i],
                                                     NULL),
                                 GPUL_EPROTO);
            }
        }
    }
    uint8_t hello[] = {0x0a, 0};
    assert_refused(hello, 2, GPUL_PEER_PROBE, GPUL_EPROTO,
                   "a probe may not send \"hello\"");
    assert_refused(hello, 2, GPUL_PEER_OPERATOR, GPUL_EPROTO,
                   "the front end may not send \"hello\"");
}

/* A frame one byte over the maximum of its type is refused unread. */
static void test_maximum(void **state)
{
    (void)state;
    static uint8_t hello[GPUL_HELLO_BYTES_MAX + 1] = {0x0a};
    assert_refused(hello, sizeof(hello), GPUL_PEER_NODE, GPUL_ELIMIT,
                   "\"hello\" has 4097 bytes, at most 4096 are allowed");
    assert_refused(hello, sizeof(hello) - 1, GPUL_PEER_NODE, GPUL_EPROTO,
                   "\"hello\" is malformed");
}

/* What does not begin with the key of a body is no message. */
static void test_first_key(void **state)
{
    (void)state;
    const struct {
        uint8_t bytes[3];
        size_t n;
        int type;
    } cases[] = {
        {{0}, 0, 0},                    /* nothing yet */
        {{0x82}, 1, 0},                 /* half a key */
        {{0x0a}, 1, 1},                 /* hello */
        {{0x82, 0x01}, 2, 16},          /* stop, the first of two bytes */
        {{0xd2, 0x01}, 2, 26},          /* notice */
        {{0xfa, 0x01}, 2, 31},          /* probe_phase */
        {{0x82, 0x02}, 2, 32},          /* leave */
        {{0xa2, 0x02}, 2, 36},          /* stall, the last */
        {{0xaa, 0x02}, 2, GPUL_EPROTO}, /* 37 */
        {{0x02}, 1, GPUL_EPROTO},       /* field 0 */
        {{0x08}, 1, GPUL_EPROTO},       /* hello as a varint */
        {{0x8a, 0x00}, 2, GPUL_EPROTO}, /* hello, not the shortest form */
        {{0xa0, 0x06}, 2, GPUL_EPROTO}, /* epoch first */
        {{0x8a, 0x80, 0x01}, 3, GPUL_EPROTO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(gpul_message_type(cases[i].bytes, cases[i].n),
                         cases[i].type);
    }
    assert_refused((const uint8_t *)"", 0, GPUL_PEER_NODE, GPUL_EPROTO,
                   "unknown message from a node");
}

/* The last of two bodies would win; the frame was judged by the first. */
static void test_second_body(void **state)
{
    (void)state;
    uint8_t bytes[] = {0x22, 2, 8, 1, 0x72, 0}; /* heartbeat, then launch */
    assert_refused(bytes, sizeof(bytes), GPUL_PEER_NODE, GPUL_EPROTO,
                   "\"heartbeat\" has a second body");
    assert_refused(bytes, 3, GPUL_PEER_NODE, GPUL_EPROTO,
                   "\"heartbeat\" is malformed");
}

/* A field that a newer version added is kept and passed on. */
static void test_unknown_field(void **state)
{
    (void)state;
    uint8_t bytes[] = {0x22, 5, 8, 1, 0xa2, 0x3e, 0}; /* field 1000: "" */
    Gpul__Frame *frame;
    assert_int_equal(
        gpul_message_decode(&frame, bytes, sizeof(bytes), GPUL_PEER_NODE, NULL),
        0);
    assert_int_equal(frame->heartbeat->sequence, 1);
    struct gpul_buf b = encoded(frame);
    assert_int_equal(b.used, PREFIX + sizeof(bytes));
    assert_memory_equal(b.data + PREFIX, bytes, sizeof(bytes));
    gpul_buf_release(&b);
    gpul_message_release(frame);
}

/* Field number 0 exists in no schema. protobuf-c takes it when it is written
 * in two bytes and could not read what it writes itself; found by fuzzing. */
static void test_field_zero(void **state)
{
    (void)state;
    uint8_t inner[] = {0x22, 3, 0x80, 0, 1};
    assert_refused(inner, sizeof(inner), GPUL_PEER_NODE, GPUL_EPROTO,
                   "heartbeat: has a field of number 0");
    uint8_t outer[] = {0x22, 0, 0x80, 0, 1};
    assert_refused(outer, sizeof(outer), GPUL_PEER_NODE, GPUL_EPROTO,
                   "heartbeat: has a field of number 0");
}

/* What cannot be sent leaves the buffer as it was, and says why. */
static void test_encode_failures(void **state)
{
    (void)state;
    struct gpul_buf b;
    struct gpul_error err = {0};
    gpul_buf_init(&b, 100);
    gpul_buf_append_text(&b, "before");

    Gpul__Frame empty = GPUL__FRAME__INIT;
    assert_int_equal(gpul_message_encode(&b, &empty, &err), GPUL_EINVAL);
    assert_string_equal(err.text, "a frame without a body");
    empty.body_case = GPUL__FRAME__BODY_HELLO;
    assert_int_equal(gpul_message_encode(&b, &empty, &err), GPUL_EINVAL);

    static char long_text[GPUL_NOTE_BYTES_MAX + 1];
    memset(long_text, 'x', sizeof(long_text) - 1);
    Gpul__Notice notice = GPUL__NOTICE__INIT;
    notice.text = long_text;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_NOTICE;
    frame.notice = &notice;
    assert_int_equal(gpul_message_encode(&b, &frame, &err), GPUL_ELIMIT);
    assert_string_equal(err.text,
                        "\"notice\" has 2055 bytes, at most 2048 are allowed");

    frame = sample_frame(GPUL__FRAME__BODY_HELLO);
    assert_int_equal(gpul_message_encode(&b, &frame, &err), GPUL_ELIMIT);
    assert_memory_equal(err.text, "no room for \"hello\" of ", 23);
    assert_true(b.is_failed);
    assert_int_equal(b.used, 6);
    assert_string_equal(gpul_buf_text(&b), "before");
    gpul_buf_release(&b);
}

/* Hostile frames that unpack to many times their size end at the budget, and
 * nothing is left of them. */
static void test_budget(void **state)
{
    (void)state;
    static uint8_t bytes[GPUL_ENV_REPORT_BYTES_MAX];
    /* env_report { entries {} entries {} ... }: two bytes each. */
    const uint8_t head[] = {0xaa, 0x01, 0xfb, 0xff, 0x0f};
    size_t n = sizeof(bytes);
    memcpy(bytes, head, sizeof(head));
    for (size_t i = sizeof(head); i < n; i += 2) {
        bytes[i] = 0x12;
    }
    n -= (n - sizeof(head)) % 2;
    bytes[2] = (uint8_t)(((n - sizeof(head)) & 0x7f) | 0x80);
    memory_watch();
    assert_refused(bytes, n, GPUL_PEER_NODE, GPUL_ELIMIT,
                   "decoding \"env_report\" of 262143 bytes: over a limit");
    size_t budget = GPUL_DECODE_BUDGET_FACTOR * n + GPUL_DECODE_BUDGET_BYTES;
    /* malloc rounds the few blocks up, to pages at most. */
    assert_in_range(memory_peak(), n, budget + (16u << 10));
    assert_int_equal(memory_held(), 0);
}

/* Without memory a decode says so, whichever allocation fails, and leaves
 * nothing behind. */
static void test_no_memory(void **state)
{
    (void)state;
    struct gpul_buf b = encoded_sample(GPUL__FRAME__BODY_JOB);
    size_t failures = 0;
    for (;;) {
        Gpul__Frame *frame;
        memory_watch();
        memory_fail_at(failures + 1);
        int rc = gpul_message_decode(&frame, b.data + PREFIX, b.used - PREFIX,
                                     GPUL_PEER_OPERATOR, NULL);
        memory_fail_at(0);
        if (rc == 0) {
            gpul_message_release(frame);
            break;
        }
        assert_int_equal(rc, GPUL_ENOMEM);
        assert_int_equal(memory_held(), 0);
        failures++;
    }
    assert_in_range(failures, 2, 10);
    gpul_message_release(NULL);
    gpul_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_senders),
        cmocka_unit_test(test_wrong_sender),
        cmocka_unit_test(test_maximum),
        cmocka_unit_test(test_first_key),
        cmocka_unit_test(test_second_body),
        cmocka_unit_test(test_unknown_field),
        cmocka_unit_test(test_field_zero),
        cmocka_unit_test(test_encode_failures),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
