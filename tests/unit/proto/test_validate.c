/* SPDX-License-Identifier: Apache-2.0 */
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

/* Walk the rules beside the schema. The depth bound would also stop the walk
 * of a schema that refers to itself. */
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

/* Every field of every message has a rule that fits its type, every string,
 * bytes and repeated field is bounded, and no message nests deeper than
 * four, so none can contain itself. */
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
    assert_int_equal(bodies, SAMPLE_TYPE_MAX);
    assert_null(gpul_body_rule(0));
    assert_null(gpul_body_rule(SAMPLE_TYPE_MAX + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema_is_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
