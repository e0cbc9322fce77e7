/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof of addresses, docs/links.md, between Ready and the roster. What
 * the node listens on stays open until then: others may still dial it when it
 * has reported.
 */
#include "worker/agent_internal.h"

bool agent_is_ready(const struct agent *a)
{
    return a->state == AGENT_ASSIGNED && a->port_base != 0 &&
           a->world.page_count == 0;
}

bool agent_link_start(struct agent *a, const Gpul__LinkStart *start)
{
    if (!agent_is_ready(a) || a->has_links) {
        return false;
    }
    a->has_links = true;
    agent_emit(a, AGENT_OPEN_LINKS)->token = start->token;
    return true;
}

bool agent_link_peers(struct agent *a, const Gpul__LinkPeers *peers)
{
    if (!agent_is_ready(a) || !a->has_links) {
        return false;
    }
    agent_emit(a, AGENT_DIAL_LINKS)->peers = peers;
    return true;
}

void agent_links_settle(struct agent *a)
{
    if (a->has_links && (!agent_is_ready(a) || a->is_leaving)) {
        a->has_links = false;
        agent_emit(a, AGENT_CLOSE_LINKS);
    }
}
