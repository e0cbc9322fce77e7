/* SPDX-License-Identifier: Apache-2.0
 *
 * What system runs here, on what: "os" and "cpu".
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/mask.h"
#include "worker/survey_themes.h"

enum {
    PROCESSORS_MAX = 8192,
    MASK_WORDS = PROCESSORS_MAX / 64,
    /* One line of flags of a processor is within them. */
    CPUINFO_BYTES = 16384,
};

/* ---- the system ---------------------------------------------------------- */

/* os-release(5): NAME="value", of the shell. */
static void say_release(struct survey *s, const char *root)
{
    static const char name[] = "PRETTY_NAME=";
    char text[SURVEY_FILE_BYTES];
    int why = survey_file(text, sizeof(text), root, "/etc/os-release");
    char *line = strncmp(text, name, strlen(name)) == 0
                     ? text
                     : strstr(text, "\nPRETTY_NAME=");
    if (why != 0 || line == NULL) {
        survey_unknown(s, "os.release", "/etc/os-release: %s",
                       why != 0 ? strerror(why) : "no PRETTY_NAME in it");
        return;
    }
    line = strchr(line, '=') + 1;
    line[strcspn(line, "\n")] = 0;
    line += *line == '"';
    line[strcspn(line, "\"")] = 0;
    survey_say(s, "os.release", "%s", line);
}

/* systemd tells it where it is known; the others leave a mark. */
static void say_container(struct survey *s, const struct survey_request *r)
{
    char line[SURVEY_LINE_BYTES];
    char groups[SURVEY_FILE_BYTES];
    survey_file(groups, sizeof(groups), r->root, "/proc/self/cgroup");
    const char *kind = survey_line(line, r->root, "/run/systemd/container");
    if (survey_variable(r, "KUBERNETES_SERVICE_HOST") != NULL ||
        strstr(groups, "kubepods") != NULL) {
        kind = "kubernetes";
    } else if (kind[0] == 0 && survey_exists(r->root, "/run/.containerenv")) {
        kind = "podman";
    } else if (kind[0] == 0 && (survey_exists(r->root, "/.dockerenv") ||
                                strstr(groups, "docker") != NULL)) {
        kind = "docker";
    } else if (kind[0] == 0 && strstr(groups, "lxc") != NULL) {
        kind = "lxc";
    }
    survey_say(s, "os.container", "%s", kind[0] != 0 ? kind : "none");
}

/* On x86 every hypervisor sets a flag of the processor. Elsewhere the device
 * tree or the firmware's names tell it, or nothing does. */
static void say_virtual(struct survey *s, const char *root)
{
    char text[CPUINFO_BYTES];
    char line[SURVEY_LINE_BYTES];
    char vendor[SURVEY_LINE_BYTES];
    int why = survey_file(text, sizeof(text), root, "/proc/cpuinfo");
    survey_line(vendor, root, "/sys/class/dmi/id/sys_vendor");
    if (strstr(text, "\nflags") != NULL) {
        bool has_flag = strstr(text, " hypervisor") != NULL;
        survey_say(s, "os.virtual", "%s",
                   !has_flag        ? "none"
                   : vendor[0] != 0 ? vendor
                                    : "hypervisor");
        return;
    }
    survey_line(line, root, "/proc/device-tree/hypervisor/compatible");
    if (line[0] != 0 || strcmp(vendor, "QEMU") == 0) {
        survey_say(s, "os.virtual", "%s", line[0] != 0 ? line : vendor);
    } else if (why != 0) {
        survey_unknown(s, "os.virtual", "/proc/cpuinfo: %s", strerror(why));
    } else if (vendor[0] != 0) {
        survey_say(s, "os.virtual", "none");
    } else {
        survey_unknown(s, "os.virtual",
                       "neither processor nor firmware say it");
    }
}

