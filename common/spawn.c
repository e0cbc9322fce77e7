/* SPDX-License-Identifier: Apache-2.0
 *
 * clone(CLONE_VM | CLONE_VFORK): the child borrows our memory, and we sleep,
 * until it has executed or failed; so the cost does not grow with our size
 * and the reason of a failure needs no pipe. Unlike vfork() it has a stack
 * of its own, and sanitizers leave it alone.
 *
 * Happy path: signals blocked, clone, (child) group, death signal, cgroup,
 * processors, memory, limits, descriptors, directory, dispositions, mask,
 * execve, (parent) signals back.
 * Failures: clone itself (no child), or a step of the child, which leaves
 * the step and its errno in the shared plan and ends; it is reaped here.
 */
#include "common/spawn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/startup.h"

/* Nothing in the child calls deep, and no signal handler can run there. */
enum { CHILD_STACK_BYTES = 16384, FDS_MAX = 16, SHEBANG_BYTES = 256 };

/* execve(2): of one string, and of all whatever the stack may grow to. */
enum { STRING_BYTES_MAX = 128 << 10, STRINGS_BYTES_MAX = 6 << 20 };

/* The child shares the memory of a thread that knows nothing of it: no
 * instrumentation may run there. */
#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

/* The thread sanitizer takes clone() for a fork and would reset, in the
 * child, what is the parent's; the C library has a second name for it. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif
#endif

enum step {
    STEP_NONE,
    STEP_PARENT,
    STEP_CGROUP,
    STEP_CPUS,
    STEP_NODES,
    STEP_FDS,
    STEP_DIRECTORY,
    STEP_EXEC,
};

/* set_mempolicy(2); <numaif.h> belongs to libnuma. */
enum { POLICY_BIND = 2, WORD_BITS = 64 };

struct plan {
    const struct gpul_spawn *spec;
    pid_t parent;
    sigset_t no_signals;
    unsigned int fd_limit;
    struct rlimit64 core_limit; /* what this program came with */
    bool has_core_limit;
    int from[FDS_MAX];
    enum step failed_step;
    int failed_errno;
};

IN_CHILD static void close_from(unsigned int first, unsigned int limit)
{
    if (close_range(first, ~0u, 0) != 0) { /* Linux before 5.9 */
        for (unsigned int fd = first; fd < limit; fd++) {
            close((int)fd);
        }
    }
}

/* Sources below fd_count are first moved out of the way of the targets;
 * then no dup2 can overwrite a source that is still needed, and none is the
 * no-op that would leave close-on-exec set. */
IN_CHILD static bool arrange_fds(struct plan *p)
{
    int count = (int)p->spec->fd_count;
    for (int i = 0; i < count; i++) {
        p->from[i] = p->spec->fds[i].from;
        if (p->from[i] < count) {
            p->from[i] = fcntl(p->from[i], F_DUPFD_CLOEXEC, count);
        }
        if (p->from[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i < count; i++) {
        if (dup2(p->from[i], i) < 0) {
            return false;
        }
    }
    close_from((unsigned int)count, p->fd_limit);
    return true;
}

/* Not by sigaction(): the thread sanitizer notes dispositions in memory, and
 * that is our parent's. All zero is SIG_DFL without flags, in the kernel's
 * layout too, whatever the machine. */
IN_CHILD static void reset_signals(const struct plan *p)
{
    static const unsigned long standard[8];
    for (int number = 1; number < _NSIG; number++) {
        syscall(SYS_rt_sigaction, number, standard, NULL, _NSIG / 8);
    }
    sigprocmask(SIG_SETMASK, &p->no_signals, NULL);
}

/* Away from our process group and from the terminal: neither Ctrl-C there nor
 * its hang-up reaches the child. A session of its own would be as good, but
 * Linux gives every session its own share of the processors (autogroup), and
 * a new share waits for its turn: on a busy machine that doubles the time of
 * a launch. */
IN_CHILD static void leave_terminal(void)
{
    setpgid(0, 0); /* cannot fail: a new process leads no session */
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        ioctl(fd, TIOCNOTTY);
        close(fd);
    }
}

/* Each soft limit up to its hard one. Refused (EPERM) only where the hard
 * limit of files is above what the kernel now allows (fs.nr_open). */
IN_CHILD static void raise_limits(void)
{
    static const int which[] = {RLIMIT_NOFILE, RLIMIT_MEMLOCK};
    for (size_t i = 0; i < sizeof(which) / sizeof(which[0]); i++) {
        struct rlimit64 limit;
        if (syscall(SYS_prlimit64, 0, which[i], NULL, &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            syscall(SYS_prlimit64, 0, which[i], &limit, NULL);
        }
    }
}

/* Straight to the kernel, which takes masks of any length. */
IN_CHILD static enum step bind_to_place(const struct gpul_spawn *spec)
{
    if (spec->cgroup_procs != 0 && write(spec->cgroup_procs, "0", 1) != 1) {
        return STEP_CGROUP;
    }
    if (spec->cpus != NULL &&
        syscall(SYS_sched_setaffinity, 0, spec->cpu_words * sizeof(uint64_t),
                spec->cpus) != 0) {
        return STEP_CPUS;
    }
    /* The kernel looks at one bit less than it is told. */
    if (spec->nodes != NULL &&
        syscall(SYS_set_mempolicy, POLICY_BIND, spec->nodes,
                spec->node_words * WORD_BITS + 1) != 0) {
        return STEP_NODES;
    }
    if (spec->raises_limits) {
        raise_limits();
    }
    return STEP_NONE;
}

/* Returns the step that failed; does not return from a successful exec. */
IN_CHILD static enum step become(struct plan *p)
{
    const struct gpul_spawn *spec = p->spec;
    leave_terminal();
    if (spec->parent_death_signal != 0) {
        prctl(PR_SET_PDEATHSIG, spec->parent_death_signal);
        if (getppid() != p->parent) { /* it died before the prctl */
            errno = ESRCH;
            return STEP_PARENT;
        }
    }
    enum step failed = bind_to_place(spec);
    if (failed != STEP_NONE) {
        return failed;
    }
    if (!arrange_fds(p)) {
        return STEP_FDS;
    }
    if (spec->working_directory != NULL && chdir(spec->working_directory) < 0) {
        return STEP_DIRECTORY;
    }
    if (p->has_core_limit) {
        syscall(SYS_prlimit64, 0, RLIMIT_CORE, &p->core_limit, NULL);
    }
    reset_signals(p);
    execve(spec->path, spec->arguments, spec->environment);
    return STEP_EXEC;
}

IN_CHILD static int child_main(void *arg)
{
    struct plan *p = arg;
    p->failed_step = become(p);
    p->failed_errno = errno;
    _exit(127);
}

static unsigned int fd_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 1048576) {
        return 1048576;
    }
    return (unsigned int)limit.rlim_cur;
}

