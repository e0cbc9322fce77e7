/* SPDX-License-Identifier: Apache-2.0
 *
 * What check, doctor and scale have found, as docs/record.md has it: one item
 * for each line of a record. Whoever measures adds items, whoever draws (the
 * table, HTML, JUnit, Prometheus, the difference of two) reads them. Pure.
 *
 * Times are seconds, sizes bytes, rates bytes a second. Where a figure is not
 * known it is NAN, a count DOSSIER_UNKNOWN, a text NULL.
 *
 * Without memory `is_failed` is set and items are lost; so a chain of
 * additions needs one check at its end.
 */
#ifndef LAUNCHER_DOSSIER_H
#define LAUNCHER_DOSSIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DOSSIER_SCHEMA_VERSION = 1 };

#define DOSSIER_UNKNOWN INT64_MAX

enum dossier_type {
    DOSSIER_RUN,
    DOSSIER_NODE,
    DOSSIER_FINDING,
    DOSSIER_PAIR,
    DOSSIER_VERDICT,
    DOSSIER_BANDWIDTH,
    DOSSIER_SAMPLE,
    DOSSIER_EFFICIENCY,
    DOSSIER_FIT,
    DOSSIER_PREDICTION,
    DOSSIER_END,
    DOSSIER_TYPE_COUNT,
};

struct dossier_texts {
    const char **items;
    size_t count;
};

/* Keys and texts, or keys and figures. */
struct dossier_map {
    const char **keys;
    const char **values;
    size_t count;
};

struct dossier_figures {
    const char **keys;
    double *values;
    size_t count;
};

struct dossier_run {
    int64_t schema_version;
    const char *version;
    const char *verb;
    const char *job_id;
    int64_t started_unix_s;
    struct dossier_texts command; /* masked; see dossier_mask_command */
    bool has_command;
    int64_t node_count;
    const char *backend;
    bool is_simulated;
    bool may_be_simulated; /* nobody has told */
};

struct dossier_node {
    int64_t node_rank;
    const char *name;
    const char *host;
    const char *address;
    const char *interface;
    int64_t gpus;
    struct dossier_texts rejected;
    struct dossier_map facts;
    struct dossier_map unknown; /* key to reason */
};

struct dossier_finding {
    const char *id;
    const char *severity; /* pass, warn, fail, unknown */
    struct dossier_texts nodes;
    const char *text;
    const char *value;
    const char *expected;
    const char *remedy;
};

struct dossier_pair {
    int64_t round;
    const char *rail;
    const char *a;
    const char *b;
    double a_to_b;
    double b_to_a;
    double round_trip_s;
    double retransmit_ratio;
    const char *error;
};

struct dossier_verdict {
    const char *what; /* node, path */
    struct dossier_texts nodes;
    const char *state; /* ok, slow, lossy, blocked, unreachable, congested,
                          unknown */
    const char *direction;
    const char *rail;
    int64_t rounds;
    const char *text;
};

struct dossier_bandwidth {
    int64_t node_count;
    int64_t rank_count;
    const char *collective;
    const char *scope; /* world, node */
    int64_t bytes;
    int64_t iterations;
    double min_s;
    double median_s;
    double max_s;
    int64_t slowest_rank;
    double algbw;
    double busbw;
    double wire;
    double ceiling;
    const char *ceiling_kind;
    double ceiling_percent;
    int64_t wrong_elements;
    const char *verdict;
};

struct dossier_sample {
    int64_t node_count;
    int64_t rank_count;
    int64_t repeat; /* from 1 */
    double throughput;
    const char *unit;
    double step_s;
    int64_t slowest_rank;
    int64_t exit_code;
    const char *note;
};

struct dossier_efficiency {
    int64_t node_count;
    int64_t reference_node_count;
    const char *scaling; /* weak, strong */
    int64_t repeats;
    const char *unit;
    double throughput;
    double throughput_low;
    double throughput_high;
    double efficiency;
    double efficiency_low;
    double efficiency_high;
    double busbw;
    bool is_comparable;
    const char *note;
};

struct dossier_fit {
    const char *model;
    int64_t node_count;
    int64_t bytes_min;
    int64_t bytes_max;
    struct dossier_figures parameters;
    double max_relative_error;
    bool is_usable;
    const char *note;
};

struct dossier_prediction {
    int64_t node_count;
    double efficiency;
    double efficiency_low;
    double efficiency_high;
    double throughput;
    double extrapolation;
    struct dossier_figures from; /* node counts; keys are NULL */
    const char *refused;
};

struct dossier_end {
    int64_t exit_code;
    const char *reason;
    const char *message;
    double duration_s;
    int64_t passes;
    int64_t warnings;
    int64_t failures;
    int64_t unknowns;
};

struct dossier_list {
    char *items;
    size_t count;
    size_t capacity;
};

struct dossier {
    struct dossier_list lists[DOSSIER_TYPE_COUNT];
    struct dossier_piece *pieces; /* texts and lists that items point to */
    void *spare;                  /* what is given out once it has failed */
    bool is_failed;
};

void dossier_init(struct dossier *d);
void dossier_release(struct dossier *d);

/* A new item of the type's struct: nothing is known in it. Good until the
 * next one of its type is added. NULL only if not even the first allocation
 * could be made. */
void *dossier_add(struct dossier *d, enum dossier_type type);

size_t dossier_count(const struct dossier *d, enum dossier_type type);
const void *dossier_at(const struct dossier *d, enum dossier_type type,
                       size_t i);

/* The run and the end; NULL: the record was cut short. */
const struct dossier_run *dossier_run(const struct dossier *d);
const struct dossier_end *dossier_end(const struct dossier *d);

/* A copy that lives as long as `d`; NULL stays NULL, "" becomes NULL. It is one
 * line and harmless for a terminal: see gpul_text_clean_line. */
const char *dossier_text(struct dossier *d, const char *text);

/* Are two texts of items the same? Two that are not known are. */
bool dossier_is(const char *a, const char *b);

/* Append a copy to a list, a map, figures of an item. A list grows in place of
 * its old one, which stays allocated: these are short. */
void dossier_append(struct dossier *d, struct dossier_texts *list,
                    const char *text);
void dossier_put(struct dossier *d, struct dossier_map *map, const char *key,
                 const char *value);
void dossier_put_figure(struct dossier *d, struct dossier_figures *figures,
                        const char *key, double value);

/* The command, with what may be a secret in it as "***": the value of a word
 * NAME=value or --name=value, and the word behind --name, where the name
 * speaks of a token, secret, key, password or credential. */
void dossier_put_command(struct dossier *d, struct dossier_run *run,
                         char *const *words, size_t count);

/* Count the findings by severity into the end. */
void dossier_count_findings(const struct dossier *d, struct dossier_end *end);

/* A node by its name, NULL: none. */
const struct dossier_node *dossier_find_node(const struct dossier *d,
                                             const char *name);

#endif
