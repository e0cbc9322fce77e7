/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/linkpick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostlist.h"

static bool is_candidate(const struct gpul_interface *i)
{
    return i->rejection[0] == 0;
}

static void reject(struct gpul_interface *i, const char *why)
{
    snprintf(i->rejection, sizeof(i->rejection), "%s", why);
}

/* ---- the user's choice --------------------------------------------------- */

static bool is_entry(const char *entry, size_t bytes, const char *text)
{
    return strlen(text) == bytes && strncmp(entry, text, bytes) == 0;
}

static bool is_wanted(const char *wanted, const struct gpul_interface *i)
{
    while (*wanted != 0) {
        size_t n = strcspn(wanted, ",");
        if (is_entry(wanted, n, i->name) || is_entry(wanted, n, i->address)) {
            return true;
        }
        wanted += n + (wanted[n] == ',');
    }
    return false;
}

static void apply_choice(struct gpul_interface *all, size_t count,
                         const char *wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(wanted, &all[i])) {
            reject(&all[i], "not named by --interface");
        } else if (!all[i].is_link_local) {
            all[i].rejection[0] = 0;
        }
    }
}

/* ---- the order ----------------------------------------------------------- */

static bool is_ipv6(const struct gpul_interface *i)
{
    return strchr(i->address, ':') != NULL;
}

static int compare(const void *left, const void *right)
{
    const struct gpul_interface *a = left;
    const struct gpul_interface *b = right;
    const int orders[] = {
        is_candidate(b) - is_candidate(a),
        is_ipv6(a) - is_ipv6(b),
        a->is_tunnel - b->is_tunnel,
        b->is_rdma - a->is_rdma,
        (b->mbits > a->mbits) - (b->mbits < a->mbits),
        gpul_hostlist_compare(a->name, b->name),
        gpul_hostlist_compare(a->address, b->address),
    };
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (orders[i] != 0) {
            return orders[i];
        }
    }
    return 0;
}

/* ---- the bound ----------------------------------------------------------- */

/* However many there are of a better kind: the interface by which the node has
 * joined is known to work, and a node without an address of the others' family
 * reaches nobody. `all` is in order. */
static bool is_needed(const struct gpul_interface *all, size_t i)
{
    bool is_first = true;
    for (size_t k = 0; k < i; k++) {
        is_first = is_first && is_ipv6(&all[k]) != is_ipv6(&all[i]);
    }
    return is_first || all[i].is_joined;
}

/* Of n candidates in order, all but GPUL_LINKS_MAX are none any more. */
static void apply_bound(struct gpul_interface *all, size_t n)
{
    bool is_kept[GPUL_INTERFACES_FOUND_MAX] = {false};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        is_kept[i] = is_needed(all, i);
        kept += is_kept[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_kept[i] && kept < GPUL_LINKS_MAX) {
            is_kept[i] = true;
            kept++;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_kept[i]) {
            char why[GPUL_REJECTION_BYTES_MAX];
            snprintf(why, sizeof(why), "beyond the first %u addresses",
                     GPUL_LINKS_MAX);
            reject(&all[i], why);
        }
    }
}

size_t linkpick_sort(struct gpul_interface *all, size_t count,
                     const char *wanted, size_t *candidates)
{
    if (wanted[0] != 0) {
        apply_choice(all, count, wanted);
    }
    qsort(all, count, sizeof(*all), compare);
    size_t n = 0;
    while (n < count && is_candidate(&all[n])) {
        n++;
    }
    if (n > GPUL_LINKS_MAX) {
        apply_bound(all, n);
        qsort(all, count, sizeof(*all), compare);
    }
    *candidates = n < GPUL_LINKS_MAX ? n : GPUL_LINKS_MAX;
    return count < GPUL_INTERFACES_MAX ? count : GPUL_INTERFACES_MAX;
}

void linkpick_explain(char out[LINKPICK_TEXT_BYTES],
                      const struct gpul_interface *all, size_t count,
                      const char *wanted)
{
    size_t used = 0;
    if (wanted[0] != 0) {
        used = (size_t)snprintf(out, LINKPICK_TEXT_BYTES,
                                "it has no interface or address of --interface "
                                "%.128s; it has ",
                                wanted);
    }
    if (count == 0) {
        snprintf(out + used, LINKPICK_TEXT_BYTES - used, "%s",
                 wanted[0] != 0 ? "none at all" : "it has no address at all");
    }
    for (size_t i = 0; i < count && used < LINKPICK_TEXT_BYTES - 1; i++) {
        const char *gap = i > 0 ? wanted[0] != 0 ? ", " : "; " : "";
        int n = wanted[0] != 0
                    ? snprintf(out + used, LINKPICK_TEXT_BYTES - used,
                               "%s%s (%s)", gap, all[i].name, all[i].address)
                    : snprintf(out + used, LINKPICK_TEXT_BYTES - used,
                               "%s%s %s: %s", gap, all[i].name, all[i].address,
                               all[i].rejection);
        used += n > 0 ? (size_t)n : 0;
    }
}
