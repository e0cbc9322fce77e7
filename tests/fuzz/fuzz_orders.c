/* SPDX-License-Identifier: Apache-2.0
 *
 * Any lines either are orders that are written as they were read, or are
 * refused with a reason that repeats no value; a greeting is one or is not.
 *
 * Input: lines.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/orders.h"
#include "proto/text.h"
#include "tests/lib/fuzz.h"

static void check_greeting(const char *line)
{
    struct gpul_greeting g;
    if (gpul_greeting_parse(&g, line)) {
        FUZZ_CHECK(g.form != GPUL_ORDERS_VERSION || g.version[0] != '\0');
        FUZZ_CHECK(strlen(g.version) <= GPUL_VERSION_BYTES_MAX);
    }
}

static void check_again(const struct gpul_orders *orders)
{
    struct gpul_buf text;
    struct gpul_orders again = {.job_id = ""};
    bool is_whole = false;
    FUZZ_CHECK(gpul_text_is_valid(orders->node_name, GPUL_TEXT_NAME));
    FUZZ_CHECK(orders->coordinator_count <= GPUL_COORDINATORS_MAX);
    gpul_buf_init(&text, GPUL_ORDERS_BYTES_MAX);
    FUZZ_CHECK(gpul_orders_append(&text, orders) == 0);
    char *copy = strdup(gpul_buf_text(&text));
    FUZZ_CHECK(copy != NULL);
    char *rest = copy;
    for (char *line; !is_whole && (line = strsep(&rest, "\n")) != NULL;) {
        FUZZ_CHECK(gpul_orders_take(&again, &is_whole, line, NULL) == 0);
    }
    FUZZ_CHECK(is_whole && strcmp(again.job_id, orders->job_id) == 0);
    FUZZ_CHECK(strcmp(again.node_name, orders->node_name) == 0);
    FUZZ_CHECK(strcmp(again.key, orders->key) == 0);
    FUZZ_CHECK(again.join_timeout_ms == orders->join_timeout_ms);
    FUZZ_CHECK(again.coordinator_count == orders->coordinator_count);
    free(copy);
    gpul_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct gpul_orders orders = {.job_id = ""};
    struct gpul_error err = {0};
    bool is_whole = false;
    int rc = 0;
    char *text = malloc(n + 1);
    FUZZ_CHECK(text != NULL);
    if (n > 0) {
        memcpy(text, data, n);
    }
    text[n] = '\0';
    char *rest = text;
    for (char *line;
         rc == 0 && !is_whole && (line = strsep(&rest, "\n")) != NULL;) {
        check_greeting(line);
        rc = gpul_orders_take(&orders, &is_whole, line, &err);
    }
    FUZZ_CHECK((rc == 0) == (err.text[0] == '\0'));
    if (is_whole) {
        check_again(&orders);
    }
    free(text);
    return 0;
}
