/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/sshwords.h"

#include <stdio.h>
#include <string.h>

#include "proto/text.h"

enum {
    CODE_DEADLINE = 40,    /* of gpulaunch-worker: it never became a member */
    CODE_NOT_COPIED = 125, /* of the command there; of other programs, too */
    CODE_NOT_EXECUTABLE = 126,
    CODE_NOT_FOUND = 127,
    CODE_SSH = 255,
};

static const struct {
    const char *what;
    const char *advice;
} texts[SSH_FAULT_COUNT] = {
    [SSH_FAULT_OTHER] = {"its ssh session ended", ""},
    [SSH_FAULT_NAME] = {"its name is not known",
                        "check the spelling; else add it to DNS, to "
                        "/etc/hosts, or as HostName to ~/.ssh/config"},
    [SSH_FAULT_REFUSED] = {"nothing listens on its ssh port",
                           "start sshd there, or give its Port in "
                           "~/.ssh/config"},
    [SSH_FAULT_SILENT] = {"its ssh port does not answer",
                          "is it up, and is the port open in the firewalls "
                          "on the way?"},
    [SSH_FAULT_ROUTE] = {"there is no route to it",
                         "check its address and this machine's network"},
    [SSH_FAULT_DROPPED] = {"its sshd dropped the connection",
                           "look at its log; MaxStartups in sshd_config "
                           "limits how many log in at once"},
    [SSH_FAULT_LOGIN] = {"ssh was not let in",
                         "log-in must need no password: ssh-copy-id, or a "
                         "key in ssh-agent"},
    [SSH_FAULT_HOST_KEY] = {"its host key is not known",
                            "connect once by hand, or put its key into "
                            "~/.ssh/known_hosts"},
    [SSH_FAULT_NEW_HOST_KEY] = {"its host key is not the one that was known",
                                "another machine answers, or it was "
                                "installed anew: ask who runs it before you "
                                "remove the old key with ssh-keygen -R"},
    [SSH_FAULT_CONFIG] = {"ssh does not start",
                          "mend ~/.ssh/config or --ssh-command"},
    [SSH_FAULT_MISSING] = {"gpulaunch-worker is not there",
                           "install gpulaunch on it, or give --worker-path "
                           "or --copy-worker"},
    [SSH_FAULT_NOT_EXECUTABLE] = {"gpulaunch-worker cannot be executed there",
                                  "install the release for that machine, "
                                  "where files may be executed"},
    [SSH_FAULT_NOT_COPIED] = {"--copy-worker failed there",
                              "is there room in its TMPDIR? else install "
                              "gpulaunch on it and leave out --copy-worker"},
    [SSH_FAULT_LIBRARY] = {"gpulaunch-worker lacks a library there",
                           "install it: libuv1, libprotobuf-c1 and libssl3 "
                           "are needed"},
    [SSH_FAULT_NO_GREETING] = {"what was started there is no worker of this "
                               "release",
                               "install the same release on both, or give "
                               "--copy-worker"},
    [SSH_FAULT_VERSION] = {"its gpulaunch-worker is of another release",
                           "install the same release on both, or give "
                           "--copy-worker"},
    [SSH_FAULT_COORDINATOR] = {"from there the coordinator cannot be reached",
                               "open the way to this machine in firewalls, or "
                               "give another of its addresses with --address"},
    [SSH_FAULT_NOT_STARTED] = {"this machine cannot run ssh for it",
                               "see ulimit -a, and the limits of its cgroup"},
    [SSH_FAULT_SLOW] = {"ssh did not get through in time",
                        "try it by hand; --join-timeout gives it longer"},
    [SSH_FAULT_NOT_TRIED] = {"it was not tried, since its turn had not come",
                             "try by hand why the others take so long; "
                             "--join-timeout gives them longer"},
};

/* How ssh writes of its own fate, a line each; `#` stands for anything without
 * a space, `*` for anything. What the host's banner says, or a program there,
 * comes the same way and may hold any word, but not at these places. The first
 * form that fits counts. Those of `channel` are of the way to a jump host. */
