/* SPDX-License-Identifier: Apache-2.0
 *
 * Is every field of a decoded message within limits.h? One table of rules
 * per message type, walked beside protobuf-c's own descriptors: a field
 * without a rule cannot exist (a test compares the two). Pure.
 */
#ifndef GPUL_PROTO_VALIDATE_H
#define GPUL_PROTO_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "common/error.h"

enum gpul_field_kind {
    GPUL_FIELD_NUMBER = 1, /* min <= value <= max; a double is finite too */
    GPUL_FIELD_FLAG,       /* bool */
    GPUL_FIELD_CHOICE,     /* a known value of the enum, >= min */
    GPUL_FIELD_NAME,       /* min <= bytes <= max, GPUL_TEXT_NAME */
    GPUL_FIELD_LINE,       /* the same, GPUL_TEXT_LINE */
    GPUL_FIELD_LINES,      /* the same, GPUL_TEXT_LINES */
    GPUL_FIELD_CSTRING,    /* bytes that become a C string: no NUL */
    GPUL_FIELD_DATA,       /* any bytes, min <= bytes <= max */
    GPUL_FIELD_MESSAGE,    /* valid by `body`; there, unless is_optional */
};

struct gpul_field_rule {
    const char *name; /* as in the schema */
    enum gpul_field_kind kind;
    uint64_t min;
    uint64_t max;
    size_t count_min; /* of a repeated field; min and max are per element */
    size_t count_max; /* 0: the field is not repeated */
    const struct gpul_body_rule *body;
    bool is_optional; /* MESSAGE: an older peer does not send it */
};

/* The rules of one message type. */
struct gpul_body_rule {
    const ProtobufCMessageDescriptor *descriptor;
    const struct gpul_field_rule *fields; /* in the order of the descriptor */
    size_t field_count;
    /* What no single field can tell; NULL: nothing. */
    int (*check)(const ProtobufCMessage *message, struct gpul_error *err);
};

/* `type` is the field number of the body in Frame; NULL if unknown. */
const struct gpul_body_rule *gpul_body_rule(uint32_t type);

/* Fields that a newer version may have added are kept and passed on; is any
 * of them none that a schema could have? Returns 0 or GPUL_EPROTO. */
int gpul_unknown_check(const ProtobufCMessage *message, struct gpul_error *err);

/* Returns 0, or GPUL_EPROTO with "field: what is wrong with it". */
int gpul_body_check(const struct gpul_body_rule *rule,
                    const ProtobufCMessage *message, struct gpul_error *err);

#endif
