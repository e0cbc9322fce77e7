/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a job is where in its files. That others can read these is shown by
 * tests/e2e/manifest.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "launcher/manifest.h"

enum { BYTES_MAX = 1 << 16 };

static char train[] = "train", a_b[] = "a b", full[] = "--self-test=full";
static char *const command[] = {train, a_b};
static char *const options[] = {full};

static struct manifest usual(enum manifest_kind kind)
{
    return (struct manifest){
        .kind = kind,
        .name = "job",
        .image = "i",
        .gpu_resource = "nvidia.com/gpu",
        .user = MANIFEST_USER,
        .nodes = 3,
        .port = MANIFEST_PORT,
        .grace_ms = 30000,
        .join_timeout_ms = 600000,
        .options = options,
        .option_count = 1,
        .command = command,
        .command_count = 2,
    };
}

static void write(struct gpul_buf *out, const struct manifest *m)
{
    struct gpul_error err = {0};
    gpul_buf_init(out, BYTES_MAX);
    assert_int_equal(manifest_write(out, m, &err), 0);
}

static void expect(struct gpul_buf *out, const char *text)
{
    if (strstr(gpul_buf_text(out), text) == NULL) {
        fail_msg("it lacks \"%s\":\n%s", text, gpul_buf_text(out));
    }
}

