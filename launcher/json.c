/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

enum {
    REPLACEMENT_BYTES = 3,
    REAL_DIGITS = 12, /* 0.994, not 0.99399999999999999 */
};

void json_put_text(json_t *object, const char *key, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        json_object_set_new(object, key, json_null());
    } else {
        json_put_bytes(object, key, (const uint8_t *)text, strlen(text));
    }
}

static char *with_replacements(const uint8_t *bytes, size_t n)
{
    char *text = malloc(n * REPLACEMENT_BYTES + 1);
    if (text == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0 && bytes[i] < 0x80) {
            text[used++] = (char)bytes[i];
        } else {
            memcpy(text + used, "\xef\xbf\xbd", REPLACEMENT_BYTES);
            used += REPLACEMENT_BYTES;
        }
    }
    text[used] = '\0';
    return text;
}

static json_t *hex(const uint8_t *bytes, size_t n)
{
    char *text = malloc(2 * n + 1);
    if (text == NULL) {
        return json_null();
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    json_t *string = json_stringn(text, 2 * n);
    free(text);
    return string;
}

/* *is_exact: the bytes are UTF-8. */
static json_t *string_of(bool *is_exact, const uint8_t *bytes, size_t n)
{
    json_t *exact = json_stringn(n > 0 ? (const char *)bytes : "", n);
    *is_exact = exact != NULL;
    if (exact != NULL) {
        return exact;
    }
    char *text = with_replacements(bytes, n);
    json_t *string = text != NULL ? json_string(text) : json_null();
    free(text);
    return string;
}

static void put_hex(json_t *object, const char *key, json_t *value)
{
    char name[64];
    snprintf(name, sizeof(name), "%s_hex", key);
    json_object_set_new(object, name, value);
}

void json_put_bytes(json_t *object, const char *key, const uint8_t *bytes,
                    size_t n)
{
    bool is_exact = false;
    json_object_set_new(object, key, string_of(&is_exact, bytes, n));
    if (!is_exact) {
        put_hex(object, key, hex(bytes, n));
    }
}

void json_put_words(json_t *object, const char *key, char *const *words,
                    size_t count)
{
    json_t *list = json_array(), *hex_list = json_array();
    bool are_exact = true;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = (const uint8_t *)words[i];
        size_t n = strlen(words[i]);
        bool is_exact = false;
        json_array_append_new(list, string_of(&is_exact, bytes, n));
        json_array_append_new(hex_list, hex(bytes, n));
        are_exact = are_exact && is_exact;
    }
    json_object_set_new(object, key, list);
    if (are_exact) {
        json_decref(hex_list);
    } else {
        put_hex(object, key, hex_list);
    }
}

static int on_piece(const char *bytes, size_t n, void *arg)
{
    return gpul_buf_append(arg, bytes, n);
}

int json_print(struct gpul_buf *out, const json_t *object)
{
    if (object == NULL) {
        return GPUL_ENOMEM;
    }
    json_dump_callback(object, on_piece, out,
                       JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));
    gpul_buf_append_text(out, "\n");
    return out->is_failed ? GPUL_ELIMIT : 0;
}
