/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator/checks_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FACTS_MAX = 128 };

struct said {
    Gpul__Survey survey;
    Gpul__Fact facts[FACTS_MAX];
    Gpul__Fact *list[FACTS_MAX];
    bool is_silent;
};

struct checks checks;
struct roster stage_roster;
struct checks_need stage_need;
static struct said *said;
static uint32_t said_count;

/* A machine with two GPUs and a RDMA card that is well. */
static const struct {
    const char *key;
    const char *value;
} well[] = {
    {"os.kernel", "6.1.0-18-amd64"},
    {"os.release", "Debian GNU/Linux 12 (bookworm)"},
    {"os.uptime", "864000"},
    {"os.virtual", "none"},
    {"os.clock_source", "tsc"},
    {"os.governor", "performance"},
    {"os.thp", "madvise"},
    {"cpu.online", "64"},
    {"cpu.allowed", "64"},
    {"cpu.quota", "none"},
    {"cpu.numa_nodes", "2"},
    {"memory.total", "549755813888"},
    {"memory.limit", "none"},
    {"memory.swap_used", "0"},
    {"pids.limit", "none"},
    {"limit.memlock.hard", "unlimited"},
    {"limit.nofile.hard", "1048576"},
    {"limit.nproc.soft", "unlimited"},
    {"limit.stack.soft", "8388608"},
    {"shm.size", "274877906944"},
    {"shm.free", "274877906944"},
    {"pci.acs", "off"},
    {"pci.iommu", "passthrough"},
    {"pci.narrow", "none"},
    {"net.hostname", "node"},
    {"net.resolves", "10.0.0.1"},
    {"net.resolves_to_itself", "yes"},
    {"net.default", "eth0"},
    {"net.mtu.eth0", "9000"},
    {"net.cards", "1 x 25 Gbit/s"},
    {"net.drivers", "mlx5_core/24.10"},
    {"net.firmware", "mlx5_core/28.39.1002"},
    {"net.bonds", "none"},
    {"net.shared_subnet", "none"},
    {"net.ifname_matches", "exact"},
    {"rdma.ports", "1"},
    {"rdma.down", "none"},
    {"rdma.link_downed", "0"},
    {"rdma.gpudirect", "nvidia_peermem"},
    {"rdma.hca_matches", "as written"},
    {"rdma.rail.0", "InfiniBand, 400 Gb/sec"},
    {"nvidia.driver", "570.86.15"},
    {"nvidia.count", "2"},
    {"nvidia.bus_ids", "0000:1b:00.0 0000:43:00.0"},
    {"gpu.memory", "171798691840"},
    {"gpu.memories", "85899345920"},
    {"gpu.models", "NVIDIA_H100"},
    {"gpu.ecc", "on"},
    {"gpu.mig", "off"},
    {"nvidia.vbios", "96.00.74.00.01"},
    {"nccl.conf.etc", "none"},
    {"environment.count", "1"},
    {"env.NCCL_DEBUG", "WARN"},
    {"lib.libnccl.so.2", "/opt/nccl (1000 bytes)"},
    {"python.path", "/usr/bin/python3.11"},
    {"command.path", "/usr/bin/python3.11"},
    {"data.path", "/data"},
    {"data.filesystem", "nfs4"},
    {"data.sequential", "2000000000"},
    {"data.sequential_is_cached", "no"},
    {"data.small_files", "500000000"},
    {"data.small_files_are_cached", "no"},
};

static void make_roster(uint32_t nodes)
{
    char name[32];
    char *names = name;
    Gpul__Job job = GPUL__JOB__INIT;
    snprintf(name, sizeof(name), nodes > 1 ? "n[0-%u]" : "n%u", nodes - 1);
    job.node_count = nodes;
    job.node_names = &names;
    job.n_node_names = 1;
    assert_int_equal(roster_init(&stage_roster, &job, NULL), 0);
}

void stage_begin(uint32_t nodes)
{
    stage_end();
    make_roster(nodes);
    said = calloc(nodes, sizeof(*said));
    assert_non_null(said);
    said_count = nodes;
    stage_need = (struct checks_need){.node_ranks = 2, .job_ranks = 2 * nodes};
    for (uint32_t i = 0; i < nodes; i++) {
        gpul__survey__init(&said[i].survey);
        said[i].survey.facts = said[i].list;
    }
    for (size_t i = 0; i < sizeof(well) / sizeof(well[0]); i++) {
        stage_say(STAGE_ALL, well[i].key, well[i].value);
    }
}

