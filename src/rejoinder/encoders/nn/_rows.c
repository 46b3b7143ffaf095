/* Sums over rows of a table in training, and updates of its rows: rejoinder.encoders.nn.layers calls
   this, and says what it computes.

   All matrices are float32 with rows of `width`. Sums are worked out in shares, by several threads and
   without the interpreter's lock. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fast.h"
#include "module.h"
#include "offsets.h"
#include "shares.h"
#include "vectors.h"

enum {
    AHEAD = 6, /* rows fetched before they are needed; memory is slower than the sums */
    WIDEST = 1 << 14 /* entries of a row: 64 kB of the stack, the limit of configs */
};

typedef struct {
    const float *values; /* the rows that are summed */
    const int64_t *places, *offsets; /* sum i is of the rows places[offsets[i]] to places[offsets[i + 1] - 1] */
    int64_t width, sums;
    float *out;          /* the sums, or NULL where rows are moved */
    float *table;        /* the rows that are moved against sums */
    const int64_t *rows; /* one for each sum */
    float *squares;      /* Adagrad's accumulators, one for each row of the table, or NULL */
    float rate, epsilon;
} Sums;

FASTEST static void add(const float *restrict row, float *restrict sum, int64_t width) {
    for (int64_t at = 0; at < width; at++) sum[at] += row[at];
}

FASTEST static void subtract(float *restrict row, const float *restrict gradient, float factor, int64_t width) {
    for (int64_t at = 0; at < width; at++) row[at] -= factor * gradient[at];
}

static inline void sum_one(const Sums *work, int64_t number, float *sum) {
    int64_t end = work->offsets[work->sums];
    memset(sum, 0, (size_t)work->width * sizeof *sum);
    for (int64_t at = work->offsets[number]; at < work->offsets[number + 1]; at++) {
        if (at + AHEAD < end) {
            const float *next = work->values + work->places[at + AHEAD] * work->width;
            for (int64_t value = 0; value < work->width; value += 16) FETCH(next + value);
        }
        add(work->values + work->places[at] * work->width, sum, work->width);
    }
}

static void sum_share(void *data, int64_t first, int64_t last) {
    const Sums *work = data;
    for (int64_t at = first; at < last; at++) sum_one(work, at, work->out + at * work->width);
}

static void move_share(void *data, int64_t first, int64_t last) {
    const Sums *work = data;
    float sum[WIDEST];
    for (int64_t at = first; at < last; at++) {
        if (at + AHEAD < last) {
            float *next = work->table + work->rows[at + AHEAD] * work->width;
            for (int64_t value = 0; value < work->width; value += 16) FETCH_TO_WRITE(next + value);
        }
        sum_one(work, at, sum);
        int64_t row = work->rows[at];
        float factor = work->rate;
        if (work->squares) {
            work->squares[row] += dot(sum, sum, work->width) / (float)work->width;
            factor /= sqrtf(work->squares[row]) + work->epsilon;
        }
        subtract(work->table + row * work->width, sum, factor, work->width);
    }
}

/* Whether all that is named lies within the arrays. */
static int fits(const Sums *work, int64_t values, int64_t places) {
    if (!are_offsets(work->offsets, work->sums, places)) return 0;
    for (int64_t at = 0; at < places; at++)
        if (work->places[at] < 0 || work->places[at] >= values) return 0;
    return 1;
}

/* Does the work if the arrays fit each other, and gives back the first three. */
static PyObject *done(Sums *work, Py_buffer *arrays, void (*one)(void *, int64_t, int64_t), int right,
                      unsigned long long parallel, int threads) {
    right = right && fits(work, arrays[0].len / (4 * work->width), arrays[1].len / 8);
    if (right) {
        Py_BEGIN_ALLOW_THREADS
        do_shares(one, work, work->sums, parallel, threads);
        Py_END_ALLOW_THREADS
    }
    for (int at = 0; at < 3; at++) PyBuffer_Release(arrays + at);
    if (!right) return refused("rows");
    Py_RETURN_NONE;
}

static Sums sums_of(const Py_buffer *arrays, Py_ssize_t width) {
    return (Sums){.values = arrays[0].buf, .places = arrays[1].buf, .offsets = arrays[2].buf,
                  .width = width, .sums = arrays[2].len / 8 - 1};
}

static PyObject *sum_rows(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer arrays[3], out;
    Py_ssize_t width;
    unsigned long long parallel;
    int threads;
    if (!PyArg_ParseTuple(arguments, "Kiny*y*y*w*:sum_rows", &parallel, &threads, &width, arrays, arrays + 1,
                          arrays + 2, &out))
        return NULL;
    Sums work = sums_of(arrays, width);
    work.out = out.buf;
    int right = width > 0 && width <= PTRDIFF_MAX / 4 && work.sums >= 0 && out.len % (width * 4) == 0 &&
                out.len / (width * 4) == work.sums;
    PyObject *result = done(&work, arrays, sum_share, right, parallel, threads);
    PyBuffer_Release(&out);
    return result;
}

static PyObject *move_rows(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer arrays[3], table, rows, squares;
    Py_ssize_t width;
    unsigned long long parallel;
    int threads;
    double rate, epsilon;
    if (!PyArg_ParseTuple(arguments, "Kiny*y*y*w*y*w*dd:move_rows", &parallel, &threads, &width, arrays, arrays + 1,
                          arrays + 2, &table, &rows, &squares, &rate, &epsilon))
        return NULL;
    Sums work = sums_of(arrays, width);
    work.table = table.buf, work.rows = rows.buf, work.rate = (float)rate, work.epsilon = (float)epsilon;
    work.squares = squares.len ? squares.buf : NULL;
    int right = width > 0 && width <= WIDEST && work.sums >= 0 && rows.len == work.sums * 8 &&
                (!squares.len || squares.len * width == table.len);
    for (int64_t at = 0; right && at < work.sums; at++)
        right = work.rows[at] >= 0 && work.rows[at] < table.len / (4 * width);
    PyObject *result = done(&work, arrays, move_share, right, parallel, threads);
    PyBuffer_Release(&table), PyBuffer_Release(&rows), PyBuffer_Release(&squares);
    return result;
}

static PyMethodDef methods[] = {
    {"sum_rows", sum_rows, METH_VARARGS, "sum_rows(parallel, threads, width, values, places, offsets, out)"},
    {"move_rows", move_rows, METH_VARARGS,
     "move_rows(parallel, threads, width, values, places, offsets, table, rows, squares, rate, epsilon)"},
    {NULL, NULL, 0, NULL},
};

MODULE(_rows, "Sums over rows of a table, and updates of its rows.")
