/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/tensorflow_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool raise(char error[TF_TEXT_BYTES], const char *reason)
{
    snprintf(error, TF_TEXT_BYTES, "%s", reason);
    return false;
}

static bool is_job(const char *name)
{
    return strcmp(name, "chief") == 0 || strcmp(name, "worker") == 0 ||
           strcmp(name, "ps") == 0 || strcmp(name, "evaluator") == 0;
}

int tf_view_tasks(const struct tf_view *view, const char *job)
{
    return (int)json_array_size(json_object_get(view->cluster, job));
}

const char *tf_view_address(const struct tf_view *view, const char *job,
                            int index)
{
    json_t *tasks = json_object_get(view->cluster, job);
    return json_string_value(json_array_get(tasks, (size_t)index));
}

/* ClusterSpec: each job a list of strings (we never emit the sparse form). */
static bool check_jobs(const struct tf_view *view, char error[TF_TEXT_BYTES])
{
    const char *job;
    json_t *tasks;
    json_object_foreach(view->cluster, job, tasks)
    {
        if (!is_job(job)) {
            return raise(error, "ValueError: unknown job");
        }
        if (!json_is_array(tasks)) {
            return raise(error, "TypeError: a job is not a list");
        }
        for (size_t i = 0; i < json_array_size(tasks); i++) {
            if (!json_is_string(json_array_get(tasks, i))) {
                return raise(error, "TypeError: an address is not a string");
            }
        }
    }
    return true;
}

/* _validate_cluster_spec */
static bool check_task(const struct tf_view *view, char error[TF_TEXT_BYTES])
{
    if (tf_view_tasks(view, "chief") > 1) {
        return raise(error, "ValueError: more than one chief");
    }
    if (tf_view_tasks(view, "evaluator") > 1) {
        return raise(error, "ValueError: more than one evaluator");
    }
    bool is_evaluator = strcmp(view->type, "evaluator") == 0;
    if (json_object_get(view->cluster, view->type) == NULL) {
        return is_evaluator ? true
                            : raise(error, "ValueError: task not in cluster");
    }
    if (view->index < 0 || view->index >= tf_view_tasks(view, view->type)) {
        return raise(error, "ValueError: index out of range");
    }
    return true;
}

static bool read_task(struct tf_view *view, char error[TF_TEXT_BYTES])
{
    json_t *task = json_object_get(view->root, "task");
    json_t *index = json_object_get(task, "index");
    view->type = json_string_value(json_object_get(task, "type"));
    if (view->type == NULL || index == NULL) {
        return raise(error, "ValueError: no task");
    }
    view->index = json_is_string(index) ? atoi(json_string_value(index))
                                        : (int)json_integer_value(index);
    return true;
}

/* is_chief, collective_leader, worker_count, id_in_cluster */
static void derive(struct tf_view *view)
{
    int chiefs = tf_view_tasks(view, "chief");
    int workers = tf_view_tasks(view, "worker");
    view->address = tf_view_address(view, view->type, view->index);
    if (strcmp(view->type, "evaluator") == 0) {
        int evaluators = tf_view_tasks(view, "evaluator");
        view->is_chief = true;
        view->worker_count = evaluators > 0 ? evaluators : -1;
        view->id = view->index;
        return;
    }
    snprintf(view->leader, sizeof(view->leader), "/job:%s/replica:0/task:0",
             chiefs > 0 ? "chief" : "worker");
    if (strcmp(view->type, "ps") == 0) {
        return;
    }
    bool is_worker = strcmp(view->type, "worker") == 0;
    view->is_chief = !is_worker || (chiefs == 0 && view->index == 0);
    view->worker_count = chiefs + workers;
    view->id = is_worker ? view->index + chiefs : 0;
}

static bool read_view(struct tf_view *view, const char *value,
                      char error[TF_TEXT_BYTES])
{
    /* Ours is strict: a name twice or a trailing byte is a fault too. */
    view->root = json_loads(value, JSON_REJECT_DUPLICATES, NULL);
    if (view->root == NULL) {
        return raise(error, "JSONDecodeError");
    }
    view->cluster = json_object_get(view->root, "cluster");
    if (view->cluster == NULL || json_object_size(view->cluster) == 0) {
        view->cluster = NULL;
        return true;
    }
    if (!check_jobs(view, error) || !read_task(view, error) ||
        !check_task(view, error)) {
        return false;
    }
    derive(view);
    return true;
}

bool tf_view_init(struct tf_view *view, const char *value,
                  char error[TF_TEXT_BYTES])
{
    *view = (struct tf_view){.worker_count = -1, .id = -1};
    error[0] = 0;
    if (value == NULL) {
        return true;
    }
    bool is_fine = read_view(view, value, error);
    if (!is_fine) {
        tf_view_release(view);
    }
    return is_fine;
}

void tf_view_release(struct tf_view *view)
{
    json_decref(view->root);
    *view = (struct tf_view){0};
}
