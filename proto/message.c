/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/message.h"

#include <stdbool.h>
#include <stdlib.h>

#include "proto/arena.h"
#include "proto/limits.h"
#include "proto/validate.h"

#define NODE GPUL_PEER_NODE
#define COORDINATOR GPUL_PEER_COORDINATOR
#define OPERATOR GPUL_PEER_OPERATOR
#define DESK GPUL_PEER_DESK
#define PROBE GPUL_PEER_PROBE
#define AGENT GPUL_PEER_AGENT

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct gpul_message_rule rules[] = {
    [GPUL__FRAME__BODY_HELLO] = {"hello", GPUL_HELLO_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_WELCOME] = {"welcome", GPUL_SMALL_BYTES_MAX,
                                   COORDINATOR},
    [GPUL__FRAME__BODY_REFUSE] = {"refuse", GPUL_NOTE_BYTES_MAX,
                                  COORDINATOR | DESK},
    [GPUL__FRAME__BODY_HEARTBEAT] = {"heartbeat", GPUL_HEARTBEAT_BYTES_MAX,
                                     NODE},
    [GPUL__FRAME__BODY_HEARTBEAT_ACK] = {"heartbeat_ack",
                                         GPUL_HEARTBEAT_BYTES_MAX, COORDINATOR},
    [GPUL__FRAME__BODY_JOB] = {"job", GPUL_JOB_BYTES_MAX,
                               COORDINATOR | OPERATOR},
    [GPUL__FRAME__BODY_ASSIGN] = {"assign", GPUL_SMALL_BYTES_MAX, COORDINATOR},
    [GPUL__FRAME__BODY_READY] = {"ready", GPUL_NOTE_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_ROSTER] = {"roster", GPUL_FRAME_BYTES_MAX, COORDINATOR},
    [GPUL__FRAME__BODY_PROBE_START] = {"probe_start",
                                       GPUL_PROBE_BEGIN_BYTES_MAX,
                                       COORDINATOR | AGENT},
    [GPUL__FRAME__BODY_PROBE_LISTENING] = {"probe_listening",
                                           GPUL_SMALL_BYTES_MAX, NODE | PROBE},
    [GPUL__FRAME__BODY_PROBE_CONNECT] = {"probe_connect", GPUL_SMALL_BYTES_MAX,
                                         COORDINATOR | AGENT},
    [GPUL__FRAME__BODY_PROBE_RESULT] = {"probe_result", GPUL_FRAME_BYTES_MAX,
                                        NODE | PROBE},
    [GPUL__FRAME__BODY_LAUNCH] = {"launch", GPUL_SMALL_BYTES_MAX, COORDINATOR},
    [GPUL__FRAME__BODY_EXITS] = {"exits", GPUL_EXITS_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_STOP] = {"stop", GPUL_SMALL_BYTES_MAX,
                                COORDINATOR | AGENT},
    [GPUL__FRAME__BODY_IDLE] = {"idle", GPUL_FRAME_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_FINISH] = {"finish", GPUL_SMALL_BYTES_MAX, COORDINATOR},
    [GPUL__FRAME__BODY_OUTPUT] = {"output", GPUL_OUTPUT_FRAME_BYTES_MAX,
                                  NODE | DESK},
    [GPUL__FRAME__BODY_CREDIT] = {"credit", GPUL_SMALL_BYTES_MAX,
                                  COORDINATOR | OPERATOR},
    [GPUL__FRAME__BODY_ENV_REPORT] = {"env_report", GPUL_ENV_REPORT_BYTES_MAX,
                                      NODE | DESK},
    [GPUL__FRAME__BODY_EVENT] = {"event", GPUL_EVENT_BYTES_MAX, DESK},
    [GPUL__FRAME__BODY_JOB_END] = {"job_end", GPUL_JOB_END_BYTES_MAX, DESK},
    [GPUL__FRAME__BODY_CANCEL] = {"cancel", GPUL_SMALL_BYTES_MAX, OPERATOR},
    [GPUL__FRAME__BODY_NODE_GONE] = {"node_gone", GPUL_NOTE_BYTES_MAX,
                                     OPERATOR},
    [GPUL__FRAME__BODY_NOTICE] = {"notice", GPUL_NOTE_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_PROBE_FACTS] = {"probe_facts",
                                       GPUL_PROBE_FACTS_BYTES_MAX,
                                       NODE | PROBE},
    [GPUL__FRAME__BODY_PROBE_BEGIN] = {"probe_begin",
                                       GPUL_PROBE_BEGIN_BYTES_MAX,
                                       COORDINATOR | AGENT},
    [GPUL__FRAME__BODY_PROBE_ID] = {"probe_id", GPUL_SMALL_BYTES_MAX,
                                    NODE | PROBE},
    [GPUL__FRAME__BODY_PROBE_IDS] = {"probe_ids", GPUL_FRAME_BYTES_MAX,
                                     COORDINATOR | AGENT},
    [GPUL__FRAME__BODY_PROBE_PHASE] = {"probe_phase", GPUL_NOTE_BYTES_MAX,
                                       NODE | PROBE},
    [GPUL__FRAME__BODY_LEAVE] = {"leave", GPUL_FRAME_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_SIGNAL] = {"signal", GPUL_SMALL_BYTES_MAX,
                                  COORDINATOR | OPERATOR},
    [GPUL__FRAME__BODY_INPUT] = {"input", GPUL_INPUT_FRAME_BYTES_MAX,
                                 COORDINATOR | OPERATOR},
    [GPUL__FRAME__BODY_INPUT_CREDIT] = {"input_credit", GPUL_SMALL_BYTES_MAX,
                                        NODE | DESK},
    [GPUL__FRAME__BODY_STALL] = {"stall", GPUL_STALL_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_LINK_START] = {"link_start", GPUL_SMALL_BYTES_MAX,
                                      COORDINATOR},
    [GPUL__FRAME__BODY_LINK_LISTENING] = {"link_listening",
                                          GPUL_LINK_LISTENING_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_LINK_PEERS] = {"link_peers", GPUL_LINK_PEERS_BYTES_MAX,
                                      COORDINATOR},
    [GPUL__FRAME__BODY_LINK_REPORT] = {"link_report",
                                       GPUL_LINK_REPORT_BYTES_MAX, NODE},
    [GPUL__FRAME__BODY_PAIR_START] = {"pair_start", GPUL_NOTE_BYTES_MAX,
                                      COORDINATOR | AGENT},
    [GPUL__FRAME__BODY_PAIR_LISTENING] = {"pair_listening", GPUL_NOTE_BYTES_MAX,
                                          NODE | PROBE},
    [GPUL__FRAME__BODY_TRIAL_START] = {"trial_start", GPUL_SMALL_BYTES_MAX,
                                       COORDINATOR | AGENT},
    [GPUL__FRAME__BODY_TRIAL_RESULT] = {"trial_result", GPUL_TRIAL_BYTES_MAX,
                                        NODE | PROBE},
    [GPUL__FRAME__BODY_PAIR_END] = {"pair_end", GPUL_NOTE_BYTES_MAX,
                                    COORDINATOR | AGENT | NODE},
    [GPUL__FRAME__BODY_SURVEY_START] = {"survey_start",
                                        GPUL_PROBE_BEGIN_BYTES_MAX,
                                        COORDINATOR | AGENT},
    [GPUL__FRAME__BODY_SURVEY] = {"survey", GPUL_SURVEY_BYTES_MAX,
                                  NODE | PROBE},
    [GPUL__FRAME__BODY_CLOCK_PING] = {"clock_ping", GPUL_SMALL_BYTES_MAX,
                                      COORDINATOR},
    [GPUL__FRAME__BODY_CLOCK_PONG] = {"clock_pong", GPUL_SMALL_BYTES_MAX, NODE},
};

