/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorFlow's own reading of TF_CONFIG, written again from what its sources
 * do and without a look at the code under test: a judge of what we emit.
 *
 * Sources: TensorFlow's
 * python/distribute/cluster_resolver/tfconfig_cluster_resolver.py,
 * python/distribute/multi_worker_util.py, python/training/server_lib.py.
 */
#ifndef TESTS_TENSORFLOW_RULES_H
#define TESTS_TENSORFLOW_RULES_H

#include <stdbool.h>

#include <jansson.h>

enum { TF_TEXT_BYTES = 256 };

/* What a process makes of its TF_CONFIG. */
struct tf_view {
    json_t *cluster; /* NULL: no cluster, the process runs alone */
    const char *type;
    int index;
    bool is_chief;
    int worker_count; /* -1: this task may not ask */
    int id;           /* in the cluster; -1: this task may not ask */
    char leader[TF_TEXT_BYTES];
    const char *address; /* where its own server binds, or NULL */
    json_t *root;
};

/* `value` NULL: the variable is not set. Returns false where TensorFlow would
 * raise, with its reason in `error`. The caller releases the view. */
bool tf_view_init(struct tf_view *view, const char *value,
                  char error[TF_TEXT_BYTES]);
void tf_view_release(struct tf_view *view);

/* Tasks of one job; 0: no such job. */
int tf_view_tasks(const struct tf_view *view, const char *job);

/* Address of a task, or NULL. */
const char *tf_view_address(const struct tf_view *view, const char *job,
                            int index);

#endif
