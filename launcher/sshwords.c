/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/sshwords.h"

#include <string.h>

enum {
    CODE_DEADLINE = 40, /* of gpulaunch-worker: it never became a member */
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
    [SSH_FAULT_SLOW] = {"ssh did not get through in time",
                        "try it by hand; --join-timeout gives it longer"},
    [SSH_FAULT_NOT_TRIED] = {"it was not tried, since its turn had not come",
                             "try by hand why the others take so long; "
                             "--join-timeout gives them longer"},
};

static bool has(const char *words, const char *part)
{
    return strstr(words, part) != NULL;
}

/* In this order: some messages hold the words of others. */
static enum ssh_fault judge_ssh(const char *words)
{
    static const struct {
        const char *part;
        enum ssh_fault fault;
    } table[] = {
        {"Could not resolve hostname", SSH_FAULT_NAME},
        {"has changed", SSH_FAULT_NEW_HOST_KEY},
        {"HAS CHANGED", SSH_FAULT_NEW_HOST_KEY},
        {"Host key verification failed", SSH_FAULT_HOST_KEY},
        {"Permission denied", SSH_FAULT_LOGIN},
        {"Too many authentication failures", SSH_FAULT_LOGIN},
        {"Bad configuration option", SSH_FAULT_CONFIG},
        {"bad configuration options", SSH_FAULT_CONFIG},
        {"unknown option", SSH_FAULT_CONFIG},
        {"usage: ssh", SSH_FAULT_CONFIG},
        {"Bad owner or permissions", SSH_FAULT_CONFIG},
        {"Can't open user config file", SSH_FAULT_CONFIG},
        {"Connection refused", SSH_FAULT_REFUSED},
        {"No route to host", SSH_FAULT_ROUTE},
        {"Network is unreachable", SSH_FAULT_ROUTE},
        {"imed out", SSH_FAULT_SILENT},
        {"Timeout", SSH_FAULT_SILENT},
        {"kex_exchange_identification", SSH_FAULT_DROPPED},
        {"ssh_exchange_identification", SSH_FAULT_DROPPED},
        {"Exceeded MaxStartups", SSH_FAULT_DROPPED},
        {"Connection closed", SSH_FAULT_DROPPED},
        {"Connection reset", SSH_FAULT_DROPPED},
        {"closed by remote host", SSH_FAULT_DROPPED},
        {"Broken pipe", SSH_FAULT_DROPPED},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (has(words, table[i].part)) {
            return table[i].fault;
        }
    }
    return SSH_FAULT_OTHER;
}

enum ssh_fault ssh_judge(int code, const char *words, bool has_greeted)
{
    if (has_greeted) {
        return code == CODE_DEADLINE ? SSH_FAULT_COORDINATOR : SSH_FAULT_OTHER;
    }
    if (code == CODE_SSH) {
        return judge_ssh(words);
    }
    if (has(words, "shared libraries")) {
        return SSH_FAULT_LIBRARY;
    }
    if (code == CODE_NOT_FOUND) {
        return SSH_FAULT_MISSING;
    }
    if (code == CODE_NOT_EXECUTABLE || has(words, "Exec format error")) {
        return SSH_FAULT_NOT_EXECUTABLE;
    }
    return code > 128 ? SSH_FAULT_OTHER : SSH_FAULT_NO_GREETING;
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
        [SSH_FAULT_LIBRARY] = GPUL__NODE_GONE__WHY__NO_LIBRARY,
        [SSH_FAULT_NO_GREETING] = GPUL__NODE_GONE__WHY__WRONG_VERSION,
        [SSH_FAULT_VERSION] = GPUL__NODE_GONE__WHY__WRONG_VERSION,
        [SSH_FAULT_COORDINATOR] = GPUL__NODE_GONE__WHY__NO_COORDINATOR,
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