static const struct {
    const char *form;
    enum ssh_fault fault;
} forms[] = {
    {"#: Could not resolve hostname ", SSH_FAULT_NAME},
    {"channel #: open failed: connect failed: Name or service not known",
     SSH_FAULT_NAME},
    {"channel #: open failed: connect failed: *name resolution",
     SSH_FAULT_NAME},
    {"@*REMOTE HOST IDENTIFICATION HAS CHANGED!", SSH_FAULT_NEW_HOST_KEY},
    {"Host key for # has changed and you have requested strict checking",
     SSH_FAULT_NEW_HOST_KEY},
    {"No # host key is known for # and you have requested strict checking",
     SSH_FAULT_HOST_KEY},
    {"Host key verification failed.", SSH_FAULT_HOST_KEY},
    {"#@#: Permission denied (#).", SSH_FAULT_LOGIN},
    {"Permission denied (#).", SSH_FAULT_LOGIN}, /* before 7.6 */
    {"Received disconnect from *Too many authentication failures",
     SSH_FAULT_LOGIN},
    {"*: line #: Bad configuration option: ", SSH_FAULT_CONFIG},
    {"*: terminating, # bad configuration options", SSH_FAULT_CONFIG},
    {"command-line line #: ", SSH_FAULT_CONFIG},
    {"/*config line #: ", SSH_FAULT_CONFIG},
    {"unknown option -- ", SSH_FAULT_CONFIG},
    {"usage: ssh ", SSH_FAULT_CONFIG},
    {"Bad owner or permissions on ", SSH_FAULT_CONFIG},
    {"Can't open user config file ", SSH_FAULT_CONFIG},
    {"Cannot execute command-line and remote command", SSH_FAULT_CONFIG},
    {"ssh: connect to host # port #: Resource temporarily unavailable",
     SSH_FAULT_NOT_STARTED},
    {"ssh: connect to host # port #: Cannot allocate memory",
     SSH_FAULT_NOT_STARTED},
    {"ssh: connect to host # port #: Too many open files",
     SSH_FAULT_NOT_STARTED},
    {"x#: out of memory", SSH_FAULT_NOT_STARTED},
    {"fork failed: ", SSH_FAULT_NOT_STARTED},
    {"Could not create # to communicate with ", SSH_FAULT_NOT_STARTED},
    {"ssh: connect to host # port #: Connection refused", SSH_FAULT_REFUSED},
    {"ssh: connect to host # port #: *timed out", SSH_FAULT_SILENT},
    {"ssh: connect to host # port #: Connection reset", SSH_FAULT_DROPPED},
    {"ssh: connect to host # port #: ", SSH_FAULT_ROUTE},
    {"channel #: open failed: connect failed: Connection refused",
     SSH_FAULT_REFUSED},
    {"channel #: open failed: connect failed: *timed out", SSH_FAULT_SILENT},
    {"channel #: open failed: connect failed: ", SSH_FAULT_ROUTE},
    {"Connection timed out during banner exchange", SSH_FAULT_SILENT},
    {"Connection to # timed out", SSH_FAULT_SILENT},
    {"Connection to # port # timed out", SSH_FAULT_SILENT},
    {"ssh_dispatch_run_fatal: Connection to *timed out", SSH_FAULT_SILENT},
    {"Timeout, server # not responding.", SSH_FAULT_SILENT},
    {"ssh_dispatch_run_fatal: Connection to ", SSH_FAULT_DROPPED},
    {"kex_exchange_identification: ", SSH_FAULT_DROPPED},
    {"ssh_exchange_identification: ", SSH_FAULT_DROPPED},
    {"banner exchange: Connection to ", SSH_FAULT_DROPPED},
    {"Connection closed by ", SSH_FAULT_DROPPED},
    {"Connection reset by ", SSH_FAULT_DROPPED},
    {"Connection to # closed by remote host.", SSH_FAULT_DROPPED},
    {"client_loop: send disconnect: ", SSH_FAULT_DROPPED},
    {"packet_write_wait: Connection to ", SSH_FAULT_DROPPED},
};

