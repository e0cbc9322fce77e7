/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_survey.h"

#include <stdlib.h>
#include <string.h>

#include "worker/survey_read.h"

extern char **environ;

/* NULL for none, or without memory: then it is not looked for, and says so. */
static char *path_of(const ProtobufCBinaryData *bytes)
{
    return bytes->len > 0 ? strndup((const char *)bytes->data, bytes->len)
                          : NULL;
}

/* Of the time there is, storage has its share where it is looked at. */
static uint32_t theme_ms(const Gpul__SurveyStart *start)
{
    uint32_t storage_ms = start->data_dir[0] != 0 ? SURVEY_STORAGE_MS : 0;
    uint32_t left_ms = start->deadline_ms > 2 * storage_ms
                           ? start->deadline_ms - storage_ms
                           : start->deadline_ms / 2;
    return left_ms < SURVEY_DEADLINE_MS ? left_ms : SURVEY_DEADLINE_MS;
}

int probe_survey_serve(struct probe_channel *channel,
                       const Gpul__SurveyStart *start, struct gpul_error *err)
{
    struct survey survey = {0};
    char *command = path_of(&start->command);
    char *directory = path_of(&start->working_directory);
    const struct survey_request request = {
        .root = "",
        .environment = (const char *const *)environ,
        .command = command,
        .working_directory = directory,
        .data_dir = start->data_dir[0] != 0 ? start->data_dir : NULL,
        .salt = start->job_id,
        .deadline_ms = theme_ms(start),
    };
    int rc = survey_read(&survey, &request, err);
    if (rc == 0) {
        Gpul__Frame frame = GPUL__FRAME__INIT;
        frame.body_case = GPUL__FRAME__BODY_SURVEY;
        frame.survey = &survey.message;
        rc = probe_channel_write(channel, &frame, err);
    }
    survey_release(&survey);
    free(command);
    free(directory);
    return rc;
}
