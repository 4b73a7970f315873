/* Machine code of kernels, kept between runs. */
#include "runtime/device/cuda/cache.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct burin_arena arena;

static const uint8_t code[] = "machine code of some length";

static struct burin_compiled some_kernel(void)
{
    return (struct burin_compiled){
        .origin = BURIN_COMPILED,
        .bytes = code,
        .n_bytes = sizeof code,
        .registers = 40,
        .shared_bytes = 1024,
        .stack_bytes = 0,
    };
}

/* A folder below one that is not there either. */
static const char *new_folder(void)
{
    static char folder[512];
    char parent[256] = "/tmp/burin-cache-XXXXXX";
    assert_non_null(mkdtemp(parent));
    snprintf(folder, sizeof folder, "%s/burin/kernels", parent);
    return folder;
}

static struct burin_cache_key key_of(const char *text)
{
    struct burin_cache_key key = { { 0 } };
    burin_cache_key_add(&key, text, strlen(text));
    return key;
}

/* The only file of a folder. */
static const char *only_file(const char *folder)
{
    static char path[1024];
    int n = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *e = readdir(entries); e; e = readdir(entries))
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%.200s", folder, e->d_name);
            n++;
        }
    closedir(entries);
    assert_int_equal(n, 1);
    return path;
}

SPEC(what_was_kept_is_found_again)
{
    const char *folder = new_folder();
    const struct burin_cache_key key = key_of("a kernel");
    const struct burin_compiled kept = some_kernel();
    struct burin_compiled found = { 0 };

    assert_true(burin_cache_keep(folder, &key, &kept));
    assert_true(burin_cache_find(folder, &key, &arena, &found));

    assert_int_equal(found.origin, BURIN_CACHED);
    assert_int_equal(found.n_bytes, sizeof code);
    assert_memory_equal(found.bytes, code, sizeof code);
    assert_int_equal(found.registers, 40);
    assert_int_equal(found.shared_bytes, 1024);
    assert_int_equal(found.stack_bytes, 0);
}

SPEC(another_key_finds_nothing)
{
    const char *folder = new_folder();
    const struct burin_cache_key key = key_of("a kernel");
    const struct burin_cache_key other = key_of("a kernel.");
    const struct burin_compiled kept = some_kernel();
    struct burin_compiled found;

    burin_cache_keep(folder, &key, &kept);

    assert_false(burin_cache_find(folder, &other, &arena, &found));
}

SPEC(a_key_tells_where_one_part_ends)
{
    struct burin_cache_key a = { { 0 } };
    struct burin_cache_key b = { { 0 } };
    burin_cache_key_add(&a, "ab", 2);
    burin_cache_key_add(&a, "c", 1);
    burin_cache_key_add(&b, "a", 1);
    burin_cache_key_add(&b, "bc", 2);

    assert_memory_not_equal(&a, &b, sizeof a);
}

SPEC(a_file_with_any_byte_changed_is_not_found)
{
    const char *folder = new_folder();
    const struct burin_cache_key key = key_of("a kernel");
    const struct burin_compiled kept = some_kernel();
    struct burin_compiled found;
    burin_cache_keep(folder, &key, &kept);
    const char *path = only_file(folder);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);

    for (long at = 0; at < about.st_size; at++) {
        /* registers, shared and stack bytes are for tables only: nothing hangs on them */
        if (at >= 56 && at < 72)
            continue;
        FILE *file = fopen(path, "r+b");
        fseek(file, at, SEEK_SET);
        const int byte = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(byte ^ 0x40, file);
        fclose(file);

        if (burin_cache_find(folder, &key, &arena, &found))
            fail_msg("found with byte %ld changed", at);

        file = fopen(path, "r+b");
        fseek(file, at, SEEK_SET);
        fputc(byte, file);
        fclose(file);
    }
    assert_true(burin_cache_find(folder, &key, &arena, &found));
}

SPEC(a_file_cut_at_any_byte_is_not_found_and_can_be_written_anew)
{
    const char *folder = new_folder();
    const struct burin_cache_key key = key_of("a kernel");
    const struct burin_compiled kept = some_kernel();
    struct burin_compiled found;
    burin_cache_keep(folder, &key, &kept);
    const char *path = only_file(folder);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);

    for (long size = about.st_size - 1; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        assert_false(burin_cache_find(folder, &key, &arena, &found));
    }

    burin_cache_keep(folder, &key, &kept);
    assert_true(burin_cache_find(folder, &key, &arena, &found));
    only_file(folder); /* and nothing of the writing is left */
}

SPEC(a_fifo_in_its_place_is_not_waited_for)
{
    const char *folder = new_folder();
    const struct burin_cache_key key = key_of("a kernel");
    const struct burin_compiled kept = some_kernel();
    struct burin_compiled found;
    burin_cache_keep(folder, &key, &kept);
    const char *path = only_file(folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);

    alarm(10); /* a hang is a failure */
    assert_false(burin_cache_find(folder, &key, &arena, &found));
    alarm(0);

    burin_cache_keep(folder, &key, &kept);
    assert_true(burin_cache_find(folder, &key, &arena, &found));
}

SPEC(a_folder_that_cannot_be_written_is_told)
{
    const struct burin_cache_key key = key_of("a kernel");
    const struct burin_compiled kept = some_kernel();
    struct burin_compiled found;

    assert_false(burin_cache_keep("/dev/null/kernels", &key, &kept));

    assert_false(burin_cache_find("/dev/null/kernels", &key, &arena, &found));
}

SPEC(the_folder_is_the_first_that_the_environment_says)
{
    setenv("HOME", "/h", 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("BURIN_KERNEL_CACHE");
    assert_string_equal(burin_cache_folder(&arena), "/h/.cache/burin/kernels");

    setenv("XDG_CACHE_HOME", "/x", 1);
    assert_string_equal(burin_cache_folder(&arena), "/x/burin/kernels");

    setenv("BURIN_KERNEL_CACHE", "/k", 1);
    assert_string_equal(burin_cache_folder(&arena), "/k");

    setenv("BURIN_KERNEL_CACHE", "", 1);
    assert_null(burin_cache_folder(&arena));
}
