/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/failure.h"

#include <stdio.h>
#include <string.h>

/* How the libraries of the field say EADDRINUSE (98 on Linux). */
static const char *const in_use_phrases[] = {
    "address already in use",
    "address in use",
    "eaddrinuse",
    "errno: 98",
    "errno 98",
    "error code: 98",
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool starts_with(const char *text, size_t n, const char *phrase)
{
    size_t i = 0;
    while (phrase[i] != 0 && i < n && lower(text[i]) == phrase[i]) {
        i++;
    }
    return phrase[i] == 0;
}

static bool says_in_use(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0;
             k < sizeof(in_use_phrases) / sizeof(in_use_phrases[0]); k++) {
            const char *phrase = in_use_phrases[k];
            size_t end = i + strlen(phrase);
            /* "errno 98" must not match "errno 981". */
            if (starts_with(text + i, n - i, phrase) &&
                (end >= n || !is_digit(text[end]))) {
                return true;
            }
        }
    }
    return false;
}

/* The port as a number of its own, not as a part of a longer one. */
static bool has_number(const char *text, size_t n, uint16_t port)
{
    char digits[8];
    size_t length = (size_t)snprintf(digits, sizeof(digits), "%u", port);
    for (size_t i = 0; i + length <= n; i++) {
        if (memcmp(text + i, digits, length) == 0 &&
            (i == 0 || !is_digit(text[i - 1])) &&
            (i + length == n || !is_digit(text[i + length]))) {
            return true;
        }
    }
    return false;
}

bool failure_is_bind_error(const struct failure_end *end)
{
    if (end->is_success || end->ran_ms > FAILURE_EARLY_MS ||
        !says_in_use(end->tail, end->tail_bytes)) {
        return false;
    }
    bool is_ours = end->is_port_taken;
    for (size_t i = 0; i < end->port_count && !is_ours; i++) {
        is_ours = has_number(end->tail, end->tail_bytes, end->ports[i]);
    }
    return is_ours;
}
