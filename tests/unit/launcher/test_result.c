/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "launcher/json.h"
#include "launcher/result.h"

static char train[] = "train";
static char *command[] = {train, NULL};
static char node[] = "local-0";
static char host[] = "box";
static char address[] = "127.0.0.1";
static char reason[] = "rank_failed";
static char strangers[] = "HTTP (12)";
static char sentence[] = "rank 1 failed";
static char log_path[] = "/l/rank-1.err";
static char facts[] = "local-0: NCCL 2.28.9";
static char setting[] = "local-0: NCCL_DEBUG=WARN";
static char backend[] = "nccl";
static char notice[] = "kept OMP_NUM_THREADS";

/* Two hangs: one is reported twice and is over, one is not. */
static void tell_stalls(struct record *r)
{
    static char first[] = "first", again[] = "again", last[] = "last";
    static char suspects[] = "1";
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__STALL;
    record_event(r, &event, 2400); /* nothing hung */
    event.have = 2;
    event.text = first;
    record_event(r, &event, 2500);
    event.text = again;
    event.ranks = suspects;
    event.node_name = node;
    record_event(r, &event, 2600);
    event = (Gpul__Event)GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__STALL;
    record_event(r, &event, 3000);
    event.have = 1;
    event.text = last;
    record_event(r, &event, 3500);
}

/* Tells the record the story of a job: two ranks, a test, a failure. */
static void tell(struct record *r)
{
    r->started_unix_s = 1796077000;
    r->started_ms = 1000;
    Gpul__Member member = GPUL__MEMBER__INIT;
    Gpul__Member *members[] = {&member};
    member.node_name = node;
    member.hostname = host;
    member.address = address;
    member.rank_count = 2;
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__ASSIGNED;
    event.members = members;
    event.n_members = 1;
    record_event(r, &event, 1250);

    Gpul__SelfTestRow row = GPUL__SELF_TEST_ROW__INIT;
    Gpul__SelfTestRow *rows[] = {&row};
    row.bytes = 8;
    row.count = 2;
    row.iterations = 20;
    row.median_ns = 250000000;
    row.algbw_gbps = 0.5;
    row.busbw_gbps = 0.75;
    row.ceiling_gbps = 1;
    row.ceiling_kind = GPUL__LINK__LINK_RDMA;
    row.wire_gbps = 0.25;
    row.slowest_rank = 1;
    event = (Gpul__Event)GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_FACTS;
    event.text = facts;
    event.backend = backend;
    record_event(r, &event, 1300);
    event.kind = GPUL__EVENT__KIND__SELF_TEST_SETTINGS;
    event.text = setting;
    record_event(r, &event, 1300);
    event = (Gpul__Event)GPUL__EVENT__INIT;
    event.backend = backend;
    event.have = 2;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_PASSED;
    event.rows = rows;
    event.n_rows = 1;
    record_event(r, &event, 1500);

    event = (Gpul__Event)GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__NOTICE;
    event.text = notice;
    record_event(r, &event, 1600);
    event.kind = GPUL__EVENT__KIND__LAUNCHED;
    record_event(r, &event, 2000);

    tell_stalls(r);
    Gpul__Exit fate = GPUL__EXIT__INIT;
    Gpul__Exit *fates[] = {&fate};
    fate.rank = 1;
    fate.code = 7;
    fate.ran_ms = 500;
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    end.exit_code = 7;
    end.reason = reason;
    end.has_rank = 1;
    end.rank = 1;
    end.node_name = node;
    end.hostname = host;
    end.log = log_path;
    end.exits = fates;
    end.n_exits = 1;
    end.generation = 1;
    end.stranger_count = 12;
    end.strangers = strangers;
    assert_int_equal(record_end(r, &end, 4000), 0);
}

static json_t *print(const struct result *result)
{
    struct gpul_buf out;
    gpul_buf_init(&out, 1 << 16);
    assert_int_equal(result_print(&out, result), 0);
    assert_int_equal(out.data[out.used - 1], '\n');
    json_t *o = json_loads(gpul_buf_text(&out), 0, NULL);
    assert_non_null(o);
    gpul_buf_release(&out);
    return o;
}

