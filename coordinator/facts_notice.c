/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said of the scouts' finds that end nothing: differences between
 * nodes, findings of devices, and one line for each set of libraries.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/facts.h"

/* What should be the same on all nodes, in the order in which it is told. */
static const struct difference {
    size_t tally; /* its offset in struct facts */
    const char *what;
    const char *remedy; /* behind it; "": it is plain */
} differences[] = {
    {offsetof(struct facts, counts), "GPU-202 the numbers of devices differ",
     ""},
    {offsetof(struct facts, models), "GPU-203 the models of the devices differ",
     "; all go at the pace of the slowest"},
    {offsetof(struct facts, memories),
     "GPU-204 the memory of the devices differs",
     "; the least is the limit for all"},
    {offsetof(struct facts, eccs), "GPU-205 ECC of the devices differs",
     "; set it alike with nvidia-smi -e and reset the GPUs"},
    {offsetof(struct facts, migs), "GPU-206 MIG of the devices differs",
     "; set it alike with nvidia-smi -mig"},
    {offsetof(struct facts, links),
     "GPU-240 the links between the devices of a node differ",
     "; look at nvidia-smi nvlink -s and at the fabric manager"},
    {offsetof(struct facts, builds), "VER-301 the builds of NCCL differ", ""},
    {offsetof(struct facts, kernels), "VER-304 the kernel drivers differ",
     "; install the same on every node"},
    {offsetof(struct facts, drivers),
     "the drivers are for different versions of CUDA", ""},
    {offsetof(struct facts, networks), "NET-140 the network cards differ",
     "; the node with the least sets the pace: look at its cables, ports and "
     "drivers"},
    {offsetof(struct facts, settings), "ENV-130 the settings of NCCL differ",
     ""},
};
enum { DIFFERENCES = sizeof(differences) / sizeof(differences[0]) };

/* Bus ids that the majority has and the others have not. */
static void append_missing_buses(struct text *out, struct tally *buses,
                                 const struct roster *r)
{
    struct text names;
    if (buses->count != 2) {
        return;
    }
    tally_sort(buses);
    const char *some = buses->answers[0].text;
    size_t told = 0;
    tally_names(&names, &buses->answers[0], r);
    for (const char *at = buses->answers[1].text; *at != 0;) {
        char bus[GPUL_TOKEN_BYTES_MAX + 2]; /* with the blank before it */
        size_t n = 1 + strcspn(at + 1, " ");
        snprintf(bus, sizeof(bus), "%.*s", (int)n, at);
        if (n > 1 && strstr(some, bus) == NULL) {
            text_append(out, "%s%s%s%s", told == 0 ? "; not on " : "",
                        told == 0 ? names.bytes : "",
                        told == 0 ? ": bus id" : ",", bus);
            told++;
        }
        at += n;
    }
}

static bool describe_difference(struct facts *f, struct text *out, size_t index,
                                const struct roster *r)
{
    struct text groups;
    const struct difference *d = &differences[index];
    struct tally *tally = (struct tally *)(void *)((char *)f + d->tally);
    if (tally->count < 2) {
        return false;
    }
    tally_sort(tally);
    tally_describe(&groups, tally, r);
    text_format(out, "%s: %s%s", d->what, groups.bytes, d->remedy);
    if (tally == &f->counts) {
        append_missing_buses(out, &f->buses, r);
    }
    return true;
}

static void describe_refused(const struct facts *f, struct text *out,
                             size_t index, const struct roster *r)
{
    struct text names;
    const struct tally_answer *answer = &f->refused.answers[index];
    tally_names(&names, answer, r);
    text_format(out,
                "ENV-131 CUDA_VISIBLE_DEVICES of %s: \"%s\" names no device "
                "there, or one that it has named before; what stands behind "
                "it is not used either",
                names.bytes, answer->text != NULL ? answer->text : "an entry");
}

static void describe_finding(const struct facts *f, struct text *out,
                             size_t index, const struct roster *r)
{
    struct text names;
    const struct tally_answer *answer = &f->findings.answers[index];
    const char *text = answer->text != NULL ? answer->text : "further findings";
    tally_names(&names, answer, r);
    if (answer->times == 1) {
        const char *device = f->finding_devices[index];
        text_format(out, "%s%s of node %s: %s",
                    device[0] != 0 ? "device " : "a device", device,
                    names.bytes, text);
    } else {
        text_format(out, "%u devices of %s: %s", answer->times, names.bytes,
                    text);
    }
}

bool facts_next_notice(struct facts *f, struct text *out, size_t *at,
                       const struct roster *r)
{
    for (; *at < DIFFERENCES; ++*at) {
        if (describe_difference(f, out, *at, r)) {
            ++*at;
            return true;
        }
    }
    size_t index = (*at)++ - DIFFERENCES;
    if (index < f->refused.count) {
        describe_refused(f, out, index, r);
        return true;
    }
    index -= f->refused.count;
    if (index < f->findings.count) {
        describe_finding(f, out, index, r);
        return true;
    }
    return false;
}

bool facts_next_line(const struct facts *f, struct text *out, bool *is_setting,
                     size_t *at, const struct roster *r)
{
    struct text names;
    while (*at < f->libraries.count + f->settings.count) {
        *is_setting = *at >= f->libraries.count;
        const struct tally_answer *answer =
            *is_setting ? &f->settings.answers[*at - f->libraries.count]
                        : &f->libraries.answers[*at];
        ++*at;
        const char *text = answer->text != NULL ? answer->text : "others";
        if (!*is_setting || strcmp(text, "none") != 0) {
            tally_names(&names, answer, r);
            text_format(out, "%s: %s", names.bytes, text);
            return true;
        }
    }
    return false;
}
