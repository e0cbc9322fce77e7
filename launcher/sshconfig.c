/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/sshconfig.h"

#include <string.h>

enum { OPTION_BYTES = 32 };

enum need {
    ALWAYS = 0,
    UNLESS_SET, /* by the user */
    IF_KNOWN,   /* to this ssh: it prints the key */
};

/* ssh takes the first value that it is given: what --ssh-command has goes
 * before these, and these before the user's files. Those that are needed
 * always every OpenSSH knows since 4.3. Not const, since argv is not. */
static struct {
    const enum need need;
    const char *const key; /* as `ssh -G` prints it */
    char option[OPTION_BYTES];
} table[] = {
    /* Nobody is there to answer. */
    {ALWAYS, NULL, "BatchMode=yes"},
    /* We would have to wait for the user's other sessions on that way. */
    {ALWAYS, NULL, "ControlMaster=no"},
    /* All sessions would want the same port, display or device. */
    {ALWAYS, NULL, "ClearAllForwardings=yes"},
    {ALWAYS, NULL, "ForwardX11=no"},
    {ALWAYS, NULL, "Tunnel=no"},
    /* The command has our standard input, once for each node. */
    {ALWAYS, NULL, "PermitLocalCommand=no"},
    /* QUIET hides why ssh ends; DEBUG has too much else. */
    {ALWAYS, NULL, "LogLevel=INFO"},
    {UNLESS_SET, "connecttimeout", "ConnectTimeout=20"},
    {IF_KNOWN, "remotecommand", "RemoteCommand=none"},
    {IF_KNOWN, "sessiontype", "SessionType=default"},
    {IF_KNOWN, "stdinnull", "StdinNull=no"},
    {IF_KNOWN, "forkafterauthentication", "ForkAfterAuthentication=no"},
};
enum { OPTION_COUNT = sizeof(table) / sizeof(table[0]) };
_Static_assert(2 * (int)OPTION_COUNT <= (int)SSHCONFIG_WORDS_MAX, "no room");

/* The value of the first line "key value"; NULL: there is none. It ends with
 * the line. */
static const char *find(const char *config, const char *key)
{
    size_t bytes = strlen(key);
    for (const char *at = config; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, key, bytes) == 0 && at[bytes] == ' ') {
            return at + bytes + 1;
        }
    }
    return NULL;
}

bool sshconfig_value(char *value, size_t n, const char *config, const char *key)
{
    const char *found = find(config, key);
    size_t bytes = found != NULL ? strcspn(found, "\n") : n;
    if (bytes >= n) {
        return false;
    }
    memcpy(value, found, bytes);
    value[bytes] = '\0';
    return true;
}

static bool is_needed(const char *config, enum need need, const char *key)
{
    const char *found = need != ALWAYS ? find(config, key) : NULL;
    switch (need) {
    case UNLESS_SET:
        return found == NULL || strncmp(found, "none\n", 5) == 0;
    case IF_KNOWN:
        return found != NULL;
    default:
        return true;
    }
}

uint32_t sshconfig_options(const char *config)
{
    uint32_t options = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        options |= (uint32_t)is_needed(config, table[i].need, table[i].key)
                   << i;
    }
    return options;
}

size_t sshconfig_append(char **words, uint32_t options)
{
    static char flag[] = "-o";
    size_t n = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if ((options >> i & 1) != 0) {
            words[n++] = flag;
            words[n++] = table[i].option;
        }
    }
    return n;
}
