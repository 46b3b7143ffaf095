/* Softmax of the scores of a batch, and its gradient: rejoinder.training.losses.in_batch calls this, and
   says what it computes. Scores and gradients are float32.

   Rows are worked out in shares, by several threads and without the interpreter's lock. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fast.h"
#include "module.h"
#include "shares.h"
#include "vectors.h"

typedef struct {
    const float *cosines;
    float *gradients;
    int64_t columns, backwards; /* candidates, and how many of them have a column sum */
    float scale;
    const float *column_sums; /* logarithms, or NULL */
    int64_t own;              /* the right candidate of row 0 */
    float *losses, *alongs;
    uint8_t *correct;
    const float *row_factors, *column_factors; /* of the cosines given, or NULL */
    float *room; /* with factors, for each share: sums by candidate, and a row of cosines */
} Work;

/* exp of x <= 0, to 1e-7 of its value, and 0 below the smallest normal number. Written so that the
   compiler computes many at once. */
static inline float exponential(float x) {
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

FASTEST static void multiply(float *restrict values, float factor, int64_t count) {
    for (int64_t at = 0; at < count; at++) values[at] *= factor;
}

FASTEST static float largest(const float *restrict values, int64_t count) {
    float parts[LANES], found = -INFINITY;
    for (int lane = 0; lane < LANES; lane++) parts[lane] = -INFINITY;
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        for (int lane = 0; lane < LANES; lane++)
            parts[lane] = values[at + lane] > parts[lane] ? values[at + lane] : parts[lane];
    for (; at < count; at++) found = values[at] > found ? values[at] : found;
    for (int lane = 0; lane < LANES; lane++) found = parts[lane] > found ? parts[lane] : found;
    return found;
}

/* Writes exp(scale * (value - peak)) and returns the sum. */
FASTEST static float exponentials(const float *restrict values, float *restrict out, int64_t count,
                                  float scale, float peak) {
    float parts[LANES] = {0}, sum = 0;
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            float power = exponential(scale * (values[at + lane] - peak));
            out[at + lane] = power;
            parts[lane] += power;
        }
    for (; at < count; at++) {
        out[at] = exponential(scale * (values[at] - peak));
        sum += out[at];
    }
    for (int lane = 0; lane < LANES; lane++) sum += parts[lane];
    return sum;
}

FASTEST static void add_backwards(const float *restrict values, const float *restrict sums,
                                  float *restrict out, int64_t count, float scale) {
    for (int64_t at = 0; at < count; at++) {
        float power = scale * values[at] - sums[at];
        out[at] += exponential(power < 0 ? power : 0);
    }
}

FASTEST static void scale_row(const float *restrict values, const float *restrict factors, float factor,
                              float *restrict out, int64_t count) {
    for (int64_t at = 0; at < count; at++) out[at] = values[at] * (factor * factors[at]);
}

/* Adds products to the sums by candidate, and takes the gradient back to the values before scaling. */
FASTEST static void unscale_row(float *restrict gradient, const float *restrict cosines, const float *restrict factors,
                                float factor, float *restrict sums, int64_t count) {
    for (int64_t at = 0; at < count; at++) {
        sums[at] += gradient[at] * cosines[at];
        gradient[at] *= factor * factors[at];
    }
}

/* Whether any value is not finite. */
FASTEST static int strange(const float *restrict values, int64_t count) {
    float sum = 0, parts[LANES] = {0};
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        for (int lane = 0; lane < LANES; lane++) parts[lane] += values[at + lane] * 0.0f;
    for (; at < count; at++) sum += values[at] * 0.0f;
    for (int lane = 0; lane < LANES; lane++) sum += parts[lane];
    return sum != 0.0f;
}

static void one_row(const Work *work, int64_t row, float *sums) {
    int64_t columns = work->columns, own = work->own + row;
    const float *values = work->cosines + row * columns;
    float *gradient = work->gradients + row * columns;
    if (strange(values, columns)) { /* the caller looks at losses before it uses gradients */
        work->losses[row] = work->alongs[row] = NAN;
        work->correct[row] = 0;
        memset(gradient, 0, (size_t)columns * sizeof *gradient);
        return;
    }
    float *cosines = NULL;
    if (sums) {
        cosines = sums + columns;
        scale_row(values, work->column_factors, work->row_factors[row], cosines, columns);
        values = cosines;
    }
    float peak = largest(values, columns);
    int64_t best = 0;
    while (values[best] < peak) best++;
    float total = exponentials(values, gradient, columns, work->scale, peak);
    float directions = work->column_sums ? 2.0f : 1.0f;
    multiply(gradient, 1.0f / total, columns);
    if (work->column_sums) add_backwards(values, work->column_sums, gradient, work->backwards, work->scale);
    gradient[own] -= directions;
    work->losses[row] = logf(total) + work->scale * (peak - directions * values[own]);
    work->alongs[row] = dot(gradient, values, columns);
    work->correct[row] = best == own;
    if (sums)
        unscale_row(gradient, cosines, work->column_factors, work->row_factors[row], sums, columns);
}

static void softmax_share(void *data, int64_t first, int64_t last) {
    const Work *work = data;
    float *sums = work->row_factors ? work->room + first / SHARE * 2 * work->columns : NULL;
    if (sums) memset(sums, 0, (size_t)work->columns * sizeof *sums);
    for (int64_t row = first; row < last; row++) one_row(work, row, sums);
}