/* The object holds what docs/operations.md promises, in seconds and bytes. */
static void test_failed_run(void **state)
{
    (void)state;
    struct record r = {0};
    struct plan plan = {.verb = PLAN_RUN,
                        .self_test = PLAN_SELF_TEST_QUICK,
                        .command = command,
                        .command_count = 1};
    tell(&r);
    struct result result = {.plan = &plan,
                            .record = &r,
                            .job_id = "job-1",
                            .log_dir = "/l",
                            .message = sentence,
                            .exit_code = 7};
    json_t *o = print(&result);
    char *got = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    assert_non_null(got);
    for (char *c = got; *c != '\0'; c++)
        *c = *c == '"' ? '\'' : *c;
    assert_string_equal(
        got,
        "{'command':['train'],'duration_seconds':3.0,'exit_code':7,"
        "'exits':[{'after_seconds':0.0,'cause':'exited with code 7',"
        "'cpu_seconds':0.0,'error_file_bytes':null,'exception':null,"
        "'exec_errno':0,'exit_code':7,'log':null,'max_rss_bytes':null,"
        "'nccl_warnings':null,'node':'local-0','out_of_memory':null,"
        "'pid':null,'ran_seconds':0.5,'rank':1,'signal':0,"
        "'stderr_tail':null,'stopped':false,'text':null}],"
        "'generation':1,'host':'box','job_id':'job-1',"
        "'log':'/l/rank-1.err','log_dir':'/l','message':'rank 1 failed',"
        "'metrics':null,"
        "'node':'local-0','nodes':[{'address':'127.0.0.1','first_rank':0,"
        "'gpus':0,'host':'box','interface':null,'name':'local-0','node_rank':0,"
        "'rank_count':2,'rejected_addresses':[]}],'notices':['kept "
        "OMP_NUM_THREADS'],"
        "'phases':{'gather_seconds':0.25,'launch_seconds':0.5,"
        "'run_seconds':2.0,'self_test_seconds':0.25},'rank':1,"
        "'reason':'rank_failed','restarts':0,'schema_version':1,"
        "'self_test':{'backend':'nccl','level':'quick',"
        "'libraries':['local-0: NCCL 2.28.9'],'rank_count':2,'rows':[{"
        "'algbw_bytes_per_second':500000000.0,"
        "'busbw_bytes_per_second':750000000.0,'bytes':8,"
        "'ceiling_bytes_per_second':1000000000.0,"
        "'ceiling_kind':'RDMA','ceiling_percent':75.0,"
        "'collective':'all-reduce','count':2,"
        "'iterations':20,'max_seconds':0.0,'median_seconds':0.25,"
        "'min_seconds':0.0,'scope':'world','slowest_rank':1,"
        "'verdict':'small',"
        "'wire_bytes_per_second':250000000.0,'wrong_elements':0}],"
        "'settings':['local-0: NCCL_DEBUG=WARN'],"
        "'simulated':false,'status':'passed'},"
        "'stalls':[{'at_seconds':1.5,'node':'local-0','rank_count':2,"
        "'resumed_at_seconds':2.0,'suspects':'1','text':'again'},"
        "{'at_seconds':2.5,'node':null,'rank_count':1,"
        "'resumed_at_seconds':null,'suspects':null,'text':'last'}],"
        "'started_at_unix_seconds':1796077000,'stopped_count':0,"
        "'stopped_ranks':null,"
        "'strangers':{'count':12,'text':'HTTP (12)'},'unclean':[],"
        "'version':'" GPULAUNCH_VERSION "','world_size':2}");
    free(got);
    json_decref(o);
    record_release(&r);
}