/* Does the line, which ends with a newline or the text, begin like that? */
static bool fits(const char *line, const char *form)
{
    for (; *form != '\0'; form++, line++) {
        if (*form == '#' || *form == '*') {
            while (!fits(line, form + 1)) {
                bool is_end = *line == '\0' || *line == '\n' ||
                              (*form == '#' && *line == ' ');
                if (is_end) {
                    return false;
                }
                line++;
            }
            return true;
        }
        if (*line != *form) {
            return false;
        }
    }
    return true;
}

static enum ssh_fault judge_line(const char *line)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (fits(line, forms[i].form)) {
            return forms[i].fault;
        }
    }
    return SSH_FAULT_OTHER;
}

/* That a connection has closed tells less than why, and that a host key was
 * not taken less than that it has changed. */
static int weight(enum ssh_fault fault)
{
    return fault == SSH_FAULT_OTHER      ? 0
           : fault == SSH_FAULT_DROPPED  ? 1
           : fault == SSH_FAULT_HOST_KEY ? 2
                                         : 3;
}

/* NULL behind the last. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end != NULL ? end + 1 : NULL;
}

/* Of those that say as much the last: what ends ssh it writes at the end. */
static enum ssh_fault judge_ssh(const char *lines)
{
    enum ssh_fault found = SSH_FAULT_OTHER;
    for (const char *at = lines; at != NULL; at = next_line(at)) {
        enum ssh_fault fault = judge_line(at);
        found = weight(fault) >= weight(found) ? fault : found;
    }
    return found;
}

static const char *last_line(const char *lines)
{
    const char *end = strrchr(lines, '\n');
    return end != NULL ? end + 1 : lines;
}

/* The loader's words, glibc's and musl's; it ends with 127 as well. */
static bool lacks_library(const char *line)
{
    return fits(line, "*: error while loading shared libraries: ") ||
           fits(line, "Error loading shared library ") ||
           fits(line, "Error relocating ");
}

enum ssh_fault ssh_judge(int code, const char *lines, bool has_greeted)
{
    if (has_greeted) {
        return code == CODE_DEADLINE ? SSH_FAULT_COORDINATOR : SSH_FAULT_OTHER;
    }
    switch (code) {
    case CODE_SSH:
        return judge_ssh(lines);
    case CODE_NOT_COPIED:
        return strncmp(last_line(lines), SSH_NOT_COPIED,
                       sizeof(SSH_NOT_COPIED) - 1) == 0
                   ? SSH_FAULT_NOT_COPIED
                   : SSH_FAULT_NO_GREETING;
    case CODE_NOT_FOUND:
        return lacks_library(last_line(lines)) ? SSH_FAULT_LIBRARY
                                               : SSH_FAULT_MISSING;
    case CODE_NOT_EXECUTABLE:
        return SSH_FAULT_NOT_EXECUTABLE;
    default:
        return code > 128 ? SSH_FAULT_OTHER : SSH_FAULT_NO_GREETING;
    }
}

/* Those from `lines` on, or of these only ssh's own; false: they are too
 * long, and the last of them is cut. */
static bool join(char *words, size_t bytes, const char *lines, bool is_own)
{
    size_t used = 0;
    words[0] = '\0';
    for (const char *at = lines; at != NULL; at = next_line(at)) {
        size_t n = strcspn(at, "\n");
        if (n == 0 || (is_own && judge_line(at) == SSH_FAULT_OTHER)) {
            continue;
        }
        used += (size_t)snprintf(words + used, bytes - used, "%s%.*s",
                                 used > 0 ? " " : "", (int)n, at);
        if (used >= bytes) {
            return false;
        }
    }
    return true;
}

