/* SPDX-License-Identifier: Apache-2.0
 *
 * What jansson lacks for us: text that may not be UTF-8. Edge.
 */
#ifndef LAUNCHER_JSON_H
#define LAUNCHER_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* Set key to a text; NULL or "" becomes null. */
void json_put_text(json_t *object, const char *key, const char *text);

/* Set key to n bytes as a string. Where they are no UTF-8, each foreign byte
 * is U+FFFD, and <key>_hex has all bytes exactly. */
void json_put_bytes(json_t *object, const char *key, const uint8_t *bytes,
                    size_t n);

/* The same for the words of a list: <key>_hex has all words. */
void json_put_words(json_t *object, const char *key, char *const *words,
                    size_t count);

/* Append the object and a newline. Returns 0, GPUL_ENOMEM, GPUL_ELIMIT. */
int json_print(struct gpul_buf *out, const json_t *object);

#endif