/* Before anything happened the object has the same keys, with nulls. */
static void test_nothing_happened(void **state)
{
    (void)state;
    struct record r = {.started_ms = 1000};
    struct plan plan = {.verb = PLAN_RUN, .self_test = PLAN_SELF_TEST_FULL};
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    end.exit_code = 40;
    end.reason = reason;
    assert_int_equal(record_end(&r, &end, 2000), 0);
    struct result result = {
        .plan = &plan, .record = &r, .job_id = "job-1", .exit_code = 40};
    json_t *o = print(&result);
    json_t *test = json_object_get(o, "self_test");
    json_t *phases = json_object_get(o, "phases");
    assert_string_equal(json_string_value(json_object_get(test, "status")),
                        "not_run");
    assert_true(json_is_null(json_object_get(phases, "gather_seconds")));
    assert_true(json_is_null(json_object_get(o, "rank")));
    assert_true(json_is_null(json_object_get(o, "log_dir")));
    assert_int_equal(json_array_size(json_object_get(o, "nodes")), 0);
    json_t *nobody = json_object_get(o, "strangers");
    assert_true(json_is_null(json_object_get(nobody, "text")));
    json_decref(o);
    record_release(&r);
}

/* What a double measured has no verdict, and the object says so. */
static void test_simulated(void **state)
{
    (void)state;
    struct record r = {0};
    Gpul__SelfTestRow row = GPUL__SELF_TEST_ROW__INIT;
    Gpul__SelfTestRow *rows[] = {&row};
    row.median_ns = 1000;
    row.algbw_gbps = 8;
    row.ceiling_gbps = 10;
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_PASSED;
    event.rows = rows;
    event.n_rows = 1;
    event.is_simulated = true;
    record_event(&r, &event, 1500);
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    assert_int_equal(record_end(&r, &end, 4000), 0);
    struct plan plan = {.verb = PLAN_RUN, .self_test = PLAN_SELF_TEST_QUICK};
    struct result result = {.plan = &plan, .record = &r, .job_id = "job-1"};
    json_t *o = print(&result);
    json_t *test = json_object_get(o, "self_test");
    json_t *got = json_array_get(json_object_get(test, "rows"), 0);
    assert_true(json_is_true(json_object_get(test, "simulated")));
    assert_true(json_is_null(json_object_get(got, "verdict")));
    assert_true(json_is_null(json_object_get(got, "ceiling_percent")));
    assert_true(json_is_null(json_object_get(got, "busbw_bytes_per_second")));
    json_decref(o);
    record_release(&r);
}

/* A self-test that was too slow has failed, and has its rows. */
static void test_slow(void **state)
{
    (void)state;
    struct record r = {.assigned_ms = 1000};
    Gpul__SelfTestRow row = GPUL__SELF_TEST_ROW__INIT;
    Gpul__SelfTestRow *rows[] = {&row};
    row.bytes = 8;
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_SLOW;
    event.backend = backend;
    event.have = 2;
    event.rows = rows;
    event.n_rows = 1;
    record_event(&r, &event, 1500);
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    assert_int_equal(record_end(&r, &end, 4000), 0);
    struct plan plan = {.verb = PLAN_RUN, .self_test = PLAN_SELF_TEST_QUICK};
    struct result result = {.plan = &plan, .record = &r, .job_id = "job-1"};
    json_t *o = print(&result);
    json_t *test = json_object_get(o, "self_test");
    json_t *got = json_array_get(json_object_get(test, "rows"), 0);
    assert_string_equal(json_string_value(json_object_get(test, "status")),
                        "failed");
    assert_int_equal(json_integer_value(json_object_get(test, "rank_count")),
                     2);
    assert_int_equal(json_integer_value(json_object_get(got, "bytes")), 8);
    json_t *phases = json_object_get(o, "phases");
    assert_true(json_real_value(json_object_get(phases, "self_test_seconds")) ==
                0.5);
    json_decref(o);
    record_release(&r);
}

/* A job that ends before all libraries are known: the end tells. */
static void test_early_end(void **state)
{
    (void)state;
    struct record r = {.assigned_ms = 1000};
    Gpul__JobEnd end = GPUL__JOB_END__INIT;
    end.doubles = GPUL__JOB_END__DOUBLES__SOME;
    assert_int_equal(record_end(&r, &end, 4000), 0);
    struct plan plan = {.verb = PLAN_RUN, .self_test = PLAN_SELF_TEST_QUICK};
    struct result result = {.plan = &plan, .record = &r, .job_id = "job-1"};
    json_t *o = print(&result);
    json_t *test = json_object_get(o, "self_test");
    assert_true(json_is_true(json_object_get(test, "simulated")));
    assert_string_equal(json_string_value(json_object_get(test, "backend")),
                        "double");
    json_decref(o);
    record_release(&r);
    r = (struct record){.assigned_ms = 1000};
    end.doubles = GPUL__JOB_END__DOUBLES__UNKNOWN;
    assert_int_equal(record_end(&r, &end, 4000), 0);
    o = print(&result);
    test = json_object_get(o, "self_test");
    assert_true(json_is_null(json_object_get(test, "simulated")));
    assert_true(json_is_null(json_object_get(test, "backend")));
    json_decref(o);
    record_release(&r);
}