/* Clone with every signal blocked, so that no handler of ours runs in the
 * child, on our memory. */
static pid_t clone_child(struct plan *p)
{
    _Alignas(16) unsigned char stack[CHILD_STACK_BYTES];
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t pid = clone(child_main, stack + sizeof(stack),
                      CLONE_VM | CLONE_VFORK | SIGCHLD, p);
    int clone_errno = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = clone_errno;
    return pid;
}

/* The interpreter that a script names, or "" if `path` is no script. */
static void read_interpreter(char *out, const char *path)
{
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char head[SHEBANG_BYTES];
    ssize_t n = read(fd, head, sizeof(head) - 1);
    close(fd);
    if (n < 3 || head[0] != '#' || head[1] != '!') {
        return;
    }
    head[n] = 0;
    const char *start = head + 2 + strspn(head + 2, " \t");
    snprintf(out, SHEBANG_BYTES, "%.*s", (int)strcspn(start, " \t\r\n"), start);
}

/* Which of execve's two limits it was: of one string, or of all together. */
static int explain_size(const struct gpul_spawn *spec, struct gpul_error *err)
{
    char *const *const lists[] = {spec->arguments, spec->environment};
    const char *longest = "";
    size_t longest_bytes = 0;
    size_t bytes = 0;
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++) {
        for (char *const *s = lists[l]; *s != NULL; s++) {
            size_t n = strlen(*s) + 1;
            bytes += n + sizeof(*s);
            longest = n > longest_bytes ? *s : longest;
            longest_bytes = n > longest_bytes ? n : longest_bytes;
        }
    }
    if (longest_bytes > STRING_BYTES_MAX) {
        return gpul_fail(err, GPUL_ESYS,
                         "cannot execute %s: the string \"%.40s...\" of its "
                         "arguments and environment has %zu bytes, and Linux "
                         "allows %d; shorten it",
                         spec->path, longest, longest_bytes, STRING_BYTES_MAX);
    }
    long allowed_bytes = sysconf(_SC_ARG_MAX);
    if (allowed_bytes < 0 || allowed_bytes > STRINGS_BYTES_MAX) {
        allowed_bytes = STRINGS_BYTES_MAX;
    }
    return gpul_fail(err, GPUL_ESYS,
                     "cannot execute %s: its arguments and environment take "
                     "%zu bytes, and Linux allows %ld; shorten them, or raise "
                     "ulimit -s",
                     spec->path, bytes, allowed_bytes);
}

/* ENOENT of a file that is there, and ENOEXEC, puzzle everybody: say more. */
static int explain_exec(const struct gpul_spawn *spec, int exec_errno,
                        struct gpul_error *err)
{
    const char *path = spec->path;
    if (exec_errno == ENOENT && path[0] == '/' && access(path, F_OK) == 0) {
        char interpreter[SHEBANG_BYTES];
        read_interpreter(interpreter, path);
        return gpul_fail(err, GPUL_ESYS,
                         "cannot execute %s: its interpreter%s%s does not "
                         "exist",
                         path, interpreter[0] ? " " : "", interpreter);
    }
    if (exec_errno == ENOEXEC) {
        return gpul_fail(err, GPUL_ESYS,
                         "cannot execute %s: neither a program for this "
                         "machine nor a script with a #! line",
                         path);
    }
    if (exec_errno == E2BIG) {
        return explain_size(spec, err);
    }
    return gpul_fail_errno(err, exec_errno, "cannot execute %s", path);
}

