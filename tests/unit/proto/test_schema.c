/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema, walked by protobuf-c's own descriptors: no message contains
 * itself, none nests deeper than four, and whatever has a length is bounded,
 * which each field with too long a value must show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "proto/message.h"
#include "proto/validate.h"
#include "tests/lib/samples.h"

enum { DEPTH_MAX = 4 }; /* levels of messages, the Frame included */

/* ---- shape --------------------------------------------------------------- */

/* `path` are the messages around this one, the outermost first. */
static void walk(const ProtobufCMessageDescriptor *path[DEPTH_MAX],
                 unsigned depth, const ProtobufCMessageDescriptor *message)
{
    for (unsigned i = 0; i < depth; i++) {
        if (path[i] == message) {
            fail_msg("%s contains itself", message->name);
        }
    }
    if (depth == DEPTH_MAX) {
        fail_msg("%s is deeper than %d", message->name, DEPTH_MAX);
        return;
    }
    path[depth] = message;
    for (unsigned i = 0; i < message->n_fields; i++) {
        if (message->fields[i].type == PROTOBUF_C_TYPE_MESSAGE) {
            walk(path, depth + 1, message->fields[i].descriptor);
        }
    }
}

/* A decoder without a bound of its depth cannot be made to recurse. */
static void test_no_recursion(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *path[DEPTH_MAX];
    walk(path, 0, &gpul__frame__descriptor);
}

/* ---- rules --------------------------------------------------------------- */

static bool kind_fits(const struct gpul_field_rule *rule,
                      const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return rule->kind == GPUL_FIELD_NAME || rule->kind == GPUL_FIELD_LINE ||
               rule->kind == GPUL_FIELD_LINES;
    case PROTOBUF_C_TYPE_BYTES:
        return rule->kind == GPUL_FIELD_CSTRING ||
               rule->kind == GPUL_FIELD_DATA;
    case PROTOBUF_C_TYPE_MESSAGE:
        return rule->kind == GPUL_FIELD_MESSAGE && rule->body != NULL &&
               rule->body->descriptor == field->descriptor;
    case PROTOBUF_C_TYPE_ENUM:
        return rule->kind == GPUL_FIELD_CHOICE;
    case PROTOBUF_C_TYPE_BOOL:
        return rule->kind == GPUL_FIELD_FLAG;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return rule->kind == GPUL_FIELD_NUMBER;
    default:
        return false; /* a type that the walker does not know */
    }
}

/* Lists of these are walked by the size of their elements. */
static bool list_is_known(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_UINT32 ||
           field->type == PROTOBUF_C_TYPE_BYTES ||
           field->type == PROTOBUF_C_TYPE_STRING ||
           field->type == PROTOBUF_C_TYPE_MESSAGE;
}

static void check_field(const struct gpul_field_rule *rule,
                        const ProtobufCFieldDescriptor *field)
{
    bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
    bool has_size =
        rule->kind >= GPUL_FIELD_NAME && rule->kind <= GPUL_FIELD_DATA;
    bool has_max = rule->kind == GPUL_FIELD_NUMBER || has_size;
    assert_string_equal(rule->name, field->name);
    assert_true(kind_fits(rule, field));
    assert_int_equal(rule->count_max > 0, is_list);
    assert_true(!is_list || list_is_known(field));
    assert_true(rule->count_min <= rule->count_max);
    assert_int_equal(rule->max > 0, has_max);
    assert_true(!has_max || rule->min <= rule->max);
    assert_true(!has_size || rule->max <= GPUL_EXEC_STRING_BYTES_MAX);
}

/* Walk the rules beside the schema; test_no_recursion has shown that it ends.
 */
static void check_body(const struct gpul_body_rule *rule, unsigned depth)
{
    assert_in_range(depth, 2, DEPTH_MAX);
    assert_int_equal(rule->field_count, rule->descriptor->n_fields);
    for (size_t i = 0; i < rule->field_count; i++) {
        check_field(&rule->fields[i], &rule->descriptor->fields[i]);
        if (rule->fields[i].body != NULL) {
            check_body(rule->fields[i].body, depth + 1);
        }
    }
}

