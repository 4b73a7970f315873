#include "runtime/plan/shape.h"

#include "runtime/base/put.h"
#include "runtime/plan/size.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const extent_words[BURIN_N_EXTENTS] = {
    [BURIN_TOKENS] = "tokens",
    [BURIN_SEQUENCES] = "sequences",
    [BURIN_OUTPUTS] = "outputs",
    [BURIN_SOFT] = "soft",
};
static const char *const param_words[BURIN_N_PARAMS] = {
    [BURIN_MAX_CONTEXT] = "max_context",
    [BURIN_MAX_PAGES] = "max_pages",
    [BURIN_MAX_SEQUENCES] = "max_sequences",
    [BURIN_THREADS] = "threads",
    [BURIN_DRAFT] = "draft",
    [BURIN_MAX_SOFT] = "max_soft",
    [BURIN_FAST_GEMM] = "fast_gemm",
};

const char *burin_extent_name(enum burin_extent extent)
{
    return extent == BURIN_SOFT ? "soft tokens" : extent_words[extent];
}

struct reader {
    const char *at;
    const struct burin_model *model;
    const struct burin_params *params;
    const int *n;
    bool failed;
    int depth;
};

static void skip_spaces(struct reader *reader)
{
    reader->at += strspn(reader->at, " ");
}

static bool same_word(const char *name, const char *word, size_t length)
{
    size_t i = 0;
    while (i < length && name[i] &&
           tolower((unsigned char)name[i]) == tolower((unsigned char)word[i]))
        i++;
    return i == length && !name[i];
}

static int64_t read_name(struct reader *reader)
{
    const char *word = reader->at;
    size_t length = 0;
    while (isalnum((unsigned char)word[length]) || word[length] == '_')
        length++;
    reader->at += length;
    for (int i = 0; i < BURIN_N_EXTENTS; i++)
        if (same_word(extent_words[i], word, length))
            return reader->n[i];
    for (int i = 0; i < BURIN_N_PARAMS; i++)
        if (same_word(param_words[i], word, length))
            return reader->params->value[i];
    for (int i = 0; i < reader->model->n_dims; i++)
        if (same_word(reader->model->dims[i].name, word, length))
            return reader->model->dims[i].value;
    reader->failed = true;
    return 0;
}

static int64_t read_sum(struct reader *reader);

static int64_t read_operand(struct reader *reader)
{
    skip_spaces(reader);
    int64_t value = 0;
    if (*reader->at == '(' && reader->depth < 8) {
        reader->at++;
        reader->depth++;
        value = read_sum(reader);
        reader->depth--;
        skip_spaces(reader);
        reader->failed |= *reader->at != ')';
        reader->at += *reader->at == ')';
    } else if (isdigit((unsigned char)*reader->at)) {
        while (isdigit((unsigned char)*reader->at))
            value = burin_add(burin_multiply(value, 10), *reader->at++ - '0');
    } else {
        value = read_name(reader);
    }
    skip_spaces(reader);
    return value;
}

static int64_t read_product(struct reader *reader)
{
    int64_t value = read_operand(reader);
    while (*reader->at == '*' && !reader->failed) {
        reader->at++;
        value = burin_multiply(value, read_operand(reader));
    }
    return value;
}

static int64_t read_sum(struct reader *reader)
{
    int64_t value = read_product(reader);
    while ((*reader->at == '+' || *reader->at == '-') && !reader->failed) {
        const bool plus = *reader->at++ == '+';
        const int64_t other = read_product(reader);
        value = plus ? burin_add(value, other) : value - other;
    }
    return value;
}

void burin_shape_numbers(
        const char *shape,
        const struct burin_model *model,
        const struct burin_params *params,
        const int n[BURIN_N_EXTENTS],
        char *text,
        size_t capacity)
{
    struct reader reader = { .at = shape, .model = model, .params = params, .n = n };
    struct burin_put out = { text, capacity, 0 };
    text[0] = '\0';
    burin_put(&out, "(");
    if (*reader.at != '(')
        reader.failed = true;
    else
        reader.at++;
    for (bool more = *reader.at != ')'; more && !reader.failed;) {
        burin_put(&out, "%lld", (long long)read_sum(&reader));
        more = *reader.at == ',';
        reader.at += more;
        if (more)
            burin_put(&out, ", ");
    }
    if (reader.failed || strcmp(reader.at, ")") != 0)
        snprintf(text, capacity, "%s", shape);
    else
        burin_put(&out, ")");
}
