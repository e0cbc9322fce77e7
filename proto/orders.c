/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/orders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "proto/text.h"

static const char greeting_word[] = "gpulaunch-worker remote ";
static const char no_key[] = "none";

enum { NUMBER_BYTES = 12 };

/* ---- the greeting -------------------------------------------------------- */

int gpul_greeting_append(struct gpul_buf *out)
{
    return gpul_buf_appendf(out, "%s%u %s %u %u\n", greeting_word,
                            GPUL_ORDERS_VERSION, GPULAUNCH_VERSION,
                            GPUL_PROTOCOL_MIN, GPUL_PROTOCOL);
}

/* The word at *at into `word`; false if it is empty or too long. */
static bool take_word(char *word, size_t n, const char **at)
{
    size_t bytes = strcspn(*at, " ");
    if (bytes == 0 || bytes >= n) {
        return false;
    }
    memcpy(word, *at, bytes);
    word[bytes] = '\0';
    *at += bytes;
    *at += **at == ' ';
    return true;
}

static bool take_number(uint32_t *out, const char **at)
{
    char word[NUMBER_BYTES];
    return take_word(word, sizeof(word), at) &&
           gpul_parse_count(out, word, 0, UINT32_MAX, NULL) == 0;
}

bool gpul_greeting_parse(struct gpul_greeting *out, const char *line)
{
    const size_t skipped = sizeof(greeting_word) - 1;
    *out = (struct gpul_greeting){0};
    if (strncmp(line, greeting_word, skipped) != 0) {
        return false;
    }
    const char *at = line + skipped;
    if (!take_number(&out->form, &at)) {
        return false;
    }
    if (out->form != GPUL_ORDERS_VERSION) {
        return true;
    }
    return take_word(out->version, sizeof(out->version), &at) &&
           gpul_text_is_valid(out->version, GPUL_TEXT_NAME) &&
           take_number(&out->protocol_min, &at) &&
           take_number(&out->protocol_max, &at) && *at == '\0';
}

/* ---- orders -------------------------------------------------------------- */

int gpul_orders_append(struct gpul_buf *out, const struct gpul_orders *orders)
{
    gpul_buf_appendf(
        out, "orders %u\njob %s\nnode %s\njoin-timeout-ms %" PRIu32 "\n",
        GPUL_ORDERS_VERSION, orders->job_id, orders->node_name,
        orders->join_timeout_ms);
    for (uint32_t i = 0; i < orders->coordinator_count; i++) {
        gpul_buf_append_text(out, "coordinator ");
        gpul_hostport_append(out, orders->coordinators[i].host,
                             orders->coordinators[i].port);
        gpul_buf_append_text(out, "\n");
    }
    gpul_buf_appendf(out, "key %s\nend\n",
                     orders->is_insecure ? no_key : orders->key);
    return out->is_failed ? GPUL_ELIMIT : 0;
}

static bool take_name(char *out, size_t n, const char *value)
{
    if (value[0] == '\0' || strlen(value) >= n ||
        !gpul_text_is_valid(value, GPUL_TEXT_NAME)) {
        return false;
    }
    memcpy(out, value, strlen(value) + 1);
    return true;
}

static bool take_coordinator(struct gpul_orders *orders, const char *value)
{
    if (orders->coordinator_count == GPUL_COORDINATORS_MAX ||
        gpul_hostport_parse(&orders->coordinators[orders->coordinator_count],
                            value, NULL) != 0) {
        return false;
    }
    orders->coordinator_count++;
    return true;
}

static bool take_key(struct gpul_orders *orders, const char *value)
{
    orders->is_insecure = strcmp(value, no_key) == 0;
    if (orders->is_insecure) {
        orders->key[0] = '\0';
        return true;
    }
    size_t digits = strspn(value, "0123456789abcdef");
    if (digits != GPUL_ORDERS_KEY_DIGITS || value[digits] != '\0') {
        return false;
    }
    memcpy(orders->key, value, sizeof(orders->key));
    return true;
}

static bool take_value(struct gpul_orders *orders, const char *word,
                       const char *value)
{
    if (strcmp(word, "job") == 0) {
        return take_name(orders->job_id, sizeof(orders->job_id), value);
    }
    if (strcmp(word, "node") == 0) {
        return take_name(orders->node_name, sizeof(orders->node_name), value);
    }
    if (strcmp(word, "join-timeout-ms") == 0) {
        return gpul_parse_count(&orders->join_timeout_ms, value, 1, UINT32_MAX,
                                NULL) == 0;
    }
    if (strcmp(word, "coordinator") == 0) {
        return take_coordinator(orders, value);
    }
    if (strcmp(word, "key") == 0) {
        return take_key(orders, value);
    }
    return strcmp(word, "orders") == 0 && strcmp(value, "1") == 0;
}

static bool is_complete(const struct gpul_orders *orders)
{
    return orders->job_id[0] != '\0' && orders->node_name[0] != '\0' &&
           orders->join_timeout_ms > 0 && orders->coordinator_count > 0 &&
           (orders->key[0] != '\0' || orders->is_insecure);
}

int gpul_orders_take(struct gpul_orders *orders, bool *is_whole,
                     const char *line, struct gpul_error *err)
{
    char word[GPUL_TOKEN_BYTES_MAX];
    const char *at = line;
    *is_whole = false;
    if (strcmp(line, "end") == 0) {
        *is_whole = is_complete(orders);
        return *is_whole ? 0
                         : gpul_fail(err, GPUL_EINVAL,
                                     "the orders of the front end are not "
                                     "whole; install the same release on both");
    }
    if (!take_word(word, sizeof(word), &at)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "standard input does not hold orders; gpulaunch "
                         "starts this program itself");
    }
    if (!take_value(orders, word, at)) {
        gpul_text_clean_line(word, sizeof(word) - 1);
        return gpul_fail(err, GPUL_EINVAL,
                         "an order of the front end makes no sense here: %s; "
                         "install the same release on both",
                         word);
    }
    return 0;
}
