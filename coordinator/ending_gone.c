/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes whose process the front end has seen to end.
 */
#include <stdlib.h>

#include "coordinator/core.h"

/* Which failures a retry may mend (75), and which somebody has to. */
static const struct {
    uint32_t code;
    const char *reason;
} never_joined[] = {
    [GPUL__NODE_GONE__WHY__ENDED] = {OUTCOME_DEADLINE, "node_gone"},
    [GPUL__NODE_GONE__WHY__NO_NAME] = {OUTCOME_INTERNAL, "node_name"},
    [GPUL__NODE_GONE__WHY__NO_CONNECTION] = {OUTCOME_INFRASTRUCTURE,
                                             "node_unreachable"},
    [GPUL__NODE_GONE__WHY__NO_LOGIN] = {OUTCOME_INTERNAL, "node_login"},
    [GPUL__NODE_GONE__WHY__NO_HOST_KEY] = {OUTCOME_INTERNAL, "node_host_key"},
    [GPUL__NODE_GONE__WHY__NO_WORKER] = {OUTCOME_NOT_FOUND, "worker_missing"},
    [GPUL__NODE_GONE__WHY__NOT_EXECUTABLE] = {OUTCOME_NOT_EXECUTABLE,
                                              "worker_not_executable"},
    [GPUL__NODE_GONE__WHY__NO_LIBRARY] = {OUTCOME_INTERNAL, "worker_library"},
    [GPUL__NODE_GONE__WHY__WRONG_VERSION] = {OUTCOME_INTERNAL,
                                             "worker_version"},
    [GPUL__NODE_GONE__WHY__NO_COORDINATOR] = {OUTCOME_DEADLINE,
                                              "coordinator_unreachable"},
    [GPUL__NODE_GONE__WHY__NOT_STARTED] = {OUTCOME_INTERNAL,
                                           "node_not_started"},
};

void ending_never_joined(struct rendezvous *r, const struct node *node)
{
    outcome_decide(&r->outcome, never_joined[node->gone_why].code,
                   never_joined[node->gone_why].reason, node,
                   "node %s did not join: %s", node->name, node->last_words);
    ending_begin(r, 0);
}

void ending_node_gone(struct rendezvous *r, struct node *node, uint32_t why,
                      const char *words)
{
    free(node->last_words);
    node->gone_why = why;
    node->last_words = text_copy(words);
    if (node->last_words == NULL) {
        outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for a sentence");
    } else if (node_is_here(node)) {
        return; /* its connection closes next, maybe after its own words */
    } else if (r->phase == PHASE_GATHERING) {
        ending_never_joined(r, node);
    } else if (node->is_away) {
        away_forget(r, node);
        peers_depart(r, node, words);
    }
}