/* Every field of every message has a rule that fits its type, and every
 * string, bytes and repeated field is bounded. */
static void test_schema_is_covered(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *frame = &gpul__frame__descriptor;
    uint32_t bodies = 0;
    for (unsigned i = 0; i < frame->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &frame->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
            assert_in_range(field->id, 100, 101); /* epoch, generation */
            continue;
        }
        const struct gpul_body_rule *rule = gpul_body_rule(field->id);
        assert_non_null(rule);
        assert_ptr_equal(rule->descriptor, field->descriptor);
        assert_string_equal(gpul_message_rule(field->id)->name, field->name);
        check_body(rule, 2);
        bodies++;
    }
    uint32_t samples = 0;
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        samples++;
    }
    assert_int_equal(bodies, samples);
    assert_null(gpul_body_rule(0));
    assert_null(gpul_body_rule(SAMPLE_TYPE_MAX + 1));
}

/* ---- sizes -------------------------------------------------------------- */

static uint64_t varint_bytes(uint64_t value)
{
    uint64_t n = 1;
    while (value >= 0x80) {
        value >>= 7;
        n++;
    }
    return n;
}

static uint64_t body_bytes_max(const struct gpul_body_rule *rule);

/* The most that one value of a field may take, without its key. */
static uint64_t value_bytes_max(const struct gpul_field_rule *rule,
                                const ProtobufCFieldDescriptor *field)
{
    uint64_t n;
    switch (field->type) {
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM: /* no enum has 128 values */
        return 1;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
        return varint_bytes(rule->max);
    case PROTOBUF_C_TYPE_MESSAGE:
        n = body_bytes_max(rule->body);
        return varint_bytes(n) + n;
    default:
        return varint_bytes(rule->max) + rule->max;
    }
}

static uint64_t body_bytes_max(const struct gpul_body_rule *rule)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < rule->field_count; i++) {
        const ProtobufCFieldDescriptor *field = &rule->descriptor->fields[i];
        uint64_t count = rule->fields[i].count_max;
        sum += (count > 0 ? count : 1) *
               (varint_bytes((uint64_t)field->id << 3) +
                value_bytes_max(&rule->fields[i], field));
    }
    return sum;
}

/* Exits may all have evidence, says their rule, but a check of the whole
 * message allows a few. */
static uint64_t evidence_too_much(uint32_t type)
{
    const struct gpul_body_rule *body = gpul_body_rule(type);
    const struct gpul_field_rule *exits = body->fields;
    while (strcmp(exits->name, "exits") != 0) {
        exits++;
    }
    const struct gpul_field_rule *evidence = exits->body->fields;
    while (strcmp(evidence->name, "evidence") != 0) {
        evidence++;
    }
    return (exits->count_max - GPUL_EVIDENCES_MAX) *
           body_bytes_max(evidence->body);
}

/* Any valid message fits the maximum of its type, so no sender can be caught
 * out by one that it cannot send; but for the few that are cut by size. */
static void test_valid_fits(void **state)
{
    (void)state;
    const uint64_t frame_bytes = 2 + 5 + 2 * (2 + 5); /* body key and length,
                                                         two numbers */
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        uint64_t n = frame_bytes + body_bytes_max(gpul_body_rule(type));
        bool is_cut_by_size = type == GPUL__FRAME__BODY_JOB ||
                              type == GPUL__FRAME__BODY_ROSTER ||
                              type == GPUL__FRAME__BODY_ENV_REPORT;
        if (type == GPUL__FRAME__BODY_EXITS ||
            type == GPUL__FRAME__BODY_JOB_END) {
            n -= evidence_too_much(type);
        }
        if (!is_cut_by_size && n > gpul_message_rule(type)->bytes_max) {
            fail_msg("%s may have %llu bytes", gpul_message_rule(type)->name,
                     (unsigned long long)n);
        }
    }
    /* A roster fits too: its numbers are packed, without a key each. */
    assert_true(frame_bytes + 40 + GPUL_ROSTER_ADDRESSES_BYTES_MAX +
                    GPUL_ROSTER_PAGE_NODES_MAX * (3 + 2) <=
                GPUL_FRAME_BYTES_MAX);
}

