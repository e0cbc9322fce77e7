/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a user, a file or a scheduler writes: either nodes that ssh takes
 * for hosts and for nothing else, each once, that can be written down and read
 * again; or no nodes and a reason.
 *
 * Input: a byte that says who wrote it, then what was written.
 */
#include <stdlib.h>
#include <string.h>

#include "launcher/allocation.h"
#include "proto/limits.h"
#include "tests/lib/fuzz.h"

enum { FOLDED_BYTES_MAX = 16 << 20 };

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_:";
    const char *scope = strchr(name, '%');
    size_t bytes = strlen(name);
    FUZZ_CHECK(bytes > 0 && bytes <= GPUL_NAME_BYTES_MAX);
    FUZZ_CHECK(name[0] != '-' && name[0] != '.' && name[0] != '%');
    FUZZ_CHECK(strspn(name, allowed) ==
               (scope != NULL ? (size_t)(scope - name) : bytes));
    FUZZ_CHECK(scope == NULL || strchr(name, ':') != NULL);
}

static void check_once(const struct nodes *n)
{
    char **names = malloc(n->count * sizeof(*names));
    FUZZ_CHECK(names != NULL);
    for (uint32_t i = 0; i < n->count; i++) {
        names[i] = n->list[i].name;
    }
    qsort(names, n->count, sizeof(*names), compare);
    for (uint32_t i = 1; i < n->count; i++) {
        FUZZ_CHECK(strcmp(names[i - 1], names[i]) != 0);
    }
    free(names);
}

/* The list as it is shown is a list that can be given. */
static void check_again(const struct nodes *n)
{
    struct gpul_buf text;
    struct nodes again = {0};
    gpul_buf_init(&text, FOLDED_BYTES_MAX);
    nodes_append_names(&text, n, FOLDED_BYTES_MAX);
    FUZZ_CHECK(nodes_parse_list(&again, NODES_LIST, gpul_buf_text(&text),
                                "again", NULL) == 0);
    FUZZ_CHECK(again.count == n->count);
    for (uint32_t i = 0; i < n->count; i++) {
        FUZZ_CHECK(strcmp(n->list[i].name, again.list[i].name) == 0);
    }
    nodes_release(&again);
    gpul_buf_release(&text);
}

static void check(const struct nodes *n, int rc, const struct gpul_error *err)
{
    FUZZ_CHECK((rc == 0) == (err->text[0] == '\0'));
    if (rc != 0) {
        FUZZ_CHECK(n->count == 0 && n->list == NULL);
        return;
    }
    FUZZ_CHECK(n->count > 0 && n->count <= GPUL_NODES_MAX);
    for (uint32_t i = 0; i < n->count; i++) {
        check_name(n->list[i].name);
        FUZZ_CHECK(n->list[i].slots <= GPUL_RANKS_MAX);
    }
    check_once(n);
    check_again(n);
}

static int read_scheduler(struct nodes *n, enum allocation_shape shape,
                          const char *text, size_t bytes,
                          struct gpul_error *err)
{
    struct allocation a = {.source = NODES_LSF,
                           .shape = shape,
                           .variable = "VARIABLE",
                           .value = text};
    return allocation_nodes(n, &a, text, bytes, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0) {
        return 0;
    }
    size_t bytes = n - 1;
    char *text = malloc(bytes + 1);
    FUZZ_CHECK(text != NULL);
    memcpy(text, data + 1, bytes);
    text[bytes] = '\0';
    struct nodes nodes = {0};
    struct gpul_error err = {0};
    int rc;
    switch (data[0] % 7) {
    case 0:
        rc = nodes_parse_file(&nodes, text, bytes, "file", &err);
        break;
    case 1:
        rc = nodes_parse_list(&nodes, NODES_SET, text, "list", &err);
        break;
    case 2:
        rc = nodes_parse_list(&nodes, NODES_LIST, text, "list", &err);
        break;
    default:
        rc = read_scheduler(&nodes, (enum allocation_shape)(data[0] % 7 - 1),
                            text, bytes, &err);
        break;
    }
    check(&nodes, rc, &err);
    nodes_release(&nodes);
    free(text);
    return 0;
}
