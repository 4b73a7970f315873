#include "runtime/weights/bind.h"

#include "runtime/base/put.h"
#include "runtime/weights/hyperparameters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a description computes itself, from its own sizes; files hold it for other engines. */
static const char *const computed[] = {
    "rope_freqs.weight",    /* GGUF: the factors of llama3 rope scaling */
    ".rotary_emb.inv_freq", /* old Hugging Face files */
};

enum { LINES_TEXT = 3000, ENDING_TEXT = 700 }; /* together below BURIN_ERROR_TEXT */
enum { PIECE_NAME = 300 };

static void put_shape(struct burin_put *text, const uint64_t *dims, int n_dims)
{
    burin_put(text, "(");
    for (int i = 0; i < n_dims; i++)
        burin_put(text, "%s%" PRIu64, i ? ", " : "", dims[i]);
    burin_put(text, ")");
}

/* ---- What does not fit ----------------------------------------------------------- */

enum mismatch { FITS, MISSING, UNNAMED, SHAPE, FORMAT };

/* The same mismatch in a number of layers. */
struct complaint {
    enum mismatch kind;
    const struct burin_weight *weight; /* the first */
    const struct burin_tensor *tensor;
    size_t count;
};
enum { MAX_COMPLAINTS = 64 };

struct binder {
    const struct burin_model *model;
    struct burin_checkpoint *checkpoint;
    const struct burin_tensor **tensors; /* parallel to model->weights */
    struct complaint complaints[MAX_COMPLAINTS];
    size_t n_complaints;
    size_t n_more;    /* beyond the limit */
    bool other_sizes; /* something is missing, too much or of another shape */
    const struct burin_tensor *unused[3];
    size_t n_unused;
    struct burin_self_report says;
};

/* The first dims make rows, the others columns. */
static bool dims_fit(const struct burin_tensor *tensor, int64_t n_rows, int64_t n_cols)
{
    uint64_t before = 1;
    for (int i = 0; i <= tensor->n_dims; i++) {
        uint64_t behind = 1;
        for (int k = i; k < tensor->n_dims; k++)
            if (__builtin_mul_overflow(behind, tensor->dims[k], &behind))
                return false;
        if (before == (uint64_t)n_rows && behind == (uint64_t)n_cols)
            return true;
        if (i < tensor->n_dims && __builtin_mul_overflow(before, tensor->dims[i], &before))
            return false;
    }
    return false;
}

static bool shape_fits(const struct burin_tensor *tensor, const struct burin_weight *weight)
{
    return dims_fit(tensor, weight->n_rows, weight->n_cols);
}

static bool is_transposed(
        const struct burin_tensor *tensor, const struct burin_weight *weight)
{
    return tensor->n_dims == 2 && tensor->dims[0] == (uint64_t)weight->n_cols &&
           tensor->dims[1] == (uint64_t)weight->n_rows;
}

static bool format_fits(
        const struct burin_tensor *tensor, const struct burin_weight *weight)
{
    const int format = tensor->type->format;
    if (format == (int)weight->format)
        return true;
    return weight->n_rows == 1 && weight->format == BURIN_FORMAT_F32 &&
           (format == BURIN_FORMAT_F16 || format == BURIN_FORMAT_BF16);
}

/* Piece `index` of a stack: its expert and part in that order. */
static const struct burin_tensor *find_piece(
        const struct binder *b, const struct burin_weight *weight, int64_t index)
{
    const char *name = weight->pieces[index % weight->n_parts];
    const char *number = name ? strstr(name, "%d") : NULL;
    char text[PIECE_NAME];
    if (!number)
        return NULL;
    const int length = snprintf(
            text, sizeof text, "%.*s%d%s", (int)(number - name), name,
            (int)(index / weight->n_parts), number + 2);
    return length > 0 && length < (int)sizeof text
                   ? burin_checkpoint_find(b->checkpoint, text)
                   : NULL;
}