/* ---- too long ------------------------------------------------------------ */

enum {
    FIELDS_MAX = 512,
    PATH_BYTES = 200,
    ERROR_BYTES = GPUL_ERROR_TEXT_BYTES,
};

/* What has been tried of the schema. */
static const ProtobufCFieldDescriptor *tried[FIELDS_MAX];
static size_t tried_count;

static bool was_tried(const ProtobufCFieldDescriptor *field)
{
    for (size_t i = 0; i < tried_count; i++) {
        if (tried[i] == field) {
            return true;
        }
    }
    return false;
}

/* A message that is changed in one place. */
struct trial {
    Gpul__Frame *frame;
    char path[PATH_BYTES]; /* "command: arguments: " */
};

/* Refused as it is, and as its receiver would see it where it can be sent. */
static void expect_refused(const struct trial *t, const char *name,
                           const char *why)
{
    char expected[ERROR_BYTES];
    struct gpul_error err = {0};
    uint32_t type = t->frame->body_case;
    snprintf(expected, sizeof(expected), "%s%s: %s", t->path, name, why);
    assert_int_equal(gpul_body_check(gpul_body_rule(type),
                                     (const ProtobufCMessage *)t->frame->hello,
                                     &err),
                     GPUL_EPROTO);
    assert_string_equal(err.text, expected);

    struct gpul_buf b;
    gpul_buf_init(&b, GPUL_JOB_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    if (gpul_message_encode(&b, t->frame, NULL) == 0) {
        Gpul__Frame *decoded = NULL;
        int rc = gpul_message_decode(&decoded, b.data + GPUL_FRAME_PREFIX_BYTES,
                                     b.used - GPUL_FRAME_PREFIX_BYTES,
                                     sample_sender(type), NULL);
        assert_true(rc == GPUL_EPROTO || rc == GPUL_ELIMIT);
        assert_null(decoded);
    }
    gpul_buf_release(&b);
}

/* On the bound itself; a rule between fields may still refuse it. */
static void expect_not_too_long(const struct trial *t, const char *name)
{
    char field[ERROR_BYTES];
    struct gpul_error err = {0};
    snprintf(field, sizeof(field), "%s%s: ", t->path, name);
    gpul_body_check(gpul_body_rule(t->frame->body_case),
                    (const ProtobufCMessage *)t->frame->hello, &err);
    assert_int_not_equal(strncmp(err.text, field, strlen(field)), 0);
}

/* One string or bytes value, in a field or a list, at `value`. */
static void try_value(const struct trial *t, const struct gpul_field_rule *rule,
                      ProtobufCType type, void *value)
{
    size_t n = (size_t)rule->max + 1;
    char *text = test_malloc(n + 1), why[80];
    memset(text, 'x', n);
    text[n] = 0;
    snprintf(why, sizeof(why), "has %zu bytes, at most %zu", n, n - 1);
    if (type == PROTOBUF_C_TYPE_STRING) {
        char **field = value, *kept = *field;
        *field = text;
        expect_refused(t, rule->name, why);
        text[n - 1] = 0;
        expect_not_too_long(t, rule->name);
        *field = kept;
    } else {
        ProtobufCBinaryData *field = value, kept = *field;
        *field = (ProtobufCBinaryData){n, (uint8_t *)text};
        expect_refused(t, rule->name, why);
        field->len--;
        expect_not_too_long(t, rule->name);
        *field = kept;
    }
    test_free(text);
}

static size_t element_bytes(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_UINT32  ? sizeof(uint32_t)
           : type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData)
                                           : sizeof(void *);
}