/* The structures of a message with a few strings. */
enum { FIRST_BYTES = 1024 };

/* What a decode hands out: the frame, and the memory that it points into. */
struct decoded {
    Gpul__Frame frame; /* first: a frame's address is its block's */
    struct gpul_arena arena;
};

const struct gpul_message_rule *gpul_message_rule(uint32_t type)
{
    bool is_known = type < COUNT(rules) && rules[type].name != NULL;
    return is_known ? &rules[type] : NULL;
}

static const char *peer_name(enum gpul_peer from)
{
    switch (from) {
    case GPUL_PEER_NODE:
        return "a node";
    case GPUL_PEER_COORDINATOR:
    case GPUL_PEER_DESK:
        return "the coordinator";
    case GPUL_PEER_OPERATOR:
        return "the front end";
    case GPUL_PEER_PROBE:
        return "a probe";
    case GPUL_PEER_AGENT:
        return "the agent";
    }
    return "this peer";
}

/* The key is a varint: (field << 3) | wire type, and a message has wire type
 * 2. Every body field is below 2048, so two bytes hold its key. */
int gpul_message_type(const uint8_t *bytes, size_t n)
{
    enum { WIRE_TYPE_MESSAGE = 2, MORE = 0x80 };
    if (n == 0 || (n == 1 && (bytes[0] & MORE) != 0)) {
        return 0;
    }
    uint32_t key = bytes[0];
    if ((bytes[0] & MORE) != 0) {
        if (bytes[1] == 0 || (bytes[1] & MORE) != 0) {
            return GPUL_EPROTO;
        }
        key = (key & 0x7f) | (uint32_t)bytes[1] << 7;
    }
    uint32_t type = key >> 3;
    if ((key & 7) != WIRE_TYPE_MESSAGE || gpul_message_rule(type) == NULL) {
        return GPUL_EPROTO;
    }
    return (int)type;
}

