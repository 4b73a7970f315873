/* runtime/app/main.c -- The binary of one model: see app.c. */
#include "runtime/app/app.h"

int main(int argc, char **argv)
{
    return burin_app_main(&burin_model, argc, (const char **)argv);
}
