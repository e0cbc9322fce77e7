/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVIDIA's driver tells without being asked through a library: "nvidia".
 * All else of the GPUs is the scout's (worker/probe_scout.h).
 */
#include <stdio.h>
#include <string.h>

#include "worker/survey_themes.h"

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed Jan ..." or
 * "... Open Kernel Module for x86_64  570.86.15  Release Build ...": the first
 * word that is a number with a point. */
static void say_driver(struct survey *s, const char *root)
{
    char line[SURVEY_LINE_BYTES];
    char *save = NULL;
    survey_line(line, root, "/proc/driver/nvidia/version");
    if (line[0] == 0) {
        survey_say(s, "nvidia.driver", "none");
        return;
    }
    bool is_open = strstr(line, "Open Kernel Module") != NULL;
    survey_say(s, "nvidia.module", is_open ? "open" : "proprietary");
    for (char *word = strtok_r(line, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        size_t digits = strspn(word, "0123456789");
        if (digits > 0 && word[digits] == '.' &&
            strspn(word, "0123456789.") == strlen(word)) {
            survey_say(s, "nvidia.driver", "%s", word);
            return;
        }
    }
    survey_unknown(s, "nvidia.driver",
                   "/proc/driver/nvidia/version: no number");
}

/* "GPU UUID: \t GPU-..." */
static void add_field(struct survey_list *list, const char *text,
                      const char *name)
{
    const char *line = strstr(text, name);
    if (line != NULL) {
        line += strlen(name);
        line += strspn(line, ": \t");
        survey_list_add(list, "%.*s", (int)strcspn(line, "\n"), line);
    }
}

void survey_nvidia(struct survey *s, const struct survey_request *r)
{
    static const char folder[] = "/proc/driver/nvidia/gpus";
    struct survey_list buses = {""}, uuids = {""}, bios = {""};
    struct survey_names gpus;
    say_driver(s, r->root);
    survey_folder(&gpus, r->root, "%s", folder);
    for (size_t i = 0; i < gpus.count; i++) {
        char text[SURVEY_FILE_BYTES];
        survey_list_add(&buses, "%s", gpus.names[i]);
        survey_file(text, sizeof(text), r->root, "%s/%s/information", folder,
                    gpus.names[i]);
        add_field(&uuids, text, "GPU UUID");
        add_field(&bios, text, "Video BIOS");
    }
    survey_say_number(s, "nvidia.count", gpus.count);
    survey_say(s, "nvidia.bus_ids", "%s", survey_list_text(&buses));
    survey_say(s, "nvidia.uuids", "%s", survey_list_text(&uuids));
    survey_say(s, "nvidia.vbios", "%s", survey_list_text(&bios));
    survey_names_release(&gpus);
}