void ssh_choose_words(char *words, size_t bytes, int code, const char *lines,
                      bool has_greeted)
{
    bool is_own =
        !has_greeted && code == CODE_SSH && judge_ssh(lines) != SSH_FAULT_OTHER;
    bool is_last =
        !has_greeted && (code == CODE_NOT_FOUND || code == CODE_NOT_EXECUTABLE);
    const char *from = is_last ? last_line(lines) : lines;
    while (!join(words, bytes, from, is_own) && next_line(from) != NULL) {
        from = next_line(from);
    }
    gpul_text_clean_line(words, bytes - 1);
}

Gpul__NodeGone__Why ssh_why(enum ssh_fault fault)
{
    static const Gpul__NodeGone__Why whys[SSH_FAULT_COUNT] = {
        [SSH_FAULT_OTHER] = GPUL__NODE_GONE__WHY__ENDED,
        [SSH_FAULT_NAME] = GPUL__NODE_GONE__WHY__NO_NAME,
        [SSH_FAULT_REFUSED] = GPUL__NODE_GONE__WHY__NO_CONNECTION,
        [SSH_FAULT_SILENT] = GPUL__NODE_GONE__WHY__NO_CONNECTION,
        [SSH_FAULT_ROUTE] = GPUL__NODE_GONE__WHY__NO_CONNECTION,
        [SSH_FAULT_DROPPED] = GPUL__NODE_GONE__WHY__NO_CONNECTION,
        [SSH_FAULT_LOGIN] = GPUL__NODE_GONE__WHY__NO_LOGIN,
        [SSH_FAULT_HOST_KEY] = GPUL__NODE_GONE__WHY__NO_HOST_KEY,
        [SSH_FAULT_NEW_HOST_KEY] = GPUL__NODE_GONE__WHY__NO_HOST_KEY,
        [SSH_FAULT_CONFIG] = GPUL__NODE_GONE__WHY__NO_LOGIN,
        [SSH_FAULT_MISSING] = GPUL__NODE_GONE__WHY__NO_WORKER,
        [SSH_FAULT_NOT_EXECUTABLE] = GPUL__NODE_GONE__WHY__NOT_EXECUTABLE,
        [SSH_FAULT_NOT_COPIED] = GPUL__NODE_GONE__WHY__NO_WORKER,
        [SSH_FAULT_LIBRARY] = GPUL__NODE_GONE__WHY__NO_LIBRARY,
        [SSH_FAULT_NO_GREETING] = GPUL__NODE_GONE__WHY__WRONG_VERSION,
        [SSH_FAULT_VERSION] = GPUL__NODE_GONE__WHY__WRONG_VERSION,
        [SSH_FAULT_COORDINATOR] = GPUL__NODE_GONE__WHY__NO_COORDINATOR,
        [SSH_FAULT_NOT_STARTED] = GPUL__NODE_GONE__WHY__NOT_STARTED,
        [SSH_FAULT_SLOW] = GPUL__NODE_GONE__WHY__NO_CONNECTION,
        [SSH_FAULT_NOT_TRIED] = GPUL__NODE_GONE__WHY__NO_CONNECTION,
    };
    return whys[fault];
}

bool ssh_is_transient(enum ssh_fault fault)
{
    return fault == SSH_FAULT_DROPPED || fault == SSH_FAULT_SILENT;
}

void ssh_explain(struct gpul_buf *out, enum ssh_fault fault, const char *node,
                 const char *words)
{
    gpul_buf_append_text(out, texts[fault].what);
    if (words[0] != '\0') {
        gpul_buf_appendf(out, " (%s)", words);
    }
    if (fault == SSH_FAULT_LOGIN || fault == SSH_FAULT_SLOW) {
        gpul_buf_appendf(out, "; see ssh -o BatchMode=yes %s true", node);
    }
    if (texts[fault].advice[0] != '\0') {
        gpul_buf_appendf(out, "; %s", texts[fault].advice);
    }
}