int gpul_message_judge(int type, size_t bytes, enum gpul_peer from,
                       uint64_t allowed, struct gpul_error *err)
{
    const struct gpul_message_rule *rule =
        type > 0 ? gpul_message_rule((uint32_t)type) : NULL;
    if (rule == NULL) {
        return gpul_fail(err, GPUL_EPROTO, "unknown message from %s",
                         peer_name(from));
    }
    if ((rule->senders & from) == 0) {
        return gpul_fail(err, GPUL_EPROTO, "%s may not send \"%s\"",
                         peer_name(from), rule->name);
    }
    if ((allowed & GPUL_MESSAGE_BIT(type)) == 0) {
        return gpul_fail(err, GPUL_EPROTO, "%s may not send \"%s\" now",
                         peer_name(from), rule->name);
    }
    if (bytes > rule->bytes_max) {
        return gpul_fail(err, GPUL_ELIMIT,
                         "\"%s\" has %zu bytes, at most %u are allowed",
                         rule->name, bytes, rule->bytes_max);
    }
    return 0;
}

int gpul_message_encode(struct gpul_buf *out, const Gpul__Frame *frame,
                        struct gpul_error *err)
{
    const struct gpul_message_rule *rule =
        gpul_message_rule((uint32_t)frame->body_case);
    /* All bodies are pointers in one union; any of them tells. */
    if (rule == NULL || frame->hello == NULL) {
        return gpul_fail(err, GPUL_EINVAL, "a frame without a body");
    }
    size_t n = gpul__frame__get_packed_size(frame);
    if (n > rule->bytes_max) {
        return gpul_fail(err, GPUL_ELIMIT,
                         "\"%s\" has %zu bytes, at most %u are allowed",
                         rule->name, n, rule->bytes_max);
    }
    uint8_t *p = gpul_buf_extend(out, GPUL_FRAME_PREFIX_BYTES + n);
    if (p == NULL) {
        bool is_full = GPUL_FRAME_PREFIX_BYTES + n > out->bytes_max - out->used;
        return gpul_fail(err, is_full ? GPUL_ELIMIT : GPUL_ENOMEM,
                         "no %s for \"%s\" of %zu bytes",
                         is_full ? "room" : "memory", rule->name, n);
    }
    for (unsigned i = 0; i < GPUL_FRAME_PREFIX_BYTES; i++) {
        p[i] = (uint8_t)(n >> (8 * (GPUL_FRAME_PREFIX_BYTES - 1 - i)));
    }
    gpul__frame__pack(frame, p + GPUL_FRAME_PREFIX_BYTES);
    return 0;
}

/* Unpack into the block's arena and judge what came out. */
static int unpack(struct decoded *block, const uint8_t *bytes, size_t n,
                  int type, struct gpul_error *err)
{
    const char *name = rules[type].name;
    ProtobufCAllocator allocator = gpul_arena_allocator(&block->arena);
    const Gpul__Frame *frame = gpul__frame__unpack(&allocator, n, bytes);
    if (frame == NULL) {
        int status = block->arena.status;
        return status == 0
                   ? gpul_fail(err, GPUL_EPROTO, "\"%s\" is malformed", name)
                   : gpul_fail(err, status, "decoding \"%s\" of %zu bytes: %s",
                               name, n, gpul_status_text(status));
    }
    if ((int)frame->body_case != type) {
        return gpul_fail(err, GPUL_EPROTO, "\"%s\" has a second body", name);
    }
    int rc = gpul_unknown_check(&frame->base, err);
    if (rc == 0) {
        rc = gpul_body_check(gpul_body_rule((uint32_t)type),
                             (const ProtobufCMessage *)frame->hello, err);
    }
    if (rc != 0) {
        return gpul_wrap(err, rc, "%s", name);
    }
    block->frame = *frame;
    return 0;
}

int gpul_message_decode(Gpul__Frame **out, const uint8_t *bytes, size_t n,
                        enum gpul_peer from, struct gpul_error *err)
{
    *out = NULL;
    int type = gpul_message_type(bytes, n);
    int rc = gpul_message_judge(type, n, from, GPUL_MESSAGE_ANY, err);
    if (rc != 0) {
        return rc;
    }
    struct decoded *block = malloc(sizeof(*block));
    if (block == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for a message");
    }
    /* One chunk for output and for anything small. */
    gpul_arena_init(&block->arena,
                    GPUL_DECODE_BUDGET_FACTOR * n + GPUL_DECODE_BUDGET_BYTES,
                    n + FIRST_BYTES);
    rc = unpack(block, bytes, n, type, err);
    if (rc != 0) {
        gpul_arena_release(&block->arena);
        free(block);
        return rc;
    }
    *out = &block->frame;
    return 0;
}

void gpul_message_release(Gpul__Frame *frame)
{
    if (frame != NULL) {
        struct decoded *block = (struct decoded *)frame;
        gpul_arena_release(&block->arena);
        free(block);
    }
}