/* A stack that the file holds one by one, as one tensor; NULL where the file doesn't, or has
 * pieces of several kinds. */
static const struct burin_tensor *join_pieces(
        const struct binder *b, const struct burin_weight *weight)
{
    const struct burin_tensor *first = weight->n_matrices ? find_piece(b, weight, 0) : NULL;
    if (!first || b->checkpoint->container != BURIN_SAFETENSORS)
        return NULL;
    struct burin_arena *arena = &b->checkpoint->arena;
    const int64_t n = burin_weight_pieces(weight);
    struct burin_tensor *whole = BURIN_TAKE(arena, 1, struct burin_tensor);
    const struct burin_tensor **pieces =
            BURIN_TAKE(arena, (size_t)n, const struct burin_tensor *);
    if (!whole || !pieces)
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        pieces[i] = find_piece(b, weight, i);
        if (!pieces[i] || pieces[i]->type != first->type ||
            !dims_fit(pieces[i], weight->n_rows / n, weight->n_cols))
            return NULL;
    }
    *whole = *first;
    whole->n_dims = 2;
    whole->dims[0] = (uint64_t)weight->n_rows;
    whole->dims[1] = (uint64_t)weight->n_cols;
    whole->bytes = first->bytes * (uint64_t)n;
    whole->pieces = pieces;
    return whole;
}

static enum mismatch compare(
        const struct binder *b,
        const struct burin_weight *weight,
        const struct burin_tensor **tensor)
{
    const char *name = weight->names[b->checkpoint->container];
    *tensor = name ? burin_checkpoint_find(b->checkpoint, name) : NULL;
    if (name && !*tensor)
        *tensor = join_pieces(b, weight);
    if (!name)
        return UNNAMED;
    if (!*tensor)
        return MISSING;
    if (!shape_fits(*tensor, weight))
        return SHAPE;
    return format_fits(*tensor, weight) ? FITS : FORMAT;
}

static bool same_tensor_kind(const struct burin_tensor *a, const struct burin_tensor *b)
{
    if (!a || !b)
        return a == b;
    return a->type == b->type && a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof a->dims[0]) == 0;
}

static bool alike(const struct complaint *a, const struct complaint *b)
{
    return a->kind == b->kind && strcmp(a->weight->role, b->weight->role) == 0 &&
           a->weight->n_rows == b->weight->n_rows &&
           a->weight->n_cols == b->weight->n_cols &&
           a->weight->format == b->weight->format && same_tensor_kind(a->tensor, b->tensor);
}

static void complain(struct binder *b, struct complaint complaint)
{
    if (complaint.kind != FORMAT)
        b->other_sizes = true;
    for (size_t i = 0; i < b->n_complaints; i++)
        if (alike(&b->complaints[i], &complaint)) {
            b->complaints[i].count++;
            return;
        }
    if (b->n_complaints == MAX_COMPLAINTS)
        b->n_more++;
    else
        b->complaints[b->n_complaints++] = complaint;
}

static void match(struct binder *b)
{
    for (int i = 0; i < b->model->n_weights; i++) {
        struct complaint complaint = { .weight = &b->model->weights[i], .count = 1 };
        complaint.kind = compare(b, complaint.weight, &complaint.tensor);
        b->tensors[i] = complaint.tensor;
        if (complaint.kind)
            complain(b, complaint);
    }
}

/* ---- What is too much ------------------------------------------------------------ */

static bool is_computed(const struct burin_tensor *tensor)
{
    for (size_t i = 0; i < sizeof computed / sizeof computed[0]; i++)
        if (burin_span_ends(tensor->name, computed[i]))
            return true;
    return false;
}

