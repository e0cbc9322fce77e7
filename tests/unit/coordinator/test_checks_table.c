/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of checks against docs/checks.md, and against the reports of users
 * that it is there for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/checks_inside.h"
#include "tests/unit/coordinator/checks_stage.h"

static int end(void **state)
{
    (void)state;
    stage_end();
    return 0;
}

static char *read_page(void)
{
    enum { BYTES_MAX = 256 << 10 };
    FILE *f = fopen(SOURCE_DIR "/docs/checks.md", "r");
    char *text = malloc(BYTES_MAX);
    assert_true(f != NULL && text != NULL);
    size_t n = fread(text, 1, BYTES_MAX - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static const char *severity_name(enum check_severity severity)
{
    return severity == CHECK_FAIL ? "fail" : "warn";
}

static size_t count_rows(const char *page)
{
    size_t rows = 0;
    for (const char *at = page; (at = strstr(at, "\n| ")) != NULL; at += 3) {
        size_t n = strspn(at + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        rows += n > 1 && at[3 + n] == '-';
    }
    return rows;
}

/* Each check has its row, word for word, and no row is of another one. */
static void test_page(void **state)
{
    (void)state;
    size_t count, missing = 0;
    const struct check *table = checks_table(&count);
    char *page = read_page();
    for (size_t i = 0; i < count; i++) {
        char row[1024];
        const struct check *c = &table[i];
        snprintf(row, sizeof(row), "\n| %s | %s | %s | %s | %s |\n", c->id,
                 c->title, severity_name(c->severity), c->remedy, c->source);
        if (strstr(page, row) == NULL) {
            print_error("docs/checks.md lacks:%s", row);
            missing++;
        }
    }
    assert_int_equal(missing, 0);
    assert_int_equal(count_rows(page), count);
    free(page);
}

/* In order, none twice, each with all that a finding needs. */
static void test_rows(void **state)
{
    (void)state;
    size_t count;
    const struct check *table = checks_table(&count);
    for (size_t i = 0; i < count; i++) {
        const struct check *c = &table[i];
        assert_true(i == 0 || strcmp(table[i - 1].id, c->id) < 0);
        assert_ptr_equal(checks_find(c->id, strlen(c->id)), c);
        assert_true(strlen(c->id) <= GPUL_CHECK_ID_BYTES_MAX);
        assert_true(strlen(c->remedy) <= GPUL_CHECK_REMEDY_BYTES_MAX);
        assert_true(c->remedy[strlen(c->remedy) - 1] != '.');
        assert_int_equal(c->kind == CHECK_RULE, c->rule != NULL);
        bool has_key = c->kind == CHECK_SAME || c->kind == CHECK_FAMILY ||
                       c->kind == CHECK_NEAR;
        assert_int_equal(has_key, c->key != NULL);
    }
}

/* ---- reports of users ----------------------------------------------------
 *
 * Not here, since no survey can show them: whole reaches of addresses and
 * bridges (test_links, e2e-links), a GPU claimed twice and versions of NCCL and
 * its driver (test_facts_judge), links between two nodes (test_pairsearch,
 * e2e-checkpairs), data, deadlines and aborts of the self-test (e2e-gpu,
 * e2e-gpuprobes). Not told at all yet: the state of the GPU fabric (nccl#976;
 * NVML's call for it is not read), and sockets used though RDMA is there
 * (aws-ofi-nccl#64; NCCL says it in its log only).
 */

/* What node n2 of four says, and what must be found: of n2, or of another
 * severity than the row of the table where a rule has two. */
static const struct report {
    const char *from;
    const char *key;
    const char *value;
    const char *id;
    enum check_severity severity;
    const char *remedy; /* some words of it */
} reports[] = {
    {"nccl#286", "net.default", "ens5", "NET-101", CHECK_WARN,
     "NCCL_SOCKET_IFNAME"},
    {"nccl-tests#9", "net.ifname_matches", "bond0 bond0.5", "NET-102",
     CHECK_WARN, "=NAME"},
    {"nccl#1580", "net.shared_subnet", "eth0 and eth1 in 10.0.0.0/24",
     "NET-104", CHECK_WARN, "subnet"},
    {"pytorch#85300", "net.resolves", "127.0.1.1", "NET-120", CHECK_WARN,
     "/etc/hosts"},
    {"nccl#394", "env.NCCL_DEBUG", "INFO", "ENV-130", CHECK_WARN, "-x NAME"},
    {"verl#6621", "lib.libnccl.so.2", "/usr/lib (900 bytes)", "VER-309",
     CHECK_WARN, "install the same"},
    {"nccl#2428", "net.cards", "none", "NET-140", CHECK_WARN, "cables"},
    {"aicr#1858", "nvidia.count", "1", "GPU-202", CHECK_WARN, "XID"},
    {"nccl#290", "shm.free", "0", "HOST-501", CHECK_FAIL, "--shm-size"},
    {"nccl-tests#206", "limit.memlock.hard", "8388608", "HOST-502", CHECK_FAIL,
     "unlimited"},
    {"nccl#550", "limit.nofile.hard", "1024", "HOST-503", CHECK_WARN, "nofile"},
    {"nccl#257", "pci.iommu", "translated", "PCI-512", CHECK_WARN, "iommu=pt"},
    {"nccl#897", "rdma.gpudirect", "none", "RDMA-601", CHECK_WARN,
     "nvidia_peermem"},
    {"nccl#622", "rdma.rail.0", "Ethernet, 400 Gb/sec", "RDMA-602", CHECK_WARN,
     "link layer"},
    {"NVSentinel#890", "pci.narrow", "0000:1b:00.0 x8 of x16", "PCI-513",
     CHECK_WARN, "reseat"},
};

static void test_reports(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
        const struct report *r = &reports[i];
        stage_begin(4);
        stage_say(2, r->key, r->value);
        stage_judge();
        stage_expect(r->id, r->severity, "n2", "");
        const char *remedy = checks_remedy(stage_find(r->id));
        if (strstr(remedy, r->remedy) == NULL) {
            fail_msg("%s: %s: %s", r->from, r->id, remedy);
        }
    }
}

/* DCGM#122: what did not run is not healthy. */
static void test_report_of_unknown(void **state)
{
    (void)state;
    stage_begin(4);
    stage_unknown(2, "survey.nvidia", "no answer within 5 s");
    stage_forget(2, "nvidia.count");
    stage_forget(2, "nvidia.bus_ids");
    stage_judge();
    stage_expect("GPU-202", CHECK_UNKNOWN, "n2", "no answer within 5 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_rows),
        cmocka_unit_test_teardown(test_reports, end),
        cmocka_unit_test_teardown(test_report_of_unknown, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
