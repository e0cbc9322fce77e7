/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the messages of docs/check.md.
 */
#include "proto/rule_words.h"

static const struct gpul_field_rule check_fields[] = {
    FLAG("is_strict"),
    PATH("data_dir"),
    FLAG("has_command"),
    NUMBER("survey_deadline_ms", 1, UINT32_MAX),
};
SHARED_BODY(check, gpul_check_check);

static const struct gpul_field_rule survey_start_fields[] = {
    NUMBER("deadline_ms", 1, UINT32_MAX),
    PATH("data_dir"),
    STRING("command", CSTRING, 0, GPUL_PATH_BYTES_MAX),
    STRING("working_directory", CSTRING, 0, GPUL_PATH_BYTES_MAX),
    STRING("job_id", NAME, 0, GPUL_JOB_ID_BYTES_MAX),
};
SHARED_BODY(survey_start, NULL);

static const struct gpul_field_rule fact_fields[] = {
    STRING("key", NAME, 1, GPUL_FACT_KEY_BYTES_MAX),
    STRING("value", LINE, 0, GPUL_FACT_VALUE_BYTES_MAX),
    STRING("unknown", LINE, 0, GPUL_FACT_UNKNOWN_BYTES_MAX),
};
SHARED_BODY(fact, gpul_check_fact);

static const struct gpul_field_rule survey_fields[] = {
    MESSAGES("facts", 0, GPUL_FACTS_MAX, fact_rule),
};
SHARED_BODY(survey, NULL);

static const struct gpul_field_rule clock_ping_fields[] = {
    ANY32("sequence"),
    ANY64("sent_ns"),
};
SHARED_BODY(clock_ping, NULL);

static const struct gpul_field_rule clock_pong_fields[] = {
    ANY32("sequence"),
    ANY64("ping_sent_ns"),
    ANY64("received_ns"),
    ANY64("sent_ns"),
};
SHARED_BODY(clock_pong, NULL);

static const struct gpul_field_rule finding_fields[] = {
    STRING("id", NAME, 1, GPUL_CHECK_ID_BYTES_MAX),
    CHOICE("severity", 1),
    STRING("nodes", NAME, 0, GPUL_CHECK_NODES_BYTES_MAX),
    SENTENCE("text"),
    STRING("value", LINE, 0, GPUL_CHECK_VALUE_BYTES_MAX),
    STRING("expected", LINE, 0, GPUL_CHECK_VALUE_BYTES_MAX),
    STRING("remedy", LINE, 0, GPUL_CHECK_REMEDY_BYTES_MAX),
};
SHARED_BODY(finding, NULL);

static const struct gpul_field_rule finding_counts_fields[] = {
    ANY32("passed"),  ANY32("warned"), ANY32("failed"),
    ANY32("unknown"), ANY32("untold"),
};
SHARED_BODY(finding_counts, NULL);
