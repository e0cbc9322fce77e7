/* SPDX-License-Identifier: Apache-2.0
 *
 * The symbol table that dlsym() reads is a private mapping of the file: an
 * entry that is made undefined in memory is undefined for this process. The
 * doubles are linked with a hash table of the old kind, because only that one
 * tells how many symbols there are. */
#include "tests/doubles/hide.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/doubles/scenario.h"

struct table {
    ElfW(Sym) * symbols;
    const char *names;
    size_t count;
};

static void table_find(const struct link_map *map, struct table *table)
{
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        void *at = (void *)(uintptr_t)entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            table->symbols = at;
        else if (entry->d_tag == DT_STRTAB)
            table->names = at;
        else if (entry->d_tag == DT_HASH)
            table->count = ((const uint32_t *)at)[1];
    }
}

static void entry_clear(ElfW(Sym) * symbol)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)symbol & ~(page - 1);
    size_t bytes = (uintptr_t)(symbol + 1) - start;

    if (mprotect((void *)start, bytes, PROT_READ | PROT_WRITE) != 0)
        abort();
    symbol->st_shndx = SHN_UNDEF;
    symbol->st_value = 0;
    (void)mprotect((void *)start, bytes, PROT_READ);
}

static void hide(const struct table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        ElfW(Sym) *symbol = &table->symbols[i];
        if (symbol->st_shndx != SHN_UNDEF &&
            strcmp(table->names + symbol->st_name, name) == 0) {
            entry_clear(symbol);
            return;
        }
    }
    (void)fprintf(stderr,
                  "gpulaunch double: the scenario hides %s, which the library "
                  "never had\n",
                  name);
    abort();
}

void hide_symbols(const void *address, const char *prefix)
{
    const struct scenario *scenario = scenario_get();
    struct table table = {0};
    struct link_map *map = NULL;
    Dl_info info;

    for (int i = 0; i < scenario->hidden_count; i++) {
        if (strncmp(scenario->hidden[i], prefix, strlen(prefix)) != 0)
            continue;
        if (!map) {
            if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0)
                abort();
            table_find(map, &table);
        }
        hide(&table, scenario->hidden[i]);
    }
}
