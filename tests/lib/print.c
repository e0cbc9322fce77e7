/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/print.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static void print_fields(struct gpul_buf *out, const ProtobufCMessage *message,
                         int indent);

static void print_bytes(struct gpul_buf *out, const uint8_t *bytes, size_t n)
{
    gpul_buf_append_text(out, "\"");
    for (size_t i = 0; i < n; i++) {
        bool is_plain = bytes[i] >= 0x20 && bytes[i] < 0x7f &&
                        bytes[i] != '"' && bytes[i] != '\\';
        gpul_buf_appendf(out, is_plain ? "%c" : "\\x%02x", bytes[i]);
    }
    gpul_buf_append_text(out, "\"");
}

/* What follows the name of a field that is no message. */
static void print_scalar(struct gpul_buf *out,
                         const ProtobufCFieldDescriptor *field,
                         const void *value)
{
    const ProtobufCBinaryData *bytes = value;
    const char *const *text = value;
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_BOOL:
        gpul_buf_appendf(out, "%" PRIu32, *(const uint32_t *)value);
        return;
    case PROTOBUF_C_TYPE_UINT64:
        gpul_buf_appendf(out, "%" PRIu64, *(const uint64_t *)value);
        return;
    case PROTOBUF_C_TYPE_FIXED64:
        gpul_buf_appendf(out, "0x%016" PRIx64, *(const uint64_t *)value);
        return;
    case PROTOBUF_C_TYPE_DOUBLE:
        gpul_buf_appendf(out, "%.17g", *(const double *)value);
        return;
    case PROTOBUF_C_TYPE_ENUM:
        gpul_buf_append_text(out, protobuf_c_enum_descriptor_get_value(
                                      field->descriptor, *(const int *)value)
                                      ->name);
        return;
    case PROTOBUF_C_TYPE_STRING:
        print_bytes(out, (const uint8_t *)*text, strlen(*text));
        return;
    case PROTOBUF_C_TYPE_BYTES:
        print_bytes(out, bytes->data, bytes->len);
        return;
    default: /* the schema uses no other type */
        assert(false);
    }
}

static void print_field(struct gpul_buf *out,
                        const ProtobufCFieldDescriptor *field,
                        const void *value, int indent)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
        *(const ProtobufCMessage *const *)value == NULL) {
        return; /* one that an older peer did not send */
    }
    gpul_buf_appendf(out, "%*s%s", indent, "", field->name);
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        gpul_buf_append_text(out, ": ");
        print_scalar(out, field, value);
        gpul_buf_append_text(out, "\n");
        return;
    }
    gpul_buf_append_text(out, " {\n");
    print_fields(out, *(const ProtobufCMessage *const *)value, indent + 2);
    gpul_buf_appendf(out, "%*s}\n", indent, "");
}

static size_t element_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(void *);
    }
}

static void print_fields(struct gpul_buf *out, const ProtobufCMessage *message,
                         int indent)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    const char *base = (const char *)message;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        const char *value = base + field->offset;
        const void *quantifier = base + field->quantifier_offset;
        size_t count = 1;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            count = *(const size_t *)quantifier;
            value = *(const char *const *)(const void *)value;
        } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            count = *(const uint32_t *)quantifier == field->id;
        }
        for (size_t at = 0; at < count; at++) {
            print_field(out, field, value + at * element_bytes(field->type),
                        indent);
        }
    }
}

void message_print(struct gpul_buf *out, const ProtobufCMessage *message)
{
    print_fields(out, message, 0);
}
