/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC, and so JAX and TensorFlow, would reach the job's own nodes through a
 * proxy and stall. Where a proxy is set, the nodes' addresses go to no_proxy.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/units.h"
#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/put.h"

enum { VALUE_BYTES_MAX = 128 * 1024 - (int)sizeof("no_proxy=") };

static bool is_proxy(const char *name)
{
    static const char tail[] = "_proxy";
    size_t n = strlen(name);
    return n >= sizeof(tail) - 1 &&
           strcasecmp(name + n - (sizeof(tail) - 1), tail) == 0 &&
           strcasecmp(name, "no_proxy") != 0;
}

/* Append the names of the proxy variables that are in force. */
static const char *list_proxies(struct env_plan *p, const char *names,
                                const struct env_givens *given)
{
    for (size_t i = 0; names != NULL && i < given->count; i++) {
        const struct env_given *v = &given->items[i];
        bool is_overridden =
            given == &p->inherited && env_plan_user(p, v->name) != NULL;
        if (is_proxy(v->name) && v->value[0] != 0 && !is_overridden) {
            names = env_plan_format(p, "%s%s%s", names,
                                    names[0] == 0 ? "" : ", ", v->name);
        }
    }
    return names;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct addresses of the nodes: "10.0.0.1,10.0.0.2". */
static const char *list_addresses(struct env_plan *p)
{
    const struct env_world *w = &p->in->world;
    size_t bytes = 1;
    for (uint32_t i = 0; i < w->node_count; i++) {
        bytes += strlen(w->addresses[i]) + 1;
    }
    const char **sorted = env_plan_alloc(p, w->node_count * sizeof(*sorted));
    char *text = env_plan_alloc(p, bytes);
    if (text == NULL) {
        return NULL;
    }
    memcpy(sorted, w->addresses, w->node_count * sizeof(*sorted));
    qsort(sorted, w->node_count, sizeof(*sorted), compare);
    char *out = text;
    for (uint32_t i = 0; i < w->node_count; i++) {
        if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0) {
            out = put_text(out, i > 0 ? "," : "");
            out = put_text(out, sorted[i]);
        }
    }
    return text;
}

static void claim(struct env_plan *p, const char *name, const char *base,
                  const char *addresses)
{
    bool is_empty = base == NULL || base[0] == 0;
    env_claim(p, (struct env_claim){
                     .name = name,
                     .rule = "a proxy is set: it must not stand between nodes",
                     .value = env_plan_format(p, "%s%s%s", is_empty ? "" : base,
                                              is_empty ? "" : ",", addresses),
                     .strength = ENV_IDENTITY,
                     .is_quiet = true,
                 });
}

void env_proxy_add(struct env_plan *p)
{
    const char *names = list_proxies(p, "", &p->inherited);
    names = list_proxies(p, names, &p->user);
    if (p->status != 0 || names[0] == 0) {
        return;
    }
    const char *lower = env_plan_inherited(p, "no_proxy");
    const char *upper = env_plan_inherited(p, "NO_PROXY");
    lower = lower != NULL ? lower : upper;
    upper = upper != NULL ? upper : lower;
    const char *addresses = list_addresses(p);
    if (addresses == NULL) {
        return;
    }
    size_t base = lower == NULL ? 0 : strlen(lower) + 1;
    base += upper == NULL ? 0 : strlen(upper) + 1;
    if (base + strlen(addresses) > VALUE_BYTES_MAX) {
        env_plan_note(p,
                      "a proxy is set (%s), and the addresses of %u node%s "
                      "do not fit into no_proxy: JAX and gRPC may stall; "
                      "unset it or give -x no_proxy=PATTERN",
                      names, p->in->world.node_count,
                      gpul_plural(p->in->world.node_count));
        return;
    }
    claim(p, "no_proxy", lower, addresses);
    claim(p, "NO_PROXY", upper, addresses);
    env_plan_note(p,
                  "a proxy is set (%s): the nodes' addresses are added to "
                  "no_proxy and NO_PROXY, since JAX and gRPC may stall "
                  "otherwise",
                  names);
}
