/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator/facts_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct roster roster;
struct facts facts;
struct report reports[NODES];
struct facts_judgement judgement;

void stage_make_report(struct report *r, uint32_t node)
{
    gpul__probe_facts__init(&r->facts);
    gpul__library__init(&r->nccl);
    gpul__library__init(&r->cuda);
    r->nccl.version = wire_text("2.28.9");
    r->nccl.path = wire_text("/lib/libnccl.so.2");
    r->cuda.version = wire_text("13.0");
    r->cuda.path = wire_text("/lib/libcuda.so.1");
    r->cuda.version_code = 13000;
    for (uint32_t i = 0; i < DEVICES; i++) {
        gpul__device__init(&r->devices[i]);
        snprintf(r->uuids[i], sizeof(r->uuids[i]), "GPU-%u%u", node, i);
        r->devices[i].uuid = r->uuids[i];
        r->devices[i].model = wire_text("A");
        r->devices[i].link_gbps = 450;
        r->devices[i].link_kind = GPUL__LINK__LINK_NVLINK;
        r->devices[i].pcie_gbps = 63;
        r->list[i] = &r->devices[i];
    }
    for (uint32_t i = 0; i < NICS; i++) {
        gpul__nic__init(&r->nics[i]);
        r->nics[i].name = wire_text(i == 0 ? "mlx5_0" : "mlx5_1");
        r->nics[i].kind = GPUL__LINK__LINK_RDMA;
        r->nics[i].gbits = 400;
        r->nic_list[i] = &r->nics[i];
    }
    r->facts.nics = r->nic_list;
    r->facts.n_nics = NICS;
    r->facts.nccl = &r->nccl;
    r->facts.cuda = &r->cuda;
    r->facts.devices = r->list;
    r->facts.n_devices = DEVICES;
    r->facts.has_scalable_init = true;
}

int stage_set(void **state)
{
    (void)state;
    char *names = wire_text("n[0-2]");
    Gpul__Job job = GPUL__JOB__INIT;
    Gpul__Facts host = GPUL__FACTS__INIT;
    Gpul__Hello hello = GPUL__HELLO__INIT;
    job.node_count = NODES;
    job.node_names = &names;
    job.n_node_names = 1;
    hello.facts = &host;
    assert_int_equal(roster_init(&roster, &job, NULL), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        char name[] = {'h', (char)('0' + i), 0};
        host.hostname = name;
        assert_int_equal(roster_join(&roster, &roster.nodes[i], i, &hello), 0);
        stage_make_report(&reports[i], i);
    }
    return facts_init(&facts, NODES);
}

int stage_clear(void **state)
{
    (void)state;
    facts_release(&facts);
    roster_release(&roster);
    return 0;
}

enum facts_verdict stage_judge(void)
{
    for (uint32_t i = NODES; i > 0; i--) {
        assert_int_equal(facts_add(&facts, i - 1, &reports[i - 1].facts), 0);
    }
    assert_int_equal(facts_judge(&facts, &judgement, &roster), 0);
    return judgement.verdict;
}
