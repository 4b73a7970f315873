/* runtime/base/replace.h and caches.h: files written as a whole, and where caches are. */
#include "runtime/base/caches.h"
#include "runtime/base/replace.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test-replace-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];
    static bool made;
    if (!made)
        assert_non_null(mkdtemp(folder));
    made = true;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void expect_content(const char *path, const char *content)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), strlen(content));
    fclose(file);
    assert_string_equal(text, content);
}

static int files_in(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

SPEC(a_file_and_the_folders_above_it_are_made_then_replaced)
{
    const char *path = in_folder("a/b/file");
    const struct burin_span first[] = { burin_span_of("one, "), burin_span_of("two") };
    const struct burin_span second = burin_span_of("three");

    assert_true(burin_replace_file(path, first, 2));
    expect_content(path, "one, two");
    assert_true(burin_replace_file(path, &second, 1));
    expect_content(path, "three");

    assert_int_equal(files_in(in_folder("a/b")), 1);
    unlink(in_folder("a/b/file"));
    rmdir(in_folder("a/b"));
    rmdir(in_folder("a"));
}

SPEC(where_it_cannot_be_all_stays_as_it_was)
{
    const struct burin_span text = burin_span_of("text");
    mkdir(in_folder("taken"), 0777);

    assert_false(burin_replace_file(in_folder("taken"), &text, 1));
    assert_int_equal(files_in(in_folder("")), 1);
    assert_false(burin_replace_file("/dev/null/a/file", &text, 1));

    rmdir(in_folder("taken"));
    rmdir(folder);
}

SPEC(caches_are_where_the_environment_says)
{
    char path[16];
    setenv("HOME", "/h", 1);
    setenv("XDG_CACHE_HOME", "", 1);
    assert_true(burin_cache_path("a/b", path, sizeof path));
    assert_string_equal(path, "/h/.cache/a/b");
    assert_false(burin_cache_path("a/longer", path, sizeof path));

    setenv("XDG_CACHE_HOME", "/x", 1);
    assert_true(burin_cache_path("a/b", path, sizeof path));
    assert_string_equal(path, "/x/a/b");

    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    assert_false(burin_cache_path("a/b", path, sizeof path));
}
