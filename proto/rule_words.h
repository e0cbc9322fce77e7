/* SPDX-License-Identifier: Apache-2.0
 *
 * The words in which proto/rules.c, proto/rules_selftest.c,
 * proto/rules_links.c, proto/rules_pairs.c and proto/rules_check.c state the
 * rules of
 * gpulaunch.proto. For these only.
 */
#ifndef GPUL_PROTO_RULE_WORDS_H
#define GPUL_PROTO_RULE_WORDS_H

#include "gpulaunch.pb-c.h"
#include "proto/crosscheck.h"
#include "proto/limits.h"
#include "proto/validate.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One field. Sizes are in bytes; "up to" rules accept the empty string. */
#define NUMBER(n, low, high)                                                   \
    {                                                                          \
        .name = (n), .kind = GPUL_FIELD_NUMBER, .min = (low), .max = (high)    \
    }
#define ANY32(n) NUMBER(n, 0, UINT32_MAX)
#define ANY64(n) NUMBER(n, 0, UINT64_MAX)
#define PORT(n) NUMBER(n, 1, GPUL_PORT_MAX)
#define FLAG(n)                                                                \
    {                                                                          \
        .name = (n), .kind = GPUL_FIELD_FLAG                                   \
    }
#define CHOICE(n, low)                                                         \
    {                                                                          \
        .name = (n), .kind = GPUL_FIELD_CHOICE, .min = (low)                   \
    }
#define STRING(n, k, low, high)                                                \
    {                                                                          \
        .name = (n), .kind = GPUL_FIELD_##k, .min = (low), .max = (high)       \
    }
#define NODE_NAME(n, low) STRING(n, NAME, low, GPUL_NAME_BYTES_MAX)
#define HOSTNAME(n) STRING(n, LINE, 0, GPUL_NAME_BYTES_MAX)
#define ADDRESS(n) STRING(n, NAME, 1, GPUL_ADDRESS_BYTES_MAX)
#define VERSION(n) STRING(n, LINE, 0, GPUL_VERSION_BYTES_MAX)
#define SENTENCE(n) STRING(n, LINES, 0, GPUL_TEXT_BYTES_MAX)
#define PATH(n) STRING(n, LINE, 0, GPUL_PATH_BYTES_MAX)
#define MESSAGE(n, rule)                                                       \
    {                                                                          \
        .name = (n), .kind = GPUL_FIELD_MESSAGE, .body = &(rule)               \
    }

/* The same for one that an older peer does not send. */
#define OPTIONAL_MESSAGE(n, rule)                                              \
    {                                                                          \
        .name = (n), .kind = GPUL_FIELD_MESSAGE, .body = &(rule),              \
        .is_optional = true                                                    \
    }

/* A repeated field; the bounds of its elements follow those of the list. */
#define LIST(n, k, count_low, count_high, low, high)                           \
    {                                                                          \
        .name = (n), .kind = GPUL_FIELD_##k, .min = (low), .max = (high),      \
        .count_min = (count_low), .count_max = (count_high)                    \
    }
#define MESSAGES(n, count_low, count_high, rule)                               \
    {                                                                          \
        .name = (n), .kind = GPUL_FIELD_MESSAGE, .count_min = (count_low),     \
        .count_max = (count_high), .body = &(rule)                             \
    }

/* The rules of a message from the table `<prefix>_fields`. */
#define BODY(prefix, check_function) static SHARED_BODY(prefix, check_function)

/* The same, for the other file to refer to. */
#define SHARED_BODY(prefix, check_function)                                    \
    const struct gpul_body_rule prefix##_rule = {                              \
        .descriptor = &gpul__##prefix##__descriptor,                           \
        .fields = prefix##_fields,                                             \
        .field_count = COUNT(prefix##_fields),                                 \
        .check = (check_function),                                             \
    }

#define RANK(n) NUMBER(n, 0, GPUL_RANKS_MAX - 1)
#define NODE_RANK(n) NUMBER(n, 0, GPUL_NODES_MAX - 1)
#define NODE_COUNT(n) NUMBER(n, 1, GPUL_NODES_MAX)
#define RANK_COUNT(n) NUMBER(n, 1, GPUL_RANKS_PER_NODE_MAX)

/* Stated in rules_links.c. */
extern const struct gpul_body_rule link_start_rule;
extern const struct gpul_body_rule link_listening_rule;
extern const struct gpul_body_rule link_peers_rule;
extern const struct gpul_body_rule link_report_rule;

/* Stated in rules_pairs.c. */
extern const struct gpul_body_rule pair_start_rule;
extern const struct gpul_body_rule pair_listening_rule;
extern const struct gpul_body_rule trial_start_rule;
extern const struct gpul_body_rule trial_result_rule;
extern const struct gpul_body_rule pair_end_rule;
extern const struct gpul_body_rule pair_row_rule;
extern const struct gpul_body_rule pair_verdict_rule;

/* Stated in rules_check.c. */
extern const struct gpul_body_rule check_rule;
extern const struct gpul_body_rule survey_start_rule;
extern const struct gpul_body_rule survey_rule;
extern const struct gpul_body_rule fact_rule;
extern const struct gpul_body_rule clock_ping_rule;
extern const struct gpul_body_rule clock_pong_rule;
extern const struct gpul_body_rule finding_rule;
extern const struct gpul_body_rule finding_counts_rule;

/* Stated in rules_selftest.c. */
extern const struct gpul_body_rule self_test_rule;
extern const struct gpul_body_rule self_test_row_rule;
extern const struct gpul_body_rule probe_start_rule;
extern const struct gpul_body_rule probe_listening_rule;
extern const struct gpul_body_rule probe_connect_rule;
extern const struct gpul_body_rule probe_result_rule;
extern const struct gpul_body_rule probe_facts_rule;
extern const struct gpul_body_rule probe_begin_rule;
extern const struct gpul_body_rule probe_id_rule;
extern const struct gpul_body_rule probe_ids_rule;
extern const struct gpul_body_rule probe_phase_rule;

#endif