static enum burin_status same_bytes(
        const struct burin_checkpoint *checkpoint,
        const struct burin_tensor *a,
        const struct burin_tensor *b,
        bool *same,
        struct burin_error *err)
{
    enum { PIECE = 16 * 1024 };
    unsigned char left[PIECE];
    unsigned char right[PIECE];
    *same = true;
    for (uint64_t at = 0; at < a->bytes && *same; at += PIECE) {
        const size_t bytes = a->bytes - at < PIECE ? (size_t)(a->bytes - at) : PIECE;
        enum burin_status status =
                burin_checkpoint_read(checkpoint, a, at, left, bytes, err);
        if (!status)
            status = burin_checkpoint_read(checkpoint, b, at, right, bytes, err);
        if (status)
            return status;
        *same = memcmp(left, right, bytes) == 0;
    }
    return BURIN_OK;
}

/* Is this a second copy of a tensor that is bound? `budget` bounds the search: a file has one
 * such copy, not a thousand. */
static enum burin_status is_copy(
        const struct binder *b,
        const struct burin_tensor *tensor,
        int *budget,
        bool *copy,
        struct burin_error *err)
{
    *copy = false;
    for (int i = 0; i < b->model->n_weights && !*copy && *budget > 0; i++) {
        if (!b->tensors[i] || b->tensors[i]->pieces ||
            !same_tensor_kind(b->tensors[i], tensor))
            continue;
        --*budget;
        const enum burin_status status =
                same_bytes(b->checkpoint, b->tensors[i], tensor, copy, err);
        if (status)
            return status;
    }
    return BURIN_OK;
}

/* `bound` are the tensors that have a place, sorted by name. */
static enum burin_status find_unused(
        struct binder *b,
        struct burin_tensor *const *bound,
        size_t n_bound,
        struct burin_error *err)
{
    int budget = 1000;
    for (size_t i = 0; i < b->checkpoint->n_tensors; i++) {
        const struct burin_tensor *tensor = b->checkpoint->tensors[i];
        if (burin_tensor_find(bound, n_bound, tensor->name) || is_computed(tensor))
            continue;
        bool copy;
        const enum burin_status status = is_copy(b, tensor, &budget, &copy, err);
        if (status)
            return status;
        if (copy)
            continue;
        if (b->n_unused < sizeof b->unused / sizeof b->unused[0])
            b->unused[b->n_unused] = tensor;
        b->n_unused++;
        b->other_sizes = true;
    }
    return BURIN_OK;
}

static enum burin_status no_room(const struct binder *b, struct burin_error *err)
{
    return burin_fail(
            err, BURIN_ENOMEM, "%s: no room to bind its tensors", b->checkpoint->path);
}

/* The file's tensors that have a place: those of `tensors`, and what the model says that no
 * program reads. */
static size_t collect(const struct binder *b, struct burin_tensor **bound)
{
    size_t n = 0;
    for (int i = 0; i < b->model->n_weights; i++) {
        const struct burin_tensor *tensor = b->tensors[i];
        if (tensor && tensor->pieces)
            for (int64_t k = 0; k < burin_weight_pieces(&b->model->weights[i]); k++)
                bound[n++] = (struct burin_tensor *)(uintptr_t)tensor->pieces[k];
        else if (tensor)
            bound[n++] = (struct burin_tensor *)(uintptr_t)tensor;
    }
    for (int i = 0; i < b->model->n_unread; i++) {
        const char *name = b->model->unread[i].names[b->checkpoint->container];
        const struct burin_tensor *tensor =
                name ? burin_checkpoint_find(b->checkpoint, name) : NULL;
        if (tensor)
            bound[n++] = (struct burin_tensor *)(uintptr_t)tensor;
    }
    return n;
}

static enum burin_status match_back(struct binder *b, struct burin_error *err)
{
    struct burin_arena *arena = &b->checkpoint->arena;
    const struct burin_arena_mark mark = burin_arena_mark(arena);
    size_t n = (size_t)b->model->n_unread;
    for (int i = 0; i < b->model->n_weights; i++)
        n += (size_t)burin_weight_pieces(&b->model->weights[i]);
    struct burin_tensor **bound = BURIN_TAKE(arena, n, struct burin_tensor *);
    if (!bound)
        return no_room(b, err);

