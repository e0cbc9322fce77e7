/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/survey_wires.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

unsigned survey_prefix(const uint8_t *mask, unsigned bits)
{
    unsigned n = 0;
    while (n < bits && (mask[n / 8] >> (7 - n % 8) & 1) != 0) {
        n++;
    }
    return n;
}

/* ---- subnets ------------------------------------------------------------- */

static bool has_same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8;
    uint8_t rest = (uint8_t)(0xff00u >> (bits % 8));
    return memcmp(a, b, whole) == 0 &&
           (bits % 8 == 0 || ((a[whole] ^ b[whole]) & rest) == 0);
}

static void name_subnet(char out[INET6_ADDRSTRLEN],
                        const struct survey_address *a)
{
    uint8_t bytes[16] = {0};
    for (unsigned i = 0; i < a->prefix; i++) {
        uint8_t bit = (uint8_t)(0x80u >> (i % 8));
        bytes[i / 8] |= a->bytes[i / 8] & bit;
    }
    inet_ntop(a->bits == 32 ? AF_INET : AF_INET6, bytes, out, INET6_ADDRSTRLEN);
}

void survey_shared_subnet(char out[SURVEY_SHARED_BYTES],
                          const struct survey_address *all, size_t count)
{
    char subnet[INET6_ADDRSTRLEN];
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            const struct survey_address *a = &all[i], *b = &all[k];
            if (a->bits == b->bits && a->prefix == b->prefix &&
                a->prefix < a->bits && a->prefix > 0 &&
                strcmp(a->interface, b->interface) != 0 &&
                has_same_bits(a->bytes, b->bytes, a->prefix)) {
                name_subnet(subnet, a);
                snprintf(out, SURVEY_SHARED_BYTES, "%s and %s in %s/%u",
                         a->interface, b->interface, subnet, a->prefix);
                return;
            }
        }
    }
    snprintf(out, SURVEY_SHARED_BYTES, "none");
}

/* ---- names --------------------------------------------------------------- */

/* Interfaces that begin with, or are, the n bytes of `entry`. */
static size_t match(struct survey_list *out, const char *entry, size_t n,
                    bool is_whole, const char *const *interfaces, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (n > 0 && strncmp(interfaces[i], entry, n) == 0 &&
            (!is_whole || interfaces[i][n] == 0)) {
            survey_list_add(out, "%s", interfaces[i]);
            found++;
        }
    }
    return found;
}

void survey_match_interfaces(struct survey_list *out, const char *setting,
                             const char *const *interfaces, size_t count)
{
    size_t found = 0;
    out->text[0] = 0;
    if (setting == NULL || setting[0] == '^') {
        survey_list_add(out, "unset");
        return;
    }
    bool is_whole = setting[0] == '=';
    const char *at = setting + is_whole;
    while (*at != 0) {
        size_t n = strcspn(at, ",");
        struct survey_list matches = {""};
        found += match(&matches, at, n, is_whole, interfaces, count);
        if (strchr(matches.text, ' ') != NULL) {
            *out = matches;
            return;
        }
        at += n + (at[n] == ',');
    }
    survey_list_add(out, found > 0 ? "exact" : "none");
}
