/* tests/models/rehearse.c -- A binary of tables alone: what a model's own binary is, but that its
 * tables come from a shared object that `gen plan` emitted the source of, and nothing can be run.
 *
 *   rehearse TABLES.so plan --rehearse --card rtx5090 */
#include "runtime/app/app.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *tables = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct burin_model *model = tables ? dlsym(tables, "burin_model") : NULL;
    if (!model) {
        fprintf(stderr, "rehearse: %s\n", argc > 1 ? dlerror() : "TABLES.so is missing");
        return 2;
    }
    return burin_app_main(model, argc - 1, (const char **)argv + 1);
}
