/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/validate.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "proto/text.h"

static int check_size(const struct gpul_field_rule *rule, size_t n,
                      struct gpul_error *err)
{
    if (n < rule->min) {
        return gpul_fail(err, GPUL_EPROTO,
                         n == 0 ? "is empty" : "is too short");
    }
    if (n > rule->max) {
        return gpul_fail(err, GPUL_EPROTO, "has %zu bytes, at most %llu", n,
                         (unsigned long long)rule->max);
    }
    return 0;
}

static int check_text(const struct gpul_field_rule *rule, const char *text,
                      struct gpul_error *err)
{
    enum gpul_text_kind kind =
        rule->kind == GPUL_FIELD_NAME
            ? GPUL_TEXT_NAME
            : (rule->kind == GPUL_FIELD_LINE ? GPUL_TEXT_LINE
                                             : GPUL_TEXT_LINES);
    int rc = check_size(rule, strlen(text), err);
    if (rc == 0 && !gpul_text_is_valid(text, kind)) {
        rc = gpul_fail(err, GPUL_EPROTO, "has a character that may not be");
    }
    return rc;
}

static int check_bytes(const struct gpul_field_rule *rule,
                       const ProtobufCBinaryData *bytes, struct gpul_error *err)
{
    int rc = check_size(rule, bytes->len, err);
    if (rc == 0 && rule->kind == GPUL_FIELD_CSTRING && bytes->len > 0 &&
        memchr(bytes->data, 0, bytes->len) != NULL) {
        rc = gpul_fail(err, GPUL_EPROTO, "has a NUL byte");
    }
    return rc;
}

static int check_integer(const struct gpul_field_rule *rule, uint64_t value,
                         struct gpul_error *err)
{
    if (value < rule->min || value > rule->max) {
        return gpul_fail(err, GPUL_EPROTO, "is %llu, not within %llu to %llu",
                         (unsigned long long)value,
                         (unsigned long long)rule->min,
                         (unsigned long long)rule->max);
    }
    return 0;
}

static int check_number(const struct gpul_field_rule *rule, ProtobufCType type,
                        const void *value, struct gpul_error *err)
{
    if (type == PROTOBUF_C_TYPE_DOUBLE) {
        double number = *(const double *)value;
        if (!isfinite(number) || number < 0) {
            return gpul_fail(err, GPUL_EPROTO, "is not a positive number");
        }
        return 0;
    }
    bool is_long =
        type == PROTOBUF_C_TYPE_UINT64 || type == PROTOBUF_C_TYPE_FIXED64;
    return check_integer(
        rule, is_long ? *(const uint64_t *)value : *(const uint32_t *)value,
        err);
}

static int check_choice(const struct gpul_field_rule *rule,
                        const ProtobufCEnumDescriptor *descriptor, int value,
                        struct gpul_error *err)
{
    if (protobuf_c_enum_descriptor_get_value(descriptor, value) == NULL ||
        (int64_t)value < (int64_t)rule->min) {
        return gpul_fail(err, GPUL_EPROTO, "has no value %d", value);
    }
    return 0;
}

/* One value: that of a single field, or an element of a repeated one. */
static int check_value(const struct gpul_field_rule *rule,
                       const ProtobufCFieldDescriptor *field, const void *value,
                       struct gpul_error *err)
{
    switch (rule->kind) {
    case GPUL_FIELD_NUMBER:
        return check_number(rule, field->type, value, err);
    case GPUL_FIELD_FLAG:
        return 0;
    case GPUL_FIELD_CHOICE:
        return check_choice(rule, field->descriptor, *(const int *)value, err);
    case GPUL_FIELD_NAME:
    case GPUL_FIELD_LINE:
    case GPUL_FIELD_LINES:
        return check_text(rule, *(const char *const *)value, err);
    case GPUL_FIELD_CSTRING:
    case GPUL_FIELD_DATA:
        return check_bytes(rule, value, err);
    case GPUL_FIELD_MESSAGE: {
        const ProtobufCMessage *body = *(const ProtobufCMessage *const *)value;
        if (body != NULL) {
            return gpul_body_check(rule->body, body, err);
        }
        return rule->is_optional ? 0
                                 : gpul_fail(err, GPUL_EPROTO, "is missing");
    }
    }
    return gpul_fail(err, GPUL_EPROTO, "has no rule");
}

/* Bytes from one element of a repeated field to the next. */
static size_t element_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default: /* string, message */
        return sizeof(void *);
    }
}

static int check_list(const struct gpul_field_rule *rule,
                      const ProtobufCFieldDescriptor *field, const char *base,
                      struct gpul_error *err)
{
    size_t count =
        *(const size_t *)(const void *)(base + field->quantifier_offset);
    if (count < rule->count_min || count > rule->count_max) {
        return gpul_fail(err, GPUL_EPROTO,
                         "has %zu entries, not within %zu to %zu", count,
                         rule->count_min, rule->count_max);
    }
    const char *values =
        *(const char *const *)(const void *)(base + field->offset);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = check_value(rule, field, values + i * element_bytes(field->type),
                         err);
    }
    return rc;
}

/* protobuf-c takes a field number 0 when it is not in its shortest form,
 * and writes it in a form that it does not take. */
int gpul_unknown_check(const ProtobufCMessage *message, struct gpul_error *err)
{
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        if (message->unknown_fields[i].tag == 0) {
            return gpul_fail(err, GPUL_EPROTO, "has a field of number 0");
        }
    }
    return 0;
}

int gpul_body_check(const struct gpul_body_rule *rule,
                    const ProtobufCMessage *message, struct gpul_error *err)
{
    assert(rule->field_count == rule->descriptor->n_fields);
    const char *base = (const char *)message;
    for (size_t i = 0; i < rule->field_count; i++) {
        const ProtobufCFieldDescriptor *field = &rule->descriptor->fields[i];
        const struct gpul_field_rule *field_rule = &rule->fields[i];
        int rc =
            field_rule->count_max > 0
                ? check_list(field_rule, field, base, err)
                : check_value(field_rule, field, base + field->offset, err);
        if (rc != 0) {
            return gpul_wrap(err, rc, "%s", field_rule->name);
        }
    }
    int rc = gpul_unknown_check(message, err);
    return rc != 0 || rule->check == NULL ? rc : rule->check(message, err);
}