/* "always [madvise] never": the one that holds. */
static void say_huge_pages(struct survey *s, const char *root)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    char line[SURVEY_LINE_BYTES];
    survey_line(line, root, "%s", path);
    char *begin = strchr(line, '[');
    if (begin == NULL) {
        survey_unknown(s, "os.thp", "%s: %s", path,
                       line[0] != 0 ? "it says none" : "it cannot be read");
        return;
    }
    begin[strcspn(begin, "]")] = 0;
    survey_say(s, "os.thp", "%s", begin + 1);
}

/* Each kind once: "performance", "performance powersave". */
static void say_governor(struct survey *s, const char *root)
{
    struct survey_list governors = {""};
    struct survey_names processors;
    survey_folder(&processors, root, "/sys/devices/system/cpu");
    for (size_t i = 0; i < processors.count; i++) {
        char line[SURVEY_LINE_BYTES];
        if (strncmp(processors.names[i], "cpu", 3) == 0) {
            survey_list_add(&governors, "%s",
                            survey_line(line, root,
                                        "/sys/devices/system/cpu/%s/cpufreq/"
                                        "scaling_governor",
                                        processors.names[i]));
        }
    }
    if (processors.count == 0) {
        survey_unknown(s, "os.governor", "no processor is in /sys");
    } else {
        survey_say(s, "os.governor", "%s", survey_list_text(&governors));
    }
    survey_names_release(&processors);
}

static void say_uptime(struct survey *s, const char *root)
{
    char line[SURVEY_LINE_BYTES];
    char *end;
    survey_line(line, root, "/proc/uptime");
    double seconds = strtod(line, &end);
    if (end == line || seconds < 0) {
        survey_unknown(s, "os.uptime", "/proc/uptime cannot be read");
    } else {
        survey_say(s, "os.uptime", "%.0f", seconds);
    }
}

void survey_os(struct survey *s, const struct survey_request *r)
{
    survey_say_file(s, "os.kernel", r->root, "/proc/sys/kernel/osrelease");
    say_release(s, r->root);
    survey_say_file(s, "os.boot_id", r->root,
                    "/proc/sys/kernel/random/boot_id");
    say_uptime(s, r->root);
    say_container(s, r);
    say_virtual(s, r->root);
    survey_say_file(
        s, "os.clock_source", r->root,
        "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    say_governor(s, r->root);
    say_huge_pages(s, r->root);
}

/* ---- processors ---------------------------------------------------------- */

static void say_count(struct survey *s, const char *key, const char *root,
                      const char *path)
{
    char text[SURVEY_FILE_BYTES];
    uint64_t mask[MASK_WORDS];
    int why = survey_file(text, sizeof(text), root, "%s", path);
    if (why == 0 && !mask_parse(mask, MASK_WORDS, text)) {
        why = EINVAL;
    }
    if (why != 0) {
        survey_unknown(s, key, "%s: %s", path, strerror(why));
    } else {
        survey_say_number(s, key, mask_count(mask, MASK_WORDS));
    }
}

/* Affinity and cpuset together, as the kernel has made one of them. */
static void say_allowed(struct survey *s, const char *root)
{
    static const char name[] = "\nCpus_allowed_list:";
    char text[SURVEY_FILE_BYTES];
    uint64_t mask[MASK_WORDS];
    int why = survey_file(text, sizeof(text), root, "/proc/self/status");
    char *list = strstr(text, name);
    if (list != NULL) {
        list += strlen(name);
        list += strspn(list, " \t");
        list[strcspn(list, "\n")] = 0;
    }
    if (list == NULL || !mask_parse(mask, MASK_WORDS, list)) {
        const char *reason = why != 0 ? strerror(why) : "no Cpus_allowed_list";
        survey_unknown(s, "cpu.allowed", "/proc/self/status: %s", reason);
        return;
    }
    survey_say_number(s, "cpu.allowed", mask_count(mask, MASK_WORDS));
    survey_say(s, "cpu.list", "%s", list);
}

void survey_cpu(struct survey *s, const struct survey_request *r)
{
    say_count(s, "cpu.online", r->root, "/sys/devices/system/cpu/online");
    say_count(s, "cpu.numa_nodes", r->root, "/sys/devices/system/node/online");
    say_allowed(s, r->root);
}
