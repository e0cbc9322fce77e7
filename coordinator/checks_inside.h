/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sources of coordinator/checks.h share. Pure.
 */
#ifndef COORDINATOR_CHECKS_INSIDE_H
#define COORDINATOR_CHECKS_INSIDE_H

#include "coordinator/checks.h"

/* ---- the table ------------------------------------------------------------
 */

/* How a check comes to its finding. */
enum check_kind {
    CHECK_RULE = 1, /* a rule on the survey of one node */
    CHECK_SAME,     /* a fact that must be equal on all nodes */
    CHECK_FAMILY,   /* all facts with this beginning, each of them so */
    CHECK_NEAR,     /* a number within 3 % of the median */
    CHECK_ALL,      /* every node has said something */
    CHECK_GIVEN,    /* told by checks_add_sentence */
};

/* A survey under a rule. */
struct look {
    const Gpul__Survey *survey;
    const struct checks_need *need;
    struct text value;    /* what it is, behind "has" */
    struct text expected; /* what it should be */
};

typedef enum check_severity (*check_rule)(struct look *look);

struct check {
    const char *id;
    const char *title;            /* what is looked at */
    enum check_severity severity; /* the worst that it says by itself */
    enum check_kind kind;
    const char *key; /* the fact; of a family, its beginning */
    check_rule rule;
    bool is_list;       /* words: what is missing is told */
    const char *detail; /* of SAME: the fact with those words; NULL: itself */
    const char *only_with; /* of SAME: a fact that nodes have that were asked
                              for it; NULL: all are */
    bool skips_absent;     /* of a family: a node without it is not compared */
    const char *remedy;    /* a sentence without its stop */
    const char *source;    /* where the fact comes from */
};

const struct check *checks_table(size_t *count);
const struct check *checks_find(const char *id, size_t bytes);

/* ---- rules: coordinator/checks_host.c and checks_wires.c ------------------
 */

/* The fact, or NULL where it was not told. */
const Gpul__Fact *look_fact(const Gpul__Survey *survey, const char *key);

/* Was the node asked for what this fact tells first? It is so if it may have
 * been. */
bool look_was_asked(const Gpul__Survey *survey, const char *key);

/* Why the fact has no value; a static text or the survey's own. */
const char *look_reason(const Gpul__Survey *survey, const char *key);

/* The value; NULL, with the reason as `value`, where there is none. */
const char *look_text(struct look *look, const char *key);

/* Likewise a number; "none" and "unlimited" are infinite. */
bool look_number(struct look *look, double *out, const char *key);

/* "1.5 GiB" for people. */
void look_size(struct text *out, double bytes);

enum check_severity check_shm(struct look *look);
enum check_severity check_memlock(struct look *look);
enum check_severity check_nofile(struct look *look);
enum check_severity check_processes(struct look *look);
enum check_severity check_stack(struct look *look);
enum check_severity check_cores(struct look *look);
enum check_severity check_quota(struct look *look);
enum check_severity check_swap(struct look *look);
enum check_severity check_memory(struct look *look);
enum check_severity check_governor(struct look *look);
enum check_severity check_clock_source(struct look *look);
enum check_severity check_command(struct look *look);
enum check_severity check_variables(struct look *look);
enum check_severity check_sequential(struct look *look);
enum check_severity check_small_files(struct look *look);

enum check_severity check_ifname(struct look *look);
enum check_severity check_subnet(struct look *look);
enum check_severity check_own_name(struct look *look);
enum check_severity check_own_address(struct look *look);
enum check_severity check_acs(struct look *look);
enum check_severity check_iommu(struct look *look);
enum check_severity check_pcie_links(struct look *look);
enum check_severity check_gpudirect(struct look *look);
enum check_severity check_rdma_down(struct look *look);
enum check_severity check_flaps(struct look *look);
enum check_severity check_hca(struct look *look);

/* ---- what was added -------------------------------------------------------
 */

/* A fact that is compared. */
struct column {
    const struct check *check;
    char *key; /* owned */
    struct tally values;
    struct tally unknown;        /* by reason */
    const struct column *detail; /* that has its words, NULL: itself */
    bool is_detail;              /* told with another one only */
};

/* A rule's outcomes. */
struct outcomes {
    struct tally by_severity[CHECK_SEVERITIES]; /* by value; no PASS */
    char *expected[CHECK_SEVERITIES];           /* owned; of the first */
    uint32_t pass_count;
};

/* What another part has found. */
struct given {
    const struct check *check;
    enum check_severity severity;
    uint64_t *nodes;
    char *text;
};

enum { COLUMNS_MAX = 512, GIVEN_MAX = 512 };

struct checks_state {
    struct column *columns[COLUMNS_MAX];
    size_t column_count;
    uint32_t dropped;          /* facts for which there was no column */
    struct outcomes *outcomes; /* by index of the table */
    double **numbers; /* by index of the table, of CHECK_NEAR: by node */
    struct given given[GIVEN_MAX];
    size_t given_count;
    uint64_t *reported; /* bits: nodes that were added */
};

/* ---- judging: checks_judge.c, and checks_differ.c for comparisons ---------
 */

struct judge {
    struct checks *c;
    const struct roster *roster;
    size_t capacity; /* of c->findings */
    bool is_short;   /* of memory */
};

/* Within a sentence: bytes of a value, of which the finding has more, and
 * answers. */
enum { SHOWN_BYTES_MAX = 120, SHOWN_MAX = 4 };

/* For "%.*s". */
int judge_shown(const char *value);

/* Add a finding. `nodes` (NULL: the job) becomes its own, whatever happens. */
void judge_put(struct judge *j, const struct check *check,
               enum check_severity severity, uint64_t *nodes, const char *text,
               const char *value, const char *expected);
void judge_pass(struct judge *j, const struct check *check);

/* Add "title: node3 has X, node[4-5] have Y". */
void judge_tell(struct judge *j, const struct check *check,
                enum check_severity severity, struct tally *t,
                const char *expected);

/* The nodes of the first `count` answers, to be freed; NULL without memory. */
uint64_t *judge_nodes(struct judge *j, const struct tally *t, size_t count);
void judge_join(uint64_t *bits, const uint64_t *others, uint32_t node_count);
const char *judge_words(const struct tally_answer *answer);

/* A check of kind SAME or FAMILY; one of kind NEAR, into its outcomes. */
void judge_same(struct judge *j, const struct check *check);
void judge_near(struct judge *j, const struct check *check, struct outcomes *o,
                const double *numbers);

/* Nodes that were added. */
uint32_t checks_reported(const struct checks *c);

size_t checks_words(uint32_t node_count);
bool checks_bit(const uint64_t *bits, uint32_t index);
void checks_set_bit(uint64_t *bits, uint32_t index);

#endif
