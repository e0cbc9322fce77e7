/* SPDX-License-Identifier: Apache-2.0
 *
 * The main of a fuzz target in builds without libFuzzer: runs every file of
 * the folders given, each once. A folder without a file is a mistake.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "tests/lib/fuzz.h"

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    uint8_t *data = NULL;
    size_t n = 0;
    size_t got;
    do {
        data = realloc(data, n + 65536);
        FUZZ_CHECK(data != NULL);
        got = fread(data + n, 1, 65536, file);
        n += got;
    } while (got > 0);
    fclose(file);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
}

static size_t replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    size_t files = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char name[4096];
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        replay_file(name);
        files++;
    }
    closedir(folder);
    return files;
}

int main(int argc, char **argv)
{
    size_t files = 0;
    for (int i = 1; i < argc; i++) {
        files += replay_folder(argv[i]);
    }
    printf("%zu files replayed\n", files);
    return files > 0 ? 0 : 1;
}
