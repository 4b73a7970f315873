#include "runtime/plan/fit.h"

#include "runtime/plan/size.h"

static int64_t granules(const struct burin_fit *fit, int64_t bytes)
{
    return bytes / fit->granule + (bytes % fit->granule != 0);
}

int64_t burin_fit_room(const struct burin_fit *fit)
{
    return fit->limit - burin_add(burin_add(fit->fixed, fit->graphs), fit->state);
}

enum burin_status burin_fit_pages(
        const struct burin_fit *fit, int64_t *n_pages, struct burin_error *err)
{
    const int64_t room = burin_fit_room(fit);
    const int64_t each = room > 0 ? room / fit->n_segments / fit->granule : 0;
    *n_pages = each * fit->granule / fit->page_bytes;
    if (each > 0)
        return BURIN_OK;
    return burin_fail(
            err, BURIN_ENOMEM,
            "the KV cache has room for %lld bytes, below one granule of %lld bytes for "
            "each of its %d segments",
            (long long)(room > 0 ? room : 0), (long long)fit->granule, fit->n_segments);
}

int64_t burin_fit_short(const struct burin_fit *fit, int64_t n_pages)
{
    const int64_t each = granules(fit, burin_multiply(n_pages, fit->page_bytes));
    const int64_t need =
            burin_multiply(burin_multiply(each, fit->granule), fit->n_segments);
    const int64_t room = burin_fit_room(fit);
    return need > room ? need - room : 0;
}

int64_t burin_fit_agree(const int64_t *n_pages, int n_devices, int *binding)
{
    *binding = 0;
    for (int i = 1; i < n_devices; i++)
        if (n_pages[i] < n_pages[*binding])
            *binding = i;
    return n_pages[*binding];
}