void stage_end(void)
{
    checks_release(&checks);
    roster_release(&stage_roster);
    stage_roster = (struct roster){0};
    free(said);
    said = NULL;
}

static Gpul__Fact *fact_of(struct said *s, const char *key)
{
    Gpul__Survey *survey = &s->survey;
    for (size_t i = 0; i < survey->n_facts; i++) {
        if (strcmp(survey->facts[i]->key, key) == 0) {
            return survey->facts[i];
        }
    }
    assert_true(survey->n_facts < FACTS_MAX);
    Gpul__Fact *fact = &s->facts[survey->n_facts];
    gpul__fact__init(fact);
    fact->key = wire_text(key);
    s->list[survey->n_facts++] = fact;
    return fact;
}

static void set(uint32_t node, const char *key, const char *value,
                const char *why)
{
    for (uint32_t i = 0; i < said_count; i++) {
        if (node == STAGE_ALL || node == i) {
            Gpul__Fact *fact = fact_of(&said[i], key);
            fact->value = wire_text(value);
            fact->unknown = wire_text(why);
        }
    }
}

void stage_say(uint32_t node, const char *key, const char *value)
{
    set(node, key, value, "");
}

void stage_unknown(uint32_t node, const char *key, const char *why)
{
    set(node, key, "", why);
}

void stage_forget(uint32_t node, const char *key)
{
    for (uint32_t i = 0; i < said_count; i++) {
        if (node == STAGE_ALL || node == i) {
            Gpul__Survey *survey = &said[i].survey;
            Gpul__Fact *fact = fact_of(&said[i], key);
            *fact = *survey->facts[--survey->n_facts];
        }
    }
}

void stage_silence(uint32_t node)
{
    said[node].is_silent = true;
}

void stage_judge(void)
{
    checks_release(&checks);
    assert_int_equal(checks_init(&checks, said_count, &stage_need), 0);
    for (uint32_t i = said_count; i > 0; i--) {
        if (!said[i - 1].is_silent) {
            assert_int_equal(checks_add(&checks, i - 1, &said[i - 1].survey),
                             0);
        }
    }
    assert_int_equal(checks_judge(&checks, &stage_roster), 0);
}

const struct checks_finding *stage_find(const char *id)
{
    for (size_t i = 0; i < checks.finding_count; i++) {
        if (strcmp(check_id(checks.findings[i].check), id) == 0) {
            return &checks.findings[i];
        }
    }
    return NULL;
}

static void join_names(char *out, size_t bytes, const struct checks_finding *f)
{
    size_t n = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < said_count; i++) {
        if (checks_names(f, i) && n < bytes) {
            n += (size_t)snprintf(out + n, bytes - n, "%sn%u", n > 0 ? " " : "",
                                  i);
        }
    }
}

void stage_expect(const char *id, enum check_severity severity,
                  const char *nodes, const char *words)
{
    char names[1024];
    for (size_t i = 0; i < checks.finding_count; i++) {
        const struct checks_finding *f = &checks.findings[i];
        if (strcmp(check_id(f->check), id) != 0 || f->severity != severity) {
            continue;
        }
        join_names(names, sizeof(names), f);
        if (strcmp(names, nodes) == 0 && (strstr(f->text, words) != NULL ||
                                          strstr(f->value, words) != NULL ||
                                          strstr(f->expected, words) != NULL)) {
            assert_true(strlen(checks_remedy(f)) > 0);
            return;
        }
        print_error("%s of \"%s\": %s\n", id, names, f->text);
    }
    fail_msg("%s does not say \"%s\" of \"%s\"", id, words, nodes);
}

void stage_expect_pass(const char *id)
{
    const struct checks_finding *f = stage_find(id);
    if (f == NULL || f->severity != CHECK_PASS) {
        fail_msg("%s has not passed: %s", id, f != NULL ? f->text : "nothing");
    }
}

void stage_expect_none(const char *id)
{
    const struct checks_finding *f = stage_find(id);
    if (f != NULL) {
        fail_msg("%s applies: %s", id, f->text);
    }
}