static void expect_not(struct gpul_buf *out, const char *text)
{
    if (strstr(gpul_buf_text(out), text) != NULL) {
        fail_msg("it has \"%s\":\n%s", text, gpul_buf_text(out));
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {
        "a", "job-1", "a23456789012345678901234567890123456789012345678"};
    static const char *const bad[] = {
        "",         "1a",
        "-a",       "a-",
        "A",        "a.b",
        "a b",      "a\n",
        "\xc3\xa9", "a234567890123456789012345678901234567890123456789"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(manifest_name_is_valid(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(manifest_name_is_valid(bad[i]));
    }
    for (enum manifest_kind k = 1; k <= MANIFEST_TERRAFORM; k++) {
        assert_int_equal(manifest_kind_find(manifest_kind_name(k)), k);
    }
    assert_int_equal(manifest_kind_find("nomad"), 0);
}

/* The API server's own rules, so that it need not say no. */
static void test_other_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_namespace;
        bool is_secret;
    } rows[] = {
        {"a", true, true},     {"1-a", true, true},    {"a.b-1.2", false, true},
        {"", false, false},    {"A", false, false},    {"a_b", false, false},
        {"-a", false, false},  {"a-", false, false},   {"a.", false, false},
        {".a", false, false},  {"a..b", false, false}, {"a.-b", false, false},
        {"a b", false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(manifest_namespace_is_valid(rows[i].name),
                         rows[i].is_namespace);
        assert_int_equal(manifest_secret_is_valid(rows[i].name),
                         rows[i].is_secret);
    }
    char long_name[260];
    memset(long_name, 'a', sizeof(long_name));
    long_name[64] = '\0';
    assert_false(manifest_namespace_is_valid(long_name));
    assert_false(manifest_secret_is_valid(long_name));
    long_name[63] = '\0';
    assert_true(manifest_namespace_is_valid(long_name));
    for (size_t i = 0; i < 253; i++) {
        long_name[i] = i % 2 == 0 ? 'a' : '.';
    }
    long_name[253] = '\0';
    assert_true(manifest_secret_is_valid(long_name));
    memcpy(long_name + 253, ".a", 3);
    assert_false(manifest_secret_is_valid(long_name));
}

static void test_kubernetes(void **state)
{
    (void)state;
    struct gpul_buf out;
    struct manifest m = usual(MANIFEST_KUBERNETES);
    write(&out, &m);
    expect(&out, "\nkind: Job\n");
    expect(&out, "\n  completions: 3\n");
    expect(&out, "secretName: \"job-secret\"");
    expect(&out, "enter job-0.job\n");
    expect(&out, "operator: In\n          values: [40, 41, 75]\n");
    expect(&out, "operator: NotIn\n          values: [40, 41, 75]\n");
    expect(&out, "terminationGracePeriodSeconds: 45\n");
    expect(&out, "- --nodes=3\n            - --port=29400\n"
                 "            - \"--self-test=full\"\n            - --\n"
                 "            - \"train\"\n            - \"a b\"\n");
    expect_not(&out, "limits:");
    expect(&out, "\n        runAsNonRoot: true\n        runAsUser: 1000\n");
    expect(&out, "name: HOME\n              value: /tmp\n");
    gpul_buf_release(&out);

    m.user = 0;
    write(&out, &m);
    expect_not(&out, "runAs");
    expect_not(&out, "name: HOME");
    expect(&out, "drop: [ALL]\n");
    gpul_buf_release(&out);

    m.secret = "mine";
    m.gpus = 8;
    m.grace_ms = 1;
    m.is_jobset = true;
    m.retries = 5;
    write(&out, &m);
    expect(&out, "\nkind: JobSet\n");
    expect(&out, "\n    maxRestarts: 5\n");
    expect(&out, "\n          completions: 3\n");
    expect(&out, "enter job-node-0-0.job\n");
    expect(&out, "secretName: \"mine\"");
    expect(&out, "terminationGracePeriodSeconds: 16\n");
    expect(&out, "\"nvidia.com/gpu\": \"8\"\n");
    gpul_buf_release(&out);
}

static void test_slurm(void **state)
{
    (void)state;
    struct gpul_buf out;
    struct manifest m = usual(MANIFEST_SLURM);
    write(&out, &m);
    expect(&out, "#!/bin/bash\n");
    expect(&out, "\n#SBATCH --no-requeue\n");
    expect(&out, "\nexec gpulaunch --self-test=full -- train 'a b'\n");
    expect_not(&out, "--time=");
    expect_not(&out, "--gpus-per-node");
    gpul_buf_release(&out);

    m.gpus = 4;
    m.timeout_ms = 3600000;
    m.retries = 2;
    write(&out, &m);
    /* An hour, ten minutes to join, two to start, 45 s to end. */
    expect(&out, "\n#SBATCH --time=73\n");
    expect(&out, "\n#SBATCH --gpus-per-node=4\n");
    expect(&out, "\n#SBATCH --requeue\n");
    expect(&out, "-lt 2 ]; then\n        scontrol requeue");
    gpul_buf_release(&out);
}

static void test_compose(void **state)
{
    (void)state;
    struct gpul_buf out;
    struct manifest m = usual(MANIFEST_COMPOSE);
    m.gpus = 2;
    write(&out, &m);
    expect(&out, "\n  node-2:\n");
    expect_not(&out, "\n  node-3:\n");
    expect(&out, "device_ids: [\"4\", \"5\"]\n");
    expect(&out, "file: ./job.secret\n");
    gpul_buf_release(&out);
}

static void test_terraform(void **state)
{
    (void)state;
    struct gpul_buf out;
    struct manifest m = usual(MANIFEST_TERRAFORM);
    write(&out, &m);
    expect(&out, "--self-test=full -- train 'a b'\n");
    expect(&out, "name_prefix = \"${substr(local.name, 0, 37)}-\"\n");
    expect(&out, "variable \"nodes\" {\n  type    = number\n  default = 3\n");
    gpul_buf_release(&out);
}

/* Half a file would be worse than none. */
static void test_too_long(void **state)
{
    (void)state;
    for (enum manifest_kind k = 1; k <= MANIFEST_TERRAFORM; k++) {
        struct manifest m = usual(k);
        struct gpul_error err = {0};
        struct gpul_buf out;
        gpul_buf_init(&out, 100);
        assert_int_equal(manifest_write(&out, &m, &err), GPUL_ELIMIT);
        assert_string_equal(err.text, "the file would be too long");
        gpul_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_other_names),
        cmocka_unit_test(test_kubernetes), cmocka_unit_test(test_slurm),
        cmocka_unit_test(test_compose),    cmocka_unit_test(test_terraform),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