/* A self-test that is skipped after a look at the devices ran on nothing. */
static void test_skipped(void **state)
{
    (void)state;
    struct record r = {0};
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_FACTS;
    event.text = facts;
    event.backend = backend;
    record_event(&r, &event, 1300);
    assert_string_equal(r.backend, "nccl");
    event = (Gpul__Event)GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__SELF_TEST_SKIPPED;
    record_event(&r, &event, 1400);
    assert_string_equal(r.backend, "");
    record_release(&r);
}

/* Only the last generation's members count. */
static void test_generations(void **state)
{
    (void)state;
    struct record r = {0};
    tell(&r);
    Gpul__Member member = GPUL__MEMBER__INIT;
    Gpul__Member *members[] = {&member};
    member.rank_count = 3;
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__ASSIGNED;
    event.members = members;
    event.n_members = 1;
    assert_int_equal(record_world_size(&r), 2);
    record_event(&r, &event, 5000);
    assert_int_equal(record_world_size(&r), 3);
    member.node_rank = 1; /* a second page of the same generation */
    record_event(&r, &event, 5001);
    assert_int_equal(record_world_size(&r), 6);
    record_release(&r);
}

/* The address that was proved takes the place of the one before. */
static void test_links(void **state)
{
    (void)state;
    struct record r = {0};
    tell(&r);
    char proved[] = "10.0.0.9";
    char interface[] = "ib0";
    char *rejected[] = {interface};
    Gpul__Member member = GPUL__MEMBER__INIT;
    Gpul__Member *members[] = {&member};
    member.rank_count = 2;
    member.address = proved;
    member.interface = interface;
    member.rejected = rejected;
    member.n_rejected = 1;
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__LINKS;
    event.members = members;
    event.n_members = 1;
    record_event(&r, &event, 5000);
    assert_int_equal(record_world_size(&r), 2);
    assert_string_equal(record_member(&r, 1)->address, "10.0.0.9");
    assert_string_equal(record_member(&r, 1)->rejected[0], "ib0");
    member.node_rank = 7; /* nobody */
    event.kind = GPUL__EVENT__KIND__LINKS_FAILED;
    record_event(&r, &event, 5001);
    assert_int_equal(record_world_size(&r), 2);
    record_release(&r);
}

/* Bytes that are no UTF-8 are readable, and exact beside it. */
static void test_foreign_bytes(void **state)
{
    (void)state;
    json_t *o = json_object();
    json_put_bytes(o, "plain", (const uint8_t *)"a\xc3\xa4", 3);
    json_put_bytes(o, "value", (const uint8_t *)"a\xff", 2);
    json_put_text(o, "none", "");
    char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"none\":null,\"plain\":\"a\xc3\xa4\","
                              "\"value\":\"a\xef\xbf\xbd\","
                              "\"value_hex\":\"61ff\"}");
    free(text);
    json_decref(o);
}

/* The words of a command: exact ones alone, else all of them in hex too. */
static void test_foreign_words(void **state)
{
    (void)state;
    char plain[] = "a", foreign[] = "b\xff";
    char *words[] = {plain, foreign};
    json_t *o = json_object();
    json_put_words(o, "one", words, 1);
    json_put_words(o, "two", words, 2);
    char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"one\":[\"a\"],"
                              "\"two\":[\"a\",\"b\xef\xbf\xbd\"],"
                              "\"two_hex\":[\"61\",\"62ff\"]}");
    free(text);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failed_run),
        cmocka_unit_test(test_nothing_happened),
        cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_early_end),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_foreign_bytes),
        cmocka_unit_test(test_foreign_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
