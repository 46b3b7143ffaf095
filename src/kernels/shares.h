/* Work in shares, which the threads of an OpenMP library take one after the other.

   The library is the one that torch has loaded: its threads are awake between torch's operations, and
   need no other pool beside them. Python passes the address of its GOMP_parallel, or 0 for none. */
#include <stdint.h>

typedef void (*Parallel)(void (*work)(void *), void *data, unsigned threads, unsigned flags);

typedef struct {
    void (*one)(void *work, int64_t first, int64_t last);
    void *work;
    const int64_t *bounds; /* share i is from bounds[i] to bounds[i + 1] */
    int64_t count, next;
} Shares;

static void take_shares(void *data) {
    Shares *shares = data;
#if defined(__GNUC__)
    for (int64_t at; (at = __atomic_fetch_add(&shares->next, 1, __ATOMIC_RELAXED)) < shares->count;)
#else
    for (int64_t at; (at = shares->next++) < shares->count;)
#endif
        shares->one(shares->work, shares->bounds[at], shares->bounds[at + 1]);
}

static void do_shares(Shares *shares, uintptr_t parallel, int threads) {
#if defined(__GNUC__)
    if (parallel && threads > 1) {
        ((Parallel)parallel)(take_shares, shares, (unsigned)threads, 0);
        return;
    }
#endif
    (void)parallel, (void)threads;
    take_shares(shares);
}

/* Whether the bounds of `count` shares ascend from 0 to `last`. */
static int bounds_fit(const int64_t *bounds, int64_t count, int64_t last) {
    if (count < 1 || bounds[0] != 0 || bounds[count] != last) return 0;
    for (int64_t at = 0; at < count; at++)
        if (bounds[at] > bounds[at + 1]) return 0;
    return 1;
}
