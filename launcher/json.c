/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/json.h"

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
    if (text == NULL || text[0] == '\0')
        json_object_set_new(object, key, json_null());
    else
        json_put_bytes(object, key, (const uint8_t *)text, strlen(text));
}

static char *with_replacements(const uint8_t *bytes, size_t n)
{
    char *text = malloc(n * REPLACEMENT_BYTES + 1);
    if (text == NULL)
        return NULL;
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

static void put_hex(json_t *object, const char *key, const uint8_t *bytes,
                    size_t n)
{
    char name[64];
    snprintf(name, sizeof name, "%s_hex", key);
    char *text = malloc(2 * n + 1);
    if (text == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    json_object_set_new(object, name, json_stringn(text, 2 * n));
    free(text);
}

void json_put_bytes(json_t *object, const char *key, const uint8_t *bytes,
                    size_t n)
{
    json_t *exact = json_stringn(n > 0 ? (const char *)bytes : "", n);
    if (exact != NULL) {
        json_object_set_new(object, key, exact);
        return;
    }
    char *text = with_replacements(bytes, n);
    json_object_set_new(object, key,
                        text != NULL ? json_string(text) : json_null());
    free(text);
    put_hex(object, key, bytes, n);
}

static int on_piece(const char *bytes, size_t n, void *arg)
{
    return gpul_buf_append(arg, bytes, n);
}

int json_print(struct gpul_buf *out, const json_t *object)
{
    if (object == NULL)
        return GPUL_ENOMEM;
    json_dump_callback(object, on_piece, out,
                       JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));
    gpul_buf_append_text(out, "\n");
    return out->is_failed ? GPUL_ELIMIT : 0;
}