    const size_t n_bound = collect(b, bound);
    burin_sort((void **)bound, n_bound, burin_tensor_by_name);
    const enum burin_status status = find_unused(b, bound, n_bound, err);
    burin_arena_rewind(arena, mark);
    return status;
}

/* ---- What would fit -------------------------------------------------------------- */

/* Names go into a line that people paste into a shell: an allow-list. */
static bool is_plain_name(const char *name)
{
    if (!*name || *name == '-')
        return false;
    for (; *name; name++)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') ||
              *name == '-' || *name == '_' || *name == '.'))
            return false;
    return true;
}

enum { NAME_SIZE = 64, VARIANT_SIZE = 2 * NAME_SIZE };

static bool copy_lower(struct burin_span from, char *to, size_t size)
{
    if (from.length >= size)
        return false;
    for (size_t i = 0; i < from.length; i++) {
        const char c = from.at[i];
        to[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    to[from.length] = '\0';
    return is_plain_name(to);
}

static bool lower_key(const struct burin_gguf *gguf, const char *key, char name[NAME_SIZE])
{
    struct burin_span value;
    return !burin_gguf_text(gguf, key, &value, NULL) && copy_lower(value, name, NAME_SIZE);
}

/* The type that most matrices of the file have. */
static const struct burin_encoding *main_type(const struct burin_checkpoint *checkpoint)
{
    enum { MAX_TYPES = 64 };
    const struct burin_encoding *types[MAX_TYPES];
    size_t counts[MAX_TYPES] = { 0 };
    size_t n = 0;
    size_t best = 0;
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct burin_tensor *tensor = checkpoint->tensors[i];
        size_t type = 0;
        if (tensor->n_dims < 2)
            continue;
        while (type < n && types[type] != tensor->type)
            type++;
        if (type == MAX_TYPES)
            continue;
        if (type == n)
            types[n++] = tensor->type;
        if (++counts[type] > counts[best])
            best = type;
    }
    return n ? types[best] : NULL;
}

/* A path goes into that line as it is, or not at all. */
static bool is_plain_path(const char *path)
{
    for (; *path; path++)
        if (!((*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
              (*path >= '0' && *path <= '9') || strchr("-_./+,=@", *path)))
            return false;
    return true;
}

/* "smollm2-135m", where the file says so. */
static bool find_variant(const struct binder *b, char name[VARIANT_SIZE])
{
    char base[NAME_SIZE];
    char size[NAME_SIZE];
    const struct burin_gguf *gguf = &b->checkpoint->gguf;
    if (!lower_key(gguf, "general.basename", base) ||
        !lower_key(gguf, "general.size_label", size))
        return false;
    snprintf(name, VARIANT_SIZE, "%s-%s", base, size);
    return true;
}

/* Is a weight missing in a layer that is there, and there in another layer? */
static bool has_hole(const struct binder *b)
{
    for (int i = 0; i < b->model->n_weights; i++) {
        const struct burin_weight *weight = &b->model->weights[i];
        bool layer_is_there = false;
        bool role_is_there = false;
        for (int k = 0; k < b->model->n_weights && !b->tensors[i]; k++) {
            const struct burin_weight *other = &b->model->weights[k];
            if (!b->tensors[k] || other->layer < 0)
                continue;
            layer_is_there |= other->layer == weight->layer;
            role_is_there |= strcmp(other->role, weight->role) == 0;
        }
        if (layer_is_there && role_is_there)
            return true;
    }
    return false;
}

/* Whether the file is this model's own and lacks something all the same: no other binary would
 * fit it better. `variant` is what it calls itself, or NULL. */
static bool is_damaged(const struct binder *b, const char *variant)
{
    if (b->says.n)
        return false;
    for (size_t i = 0; i < b->n_complaints; i++)
        if (b->complaints[i].kind == SHAPE &&
            is_transposed(b->complaints[i].tensor, b->complaints[i].weight))
            return true;
    if (!b->other_sizes)
        return false;
    return variant ? strcmp(variant, b->model->variant) == 0 : has_hole(b);
}

/* Which sizes, as far as the file tells. */
static void put_variant(
        const struct binder *b,
        struct burin_put *text,
        const char *config,
        const char *variant)
{
    if (!b->other_sizes && !b->says.n)
        burin_put(text, " --variant %s", b->model->variant);
    else if (config && is_plain_path(config))
        burin_put(text, " --config %s", config);
    else if (variant)
        burin_put(text, " --variant %s", variant);
    else
        burin_put(text, " --variant NAME (one of gen list)");
}

/* The architecture as the file names it. */
static bool find_architecture(const struct binder *b, char name[NAME_SIZE])
{
    if (b->checkpoint->container == BURIN_GGUF)
        return lower_key(&b->checkpoint->gguf, "general.architecture", name);
    return copy_lower(burin_span_of(b->says.model_type), name, NAME_SIZE);
}

/* Of the same shapes and the same name, with other hyperparameters: no variant is known. */
static bool is_unknown_variant(const struct binder *b, const char *variant)
{
    return b->says.n && !*b->says.config &&
           (!variant || strcmp(variant, b->model->variant) == 0);
}

static void put_formats(struct burin_put *text)
{
    for (int i = 0; i < BURIN_N_FORMATS; i++)
        burin_put(text, "%s %s", i ? "," : "", burin_format_name((enum burin_format)i));
}

static void put_ending(const struct binder *b, struct burin_put *text)
{
    const char *path = b->checkpoint->path;
    const struct burin_encoding *type = main_type(b->checkpoint);
    if (!type) {
        burin_put(text, "The file has no matrices: is it the right one?");
        return;
    }
    if (type->format == BURIN_NO_FORMAT) {
        burin_put(text, "Burin does not compute with %s; it does with", type->name);
        put_formats(text);
        return;
    }

    char name[NAME_SIZE] = { 0 };
    char called[VARIANT_SIZE];
    const char *variant = find_variant(b, called) ? called : NULL;
    const bool named = find_architecture(b, name);
    const bool ours = !named || strcmp(name, b->model->architecture) == 0;
    if (ours && is_damaged(b, variant)) {
        burin_put(
                text,
                "The file is of this model, and incomplete or changed: get it again, or "
                "convert it anew");
        return;
    }
    if (ours && is_unknown_variant(b, variant)) {
        burin_put(
                text,
                "What fits the file: a variant in models/%s.lua that has what it says",
                b->model->architecture);
        return;
    }
    burin_put(
            text, "What fits the file: gen --model %s.lua",
            named ? name : b->model->architecture);
    put_variant(b, text, named && *b->says.config ? b->says.config : NULL, variant);
    if (b->other_sizes || b->says.n || strcmp(type->name, b->model->recipe) != 0)
        burin_put(text, " --quant %s", type->name);
    else /* that recipe is this binary's: the file mixes formats otherwise */
        burin_put(text, " --quant auto --weights %s", is_plain_path(path) ? path : "FILE");
}

/* ---- The message ----------------------------------------------------------------- */

static void put_complaint(
        const struct binder *b, struct burin_put *text, const struct complaint *c)
{
    const struct burin_weight *weight = c->weight;
    const char *name = weight->names[b->checkpoint->container];
    const char *verb = c->count > 1 ? "are" : "is";
    const uint64_t wanted[2] = { (uint64_t)weight->n_rows, (uint64_t)weight->n_cols };

    burin_put(text, "  %s ", name ? name : weight->role);
    if (c->count > 1)
        burin_put(text, "and %zu more like it ", c->count - 1);
    switch (c->kind) {
    case FITS:
        break;
    case MISSING:
        burin_put(text, "%s missing", verb);
        break;
    case UNNAMED:
        burin_put(
                text, "%s without a name in %s files", verb,
                b->checkpoint->container == BURIN_GGUF ? "GGUF" : "safetensors");
        break;
    case SHAPE:
        burin_put(text, "%s ", verb);
        put_shape(text, c->tensor->dims, c->tensor->n_dims);
        burin_put(text, ", wanted is ");
        if (weight->n_rows == 1)
            put_shape(text, wanted + 1, 1);
        else
            put_shape(text, wanted, 2);
        if (is_transposed(c->tensor, weight))
            burin_put(text, ": it lies transposed");
        break;
    case FORMAT:
        burin_put(
                text, "%s %s, wanted is %s", verb, c->tensor->type->name,
                burin_format_name(weight->format));
        break;
    }
    burin_put(text, "\n");
}

static void put_disagreement(struct burin_put *text, const struct burin_disagreement *d)
{
    burin_put(text, "  %s is %s, wanted is ", d->key, d->found);
    if (!d->wanted->text)
        burin_put(text, "%.7g", d->wanted->number);
    else
        for (const char *word = d->wanted->text; *word; word++)
            burin_put(text, "%.*s", *word == ' ' ? 4 : 1, *word == ' ' ? " or " : word);
    burin_put(text, "\n");
}

static void put_unused(const struct binder *b, struct burin_put *text)
{
    const size_t shown = sizeof b->unused / sizeof b->unused[0];
    burin_put(text, "  not in the model:");
    for (size_t i = 0; i < b->n_unused && i < shown; i++)
        burin_put(text, "%s %s", i ? "," : "", burin_quote(b->unused[i]->name).text);
    if (b->n_unused > shown)
        burin_put(text, " and %zu more", b->n_unused - shown);
    burin_put(text, "\n");
}

static enum burin_status refuse(const struct binder *b, struct burin_error *err)
{
    char lines_bytes[LINES_TEXT] = { 0 };
    char ending_bytes[ENDING_TEXT] = { 0 };
    struct burin_put lines = { lines_bytes, sizeof lines_bytes, 0 };
    struct burin_put ending = { ending_bytes, sizeof ending_bytes, 0 };

    size_t n_more = b->n_more;
    for (size_t i = 0; i < b->says.n; i++)
        if (i < BURIN_MAX_DISAGREEMENTS && lines.used < lines.size / 2)
            put_disagreement(&lines, &b->says.rows[i]);
        else
            n_more++;
    for (size_t i = 0; i < b->n_complaints; i++)
        if (lines.used < lines.size - 600) /* room for the longest line and two more */
            put_complaint(b, &lines, &b->complaints[i]);
        else
            n_more += b->complaints[i].count;
    if (n_more)
        burin_put(&lines, "  and %zu more\n", n_more);
    if (b->n_unused)
        put_unused(b, &lines);
    put_ending(b, &ending);
    return burin_fail(
            err, BURIN_EMISMATCH, "%.200s does not hold %s:\n%s%s", b->checkpoint->path,
            b->model->name, lines_bytes, ending_bytes);
}

enum burin_status burin_bind(
        const struct burin_model *model,
        struct burin_checkpoint *checkpoint,
        const struct burin_tensor *const **tensors,
        struct burin_error *err)
{
    struct binder b = { .model = model, .checkpoint = checkpoint };
    b.tensors = BURIN_TAKE(
            &checkpoint->arena, (size_t)model->n_weights, const struct burin_tensor *);
    if (!b.tensors)
        return no_room(&b, err);

    enum burin_status status =
            burin_hyperparameters_compare(model, checkpoint, &b.says, err);
    if (status)
        return status;
    match(&b);
    status = match_back(&b, err);
    if (status)
        return status;
    if (b.says.n || b.n_complaints || b.n_unused)
        return refuse(&b, err);
    *tensors = b.tensors;
    return BURIN_OK;
}
