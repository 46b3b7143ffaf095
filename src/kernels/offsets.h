/* Offsets of `count` lists in a flat array of `total` values: whether they lie in it. */
#include <stdint.h>

static int are_offsets(const int64_t *offsets, int64_t count, int64_t total) {
    if (count < 0 || offsets[0] != 0 || offsets[count] != total) return 0;
    for (int64_t at = 0; at < count; at++)
        if (offsets[at] > offsets[at + 1]) return 0;
    return 1;
}
