/* Work in shares, which the threads of torch's OpenMP library take one after the other. They are awake
   between torch's operations, and need no other pool. Python passes the address of GOMP_parallel, or 0. */
#include <stdint.h>

enum { SHARE = 16 }; /* rows; few, since the rows of frequent words take much longer than others */

typedef struct {
    void (*one)(void *work, int64_t first, int64_t last);
    void *work;
    int64_t count, next;
} Shares;

static void take_shares(void *data) {
    Shares *shares = data;
    for (int64_t at; (at = __atomic_fetch_add(&shares->next, SHARE, __ATOMIC_RELAXED)) < shares->count;)
        shares->one(shares->work, at, at + SHARE < shares->count ? at + SHARE : shares->count);
}

/* Calls `one` for all of `count` rows of the work. */
static void do_shares(void (*one)(void *, int64_t, int64_t), void *work, int64_t count,
                      unsigned long long parallel, int threads) {
    Shares shares = {one, work, count, 0};
    if (parallel && threads > 1)
        ((void (*)(void (*)(void *), void *, unsigned, unsigned))(uintptr_t)parallel)(
            take_shares, &shares, (unsigned)threads, 0);
    else take_shares(&shares);
}
