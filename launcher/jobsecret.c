/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/jobsecret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the environment ----------------------------------------------------- */

char *jobsecret_take(char text[JOBSECRET_TEXT_BYTES])
{
    static const char start[] = JOBSECRET_VARIABLE "=";
    text[0] = '\0';
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (strncmp(*at, start, sizeof(start) - 1) != 0) {
            continue;
        }
        char *value = *at + sizeof(start) - 1;
        if (text[0] == '\0') {
            snprintf(text, JOBSECRET_TEXT_BYTES, "%s", value);
        }
        gpul_wipe(value, strlen(value));
    }
    unsetenv(JOBSECRET_VARIABLE);
    return text[0] != '\0' ? text : NULL;
}

/* ---- the choice ---------------------------------------------------------- */

static void say(const struct jobsecret_request *request, const char *line)
{
    if (!request->is_quiet) {
        dprintf(STDERR_FILENO, "gpulaunch: %s\n", line);
    }
}

static int go_without(const struct jobsecret_request *request,
                      struct gpul_error *err)
{
    if (!request->is_loopback) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--insecure: other machines could reach the "
                         "coordinator, and run commands as you; leave it out");
    }
    say(request, "warning: --insecure: the control channel is neither "
                 "authenticated nor encrypted; other users of this machine "
                 "could run commands as you");
    return 0;
}

static int read_variable(struct gpul_secret *out,
                         const struct jobsecret_request *request,
                         struct gpul_error *err)
{
    int rc = gpul_secret_parse(out, request->text, strlen(request->text), err);
    if (rc != 0) {
        return gpul_wrap(err, rc, JOBSECRET_VARIABLE);
    }
    say(request, "warning: " JOBSECRET_VARIABLE ": what stands in an "
                 "environment is copied into many places; put the secret into "
                 "a file and name it by --secret-file");
    return 0;
}

static int choose(struct gpul_secret *out,
                  const struct jobsecret_request *request,
                  struct gpul_error *err)
{
    if (request->is_insecure) {
        return go_without(request, err);
    }
    if (request->file != NULL) {
        int rc = gpul_secret_read_file(out, request->file, err);
        return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", request->file_spelling);
    }
    return request->text != NULL ? read_variable(out, request, err)
                                 : gpul_secret_draw(out, err);
}

int jobsecret_get(struct gpul_secret *out, bool *is_sealed,
                  const struct jobsecret_request *request,
                  struct gpul_error *err)
{
    gpul_wipe(out, sizeof(*out));
    int rc = choose(out, request, err);
    *is_sealed = rc == 0 && !request->is_insecure;
    if (request->text != NULL) {
        gpul_wipe(request->text, strlen(request->text));
    }
    return rc;
}

struct jobsecret_request jobsecret_asked(const struct plan *plan)
{
    return (struct jobsecret_request){
        .file = plan->secret_file,
        .file_spelling = plan->settings[OPTION_SECRET_FILE].spelling,
        .text = plan->secret_text,
        .is_insecure = plan->is_insecure,
        .is_loopback = true,
        .is_quiet = plan->is_quiet,
    };
}