static PyObject *softmax(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer cosines, sums, gradients, losses, alongs, correct, row_factors, column_factors, room;
    unsigned long long parallel;
    int threads;
    Py_ssize_t columns, own;
    double scale;
    if (!PyArg_ParseTuple(arguments, "Kinndy*y*w*w*w*w*y*y*w*:softmax", &parallel, &threads, &columns, &own, &scale,
                          &cosines, &sums, &gradients, &losses, &alongs, &correct, &row_factors,
                          &column_factors, &room))
        return NULL;
    int64_t rows = correct.len;
    Work work = {cosines.buf, gradients.buf, columns, sums.len / 4, (float)scale, sums.len ? sums.buf : NULL,
                 own, losses.buf, alongs.buf, correct.buf, row_factors.len ? row_factors.buf : NULL,
                 column_factors.buf, room.buf};
    int right = columns > 0 && columns <= PTRDIFF_MAX / 4 && cosines.len % (columns * 4) == 0 &&
                cosines.len / (columns * 4) == rows && gradients.len == cosines.len &&
                losses.len == rows * 4 && alongs.len == rows * 4 && own >= 0 && own <= columns - rows &&
                work.backwards <= columns &&
                (!row_factors.len || (row_factors.len == rows * 4 && column_factors.len == columns * 4 &&
                                      room.len == (rows + SHARE - 1) / SHARE * 2 * columns * 4));
    if (right) {
        Py_BEGIN_ALLOW_THREADS
        do_shares(softmax_share, &work, rows, parallel, threads);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&cosines), PyBuffer_Release(&sums), PyBuffer_Release(&gradients);
    PyBuffer_Release(&losses), PyBuffer_Release(&alongs), PyBuffer_Release(&correct);
    PyBuffer_Release(&row_factors), PyBuffer_Release(&column_factors), PyBuffer_Release(&room);
    if (!right) return refused("softmax");
    Py_RETURN_NONE;
}

typedef struct {
    const float *cosines;
    int64_t rows, columns;
    float scale;
    float *sums;
    const float *row_factors, *column_factors; /* of the cosines given; all 1 where there are none */
} Columns;

/* The logarithm of the sum of exp(scale * cosine) of SHARE columns or fewer. A row may have a factor, which
   scales its cosines; that of a column scales the result. */
FASTEST static void log_sums_share(void *data, int64_t first, int64_t last) {
    const Columns *work = data;
    float peaks[SHARE], sums[SHARE] = {0};
    int64_t width = last - first;
    for (int64_t at = 0; at < SHARE; at++) peaks[at] = -INFINITY;
    for (int64_t row = 0; row < work->rows; row++) {
        const float *values = work->cosines + row * work->columns + first;
        float factor = work->row_factors ? work->row_factors[row] : 1.0f;
        for (int64_t at = 0; at < width; at++) {
            float value = values[at] * factor;
            peaks[at] = value > peaks[at] ? value : peaks[at];
        }
    }
    float scales[SHARE];
    for (int64_t at = 0; at < width; at++)
        scales[at] = work->column_factors ? work->scale * work->column_factors[first + at] : work->scale;
    for (int64_t row = 0; row < work->rows; row++) {
        const float *values = work->cosines + row * work->columns + first;
        float factor = work->row_factors ? work->row_factors[row] : 1.0f;
        for (int64_t at = 0; at < width; at++) { /* rounding may differ from that of the peak */
            float power = scales[at] * (values[at] * factor - peaks[at]);
            sums[at] += exponential(power < 0 ? power : 0);
        }
    }
    for (int64_t at = 0; at < width; at++) work->sums[first + at] = logf(sums[at]) + scales[at] * peaks[at];
}

static PyObject *log_sums(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer cosines, sums, row_factors, column_factors;
    unsigned long long parallel;
    int threads;
    Py_ssize_t columns;
    double scale;
    if (!PyArg_ParseTuple(arguments, "Kindy*w*y*y*:log_sums", &parallel, &threads, &columns, &scale, &cosines, &sums,
                          &row_factors, &column_factors))
        return NULL;
    int right = columns > 0 && columns <= PTRDIFF_MAX / 4 && cosines.len % (columns * 4) == 0 &&
                sums.len <= columns * 4;
    int64_t rows = right ? cosines.len / (columns * 4) : 0;
    right = right && (!row_factors.len || (row_factors.len == rows * 4 && column_factors.len == columns * 4));
    Columns work = {cosines.buf, rows, columns, (float)scale, sums.buf, row_factors.len ? row_factors.buf : NULL,
                    row_factors.len ? column_factors.buf : NULL};
    if (right) {
        Py_BEGIN_ALLOW_THREADS
        do_shares(log_sums_share, &work, sums.len / 4, parallel, threads);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&cosines), PyBuffer_Release(&sums);
    PyBuffer_Release(&row_factors), PyBuffer_Release(&column_factors);
    if (!right) return refused("log_sums");
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"softmax", softmax, METH_VARARGS,
     "softmax(parallel, threads, columns, own, scale, cosines, sums, gradients, losses, alongs, correct, "
     "row factors, column factors, room)"},
    {"log_sums", log_sums, METH_VARARGS,
     "log_sums(parallel, threads, columns, scale, cosines, sums, row factors, column factors)"},
    {NULL, NULL, 0, NULL},
};

MODULE(_softmax, "Softmax of the scores of a batch.")
