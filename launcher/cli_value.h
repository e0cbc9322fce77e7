/* SPDX-License-Identifier: Apache-2.0
 *
 * One option's text into its field of the plan, and the rules between
 * options. Parts of cli; pure.
 */
#ifndef LAUNCHER_CLI_VALUE_H
#define LAUNCHER_CLI_VALUE_H

#include "common/error.h"
#include "common/options.h"
#include "launcher/plan.h"

/* The option's setting is already in the plan. `caller` looks up the value of
 * "-x NAME". Errors: GPUL_EINVAL with the spelling of the option in the text,
 * GPUL_ENOMEM. */
int cli_value_set(struct plan *plan, enum option option, const char *value,
                  gpul_getenv_fn caller, void *caller_arg,
                  struct gpul_error *err);

/* The name of a secret's file, borrowed. GPUL_EINVAL: it is empty, or a secret
 * in the place of the name. */
int cli_set_secret_file(const char **out, const char *value,
                        const char *spelling, struct gpul_error *err);

/* The same as cli_value_set for the options of the self-test that are no words:
 * sizes, counts, a bandwidth, a file. */
int cli_selftest_set(struct plan *plan, enum option option, const char *value,
                     struct gpul_error *err);

/* Do they contradict each other, or --self-test off? */
int cli_selftest_check(const struct plan *plan, struct gpul_error *err);

/* Which nodes: find out who names them, and read them unless they are in a
 * file (plan->nodes_file). GPUL_EINVAL, GPUL_ELIMIT, GPUL_ENOMEM. */
int cli_nodes_find(struct plan *plan, gpul_getenv_fn getenv, void *getenv_arg,
                   struct gpul_error *err);
int cli_nodes_read(struct plan *plan, const char *file, size_t bytes,
                   struct gpul_error *err);

/* What follows for the numbers of nodes and of ranks on each. */
int cli_nodes_apply(struct plan *plan, struct gpul_error *err);

/* Local nodes get their names once their number is known. */
int cli_nodes_name(struct plan *plan, struct gpul_error *err);

/* The same for --address, --port, --job and --name. */
int cli_join_set(struct plan *plan, enum option option, const char *value,
                 struct gpul_error *err);

/* "host", "::1" or "[::1]", and maybe a port, which otherwise is `port` (0: it
 * must be said). GPUL_EINVAL with what is wrong. */
int cli_hostport(struct gpul_hostport *out, const char *text, uint16_t port,
                 struct gpul_error *err);

/* Is it an option of the verb join; of run and env? */
bool cli_join_has(enum option option);
bool cli_run_has(enum option option);

/* Is it one of check, or doctor; of any of these? */
bool cli_check_has(enum plan_verb verb, enum option option);
bool cli_verb_has(enum plan_verb verb, enum option option);

/* The same as cli_value_set for --data-dir and --record. */
int cli_check_set(struct plan *plan, enum option option, const char *value,
                  struct gpul_error *err);

/* What doctor is a short word for. */
void cli_doctor_apply(struct plan *plan);

/* What the options of join come to. GPUL_EINVAL. */
int cli_join_apply(struct plan *plan, struct gpul_error *err);

/* Contradictions that several verbs know. GPUL_EINVAL. */
int cli_rules_loudness(struct plan *plan, struct gpul_error *err);
int cli_rules_secrecy(struct plan *plan, struct gpul_error *err);

/* What no single option can know: contradictions, sums and products. May
 * fill in what follows from the rest (nodes from roles). */
int cli_rules_apply(struct plan *plan, struct gpul_error *err);

#endif