static int explain(const struct plan *p, struct gpul_error *err)
{
    const struct gpul_spawn *spec = p->spec;
    switch (p->failed_step) {
    case STEP_DIRECTORY:
        return gpul_fail_errno(err, p->failed_errno,
                               "cannot enter directory %s",
                               spec->working_directory);
    case STEP_EXEC:
        return explain_exec(spec, p->failed_errno, err);
    case STEP_FDS:
        return gpul_fail_errno(err, p->failed_errno,
                               "cannot pass descriptors to %s", spec->path);
    case STEP_CGROUP:
        return gpul_fail_errno(err, p->failed_errno,
                               "cannot put %s into its cgroup", spec->path);
    case STEP_CPUS:
        return gpul_fail_errno(err, p->failed_errno,
                               "cannot bind %s to its processors", spec->path);
    case STEP_NODES:
        return gpul_fail_errno(err, p->failed_errno,
                               "cannot bind the memory of %s to its NUMA node",
                               spec->path);
    case STEP_PARENT:
    case STEP_NONE:
        break;
    }
    return gpul_fail_start(err, p->failed_errno, "cannot start %s", spec->path);
}

int gpul_spawn(pid_t *pid, int *exec_errno, const struct gpul_spawn *spec,
               struct gpul_error *err)
{
    assert(spec->fd_count <= FDS_MAX);
    struct plan p = {.spec = spec, .parent = getpid(), .fd_limit = fd_limit()};
    struct rlimit core;
    p.has_core_limit = gpul_startup_core_limit(&core);
    p.core_limit = (struct rlimit64){core.rlim_cur, core.rlim_max};
    sigemptyset(&p.no_signals);
    *pid = 0;
    *exec_errno = 0;
    pid_t child = clone_child(&p);
    if (child < 0) {
        p.failed_errno = errno;
    } else if (p.failed_step == STEP_NONE) {
        *pid = child;
        return 0;
    } else {
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    *exec_errno = p.failed_errno;
    return explain(&p, err);
}

/* ---- the search ---------------------------------------------------------- */

/* "directory/name", under `base` if the directory is relative; NULL: no
 * memory. An empty directory is the working directory, as for the shell. */
static char *join(const char *base, const char *directory, int directory_bytes,
                  const char *name)
{
    char *path = NULL;
    bool is_absolute = directory_bytes > 0 && directory[0] == '/';
    bool has_base = base != NULL && !is_absolute;
    int n = asprintf(&path, "%s%s%.*s%s%s", has_base ? base : "",
                     has_base ? "/" : "", directory_bytes, directory,
                     directory_bytes > 0 ? "/"
                     : has_base          ? ""
                                         : "./",
                     name);
    return n < 0 ? NULL : path;
}

/* 0, or why this file would not do. */
static int judge(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return errno == EACCES ? EACCES : ENOENT;
    }
    bool is_program =
        S_ISREG(st.st_mode) && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
    return is_program ? 0 : EACCES;
}

static int search(char **out, int *exec_errno, const char *command,
                  const char *path_list, const char *base,
                  struct gpul_error *err)
{
    const char *at = path_list;
    *exec_errno = ENOENT;
    for (;;) {
        int bytes = (int)strcspn(at, ":");
        char *path = join(base, at, bytes, command);
        if (path == NULL) {
            *exec_errno = ENOMEM;
            return gpul_fail(err, GPUL_ENOMEM, "no memory to find \"%s\"",
                             command);
        }
        int why_not = judge(path);
        if (why_not == 0) {
            *exec_errno = 0;
            *out = path;
            return 0;
        }
        if (why_not == EACCES && *exec_errno != EACCES) {
            *exec_errno = EACCES;
            gpul_fail(err, GPUL_ENOTFOUND, "%s is not executable", path);
        }
        free(path);
        at += bytes;
        if (*at++ == 0) {
            return GPUL_ENOTFOUND;
        }
    }
}

int gpul_spawn_find(char **out, int *exec_errno, const char *command,
                    const char *path_list, const char *working_directory,
                    struct gpul_error *err)
{
    *out = NULL;
    *exec_errno = 0;
    if (strchr(command, '/') != NULL) {
        *out = command[0] == '/' || working_directory == NULL
                   ? strdup(command)
                   : join(working_directory, "", 0, command);
        *exec_errno = *out == NULL ? ENOMEM : 0;
        return *out != NULL ? 0
                            : gpul_fail(err, GPUL_ENOMEM,
                                        "no memory to find \"%s\"", command);
    }
    if (command[0] == 0) {
        *exec_errno = ENOENT;
        return gpul_fail(err, GPUL_ENOTFOUND, "the command is empty");
    }
    int rc =
        search(out, exec_errno, command,
               path_list != NULL ? path_list : "/usr/local/bin:/usr/bin:/bin",
               working_directory, err);
    if (rc == GPUL_ENOTFOUND && *exec_errno == ENOENT) {
        return gpul_fail(err, rc, "command \"%s\" not found in PATH", command);
    }
    return rc;
}
