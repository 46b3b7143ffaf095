/* Arithmetic on vectors of float32, which several kernels share. Include _fast.h before. */
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define SHARED __attribute__((unused)) /* no kernel uses all of it */
#else
#define SHARED
#endif

enum { LANES = 16 }; /* partial results, which the compiler keeps in vector registers */

/* exp of x <= 0, to 1e-7 of its value, and 0 below the smallest normal number. Written so that the
   compiler computes many at once. */
SHARED static inline float exponential(float x) {
    float clamped = x > -87.0f ? x : -87.0f;
    float shifted = clamped * 1.44269504f + 12582912.0f; /* the low bits are the rounded integer */
    float whole = shifted - 12582912.0f;
    float rest = (clamped - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float sum = 1.98756915e-4f;
    sum = sum * rest + 1.39819995e-3f;
    sum = sum * rest + 8.33345193e-3f;
    sum = sum * rest + 4.16657962e-2f;
    sum = sum * rest + 1.66666654e-1f;
    sum = sum * rest + 5.00000012e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    int32_t bits, power = (int32_t)whole;
    memcpy(&bits, &sum, 4);
    bits += power * (1 << 23);
    memcpy(&sum, &bits, 4);
    return x > -87.0f ? sum : 0.0f;
}

SHARED FASTEST static void from_bfloat16(const uint16_t *restrict from, float *restrict to, int64_t count) {
    uint32_t *restrict bits = (uint32_t *)to;
    for (int64_t at = 0; at < count; at++) bits[at] = (uint32_t)from[at] << 16;
}

/* Rounds to even; a value that is no number stays one. */
SHARED FASTEST static void to_bfloat16(const float *restrict from, uint16_t *restrict to, int64_t count) {
    const uint32_t *restrict bits = (const uint32_t *)from;
    for (int64_t at = 0; at < count; at++) {
        uint32_t value = bits[at], rounded = value + 0x7FFF + ((value >> 16) & 1);
        to[at] = (value & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : (uint16_t)(rounded >> 16);
    }
}

SHARED FASTEST static void multiply(float *restrict values, float factor, int64_t count) {
    for (int64_t at = 0; at < count; at++) values[at] *= factor;
}

SHARED FASTEST static float dot(const float *restrict left, const float *restrict right, int64_t width) {
    float parts[LANES] = {0}, sum = 0;
    int64_t at = 0;
    for (; at + LANES <= width; at += LANES)
        for (int lane = 0; lane < LANES; lane++) parts[lane] += left[at + lane] * right[at + lane];
    for (; at < width; at++) sum += left[at] * right[at];
    for (int lane = 0; lane < LANES; lane++) sum += parts[lane];
    return sum;
}