/* One entry too many, all like the first. */
static void try_list(const struct trial *t, const struct gpul_field_rule *rule,
                     const ProtobufCFieldDescriptor *field, char *base)
{
    size_t *count = (size_t *)(void *)(base + field->quantifier_offset);
    void **values = (void **)(void *)(base + field->offset);
    size_t kept_count = *count, n = rule->count_max + 1;
    size_t bytes = element_bytes(field->type);
    void *kept = *values;
    char *many = test_malloc(n * bytes), why[80];
    assert_true(kept_count > 0); /* as samples.h says */
    for (size_t i = 0; i < n; i++) {
        memcpy(many + i * bytes, kept, bytes);
    }
    *values = many;
    *count = n;
    snprintf(why, sizeof(why), "has %zu entries, not within %zu to %zu", n,
             rule->count_min, rule->count_max);
    expect_refused(t, rule->name, why);
    *count = n - 1;
    expect_not_too_long(t, rule->name);
    *values = kept;
    *count = kept_count;
    test_free(many);
}

static void try_fields(struct trial *t, const struct gpul_body_rule *rule,
                       char *base);

/* The fields of a message within, by its place in the path. */
static void try_message(struct trial *t, const struct gpul_field_rule *rule,
                        void *message)
{
    size_t n = strlen(t->path);
    snprintf(t->path + n, sizeof(t->path) - n, "%s: ", rule->name);
    try_fields(t, rule->body, message);
    t->path[n] = 0;
}

static void try_field(struct trial *t, const struct gpul_field_rule *rule,
                      const ProtobufCFieldDescriptor *field, char *base)
{
    void *value = base + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        try_list(t, rule, field, base);
        value = *(void **)value; /* the first */
    }
    if (field->type == PROTOBUF_C_TYPE_STRING ||
        field->type == PROTOBUF_C_TYPE_BYTES) {
        try_value(t, rule, field->type, value);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
               *(void **)value != NULL) {
        try_message(t, rule, *(void **)value);
    }
    if (!was_tried(field)) {
        assert_true(tried_count < FIELDS_MAX);
        tried[tried_count++] = field;
    }
}

static void try_fields(struct trial *t, const struct gpul_body_rule *rule,
                       char *base)
{
    for (size_t i = 0; i < rule->field_count; i++) {
        try_field(t, &rule->fields[i], &rule->descriptor->fields[i], base);
    }
}

/* Of every message that the walk has come to, every field; and the walk comes
 * to every message that the schema has. */
static void expect_all_tried(const ProtobufCMessageDescriptor *message)
{
    for (unsigned i = 0; i < message->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->fields[i];
        if (message != &gpul__frame__descriptor && !was_tried(field)) {
            fail_msg("%s: %s was not tried: is it in a sample?", message->name,
                     field->name);
        }
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            expect_all_tried(field->descriptor);
        }
    }
}

/* A text, a list or bytes one over the bound, anywhere in any message: the
 * validator says which field it is, and what the bound is. */
static void test_too_long(void **state)
{
    (void)state;
    tried_count = 0;
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        struct gpul_buf b;
        struct trial t = {0};
        gpul_buf_init(&b, GPUL_FRAME_BYTES_MAX);
        sample_append(&b, type);
        t.frame = gpul__frame__unpack(NULL, b.used - GPUL_FRAME_PREFIX_BYTES,
                                      b.data + GPUL_FRAME_PREFIX_BYTES);
        assert_non_null(t.frame);
        try_fields(&t, gpul_body_rule(type), (char *)t.frame->hello);
        gpul__frame__free_unpacked(t.frame, NULL);
        gpul_buf_release(&b);
    }
    expect_all_tried(&gpul__frame__descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_recursion),
        cmocka_unit_test(test_schema_is_covered),
        cmocka_unit_test(test_valid_fits),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
