/* Sums over rows of a table in training, and updates of its rows: rejoinder.encoders.nn.row_sums calls
   this, and says what it computes.

   All matrices are float32 with rows of `width`. Sums are worked out in shares, by several threads and
   without the interpreter's lock. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fast.h"
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
    float *out;          /* sums, or their mean squares */
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

static void square_share(void *data, int64_t first, int64_t last) {
    const Sums *work = data;
    float sum[WIDEST];
    for (int64_t at = first; at < last; at++) {
        sum_one(work, at, sum);
        work->out[at] = dot(sum, sum, work->width) / (float)work->width;
    }
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
    if (work->offsets[0] != 0 || work->offsets[work->sums] != places) return 0;
    for (int64_t at = 0; at < work->sums; at++)
        if (work->offsets[at] > work->offsets[at + 1]) return 0;
    for (int64_t at = 0; at < places; at++)
        if (work->places[at] < 0 || work->places[at] >= values) return 0;
    return 1;
}

typedef struct {
    Py_buffer values, places, offsets, bounds;
    Py_ssize_t width;
    unsigned long long parallel;
    int threads;
} Given;

static Sums read_given(const Given *given) {
    return (Sums){.values = given->values.buf, .places = given->places.buf, .offsets = given->offsets.buf,
                  .width = given->width, .sums = given->offsets.len / 8 - 1};
}

static int given_fits(const Given *given, const Sums *work) {
    return work->width > 0 && work->width <= WIDEST && work->sums >= 0 &&
           bounds_fit(given->bounds.buf, given->bounds.len / 8 - 1, work->sums) &&
           fits(work, given->values.len / (4 * work->width), given->places.len / 8);
}

/* Does the work if it `fits`, and gives the arrays back. */
static PyObject *done(Given *given, Sums *work, void (*one)(void *, int64_t, int64_t), int fits) {
    if (fits) {
        Shares shares = {one, work, given->bounds.buf, given->bounds.len / 8 - 1, 0};
        Py_BEGIN_ALLOW_THREADS
        do_shares(&shares, (uintptr_t)given->parallel, given->threads);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&given->values), PyBuffer_Release(&given->places);
    PyBuffer_Release(&given->offsets), PyBuffer_Release(&given->bounds);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "rows: arrays of these sizes, or ids, do not belong together");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *sum_rows(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    Py_buffer out;
    if (!PyArg_ParseTuple(arguments, "Kiy*ny*y*y*w*:sum_rows", &given.parallel, &given.threads, &given.bounds,
                          &given.width, &given.values, &given.places, &given.offsets, &out))
        return NULL;
    Sums work = read_given(&given);
    work.out = out.buf;
    int fits = given_fits(&given, &work) && out.len == work.sums * work.width * 4;
    PyObject *result = done(&given, &work, sum_share, fits);
    PyBuffer_Release(&out);
    return result;
}

static PyObject *mean_squares(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    Py_buffer out;
    if (!PyArg_ParseTuple(arguments, "Kiy*ny*y*y*w*:mean_squares", &given.parallel, &given.threads,
                          &given.bounds, &given.width, &given.values, &given.places, &given.offsets, &out))
        return NULL;
    Sums work = read_given(&given);
    work.out = out.buf;
    int fits = given_fits(&given, &work) && out.len == work.sums * 4;
    PyObject *result = done(&given, &work, square_share, fits);
    PyBuffer_Release(&out);
    return result;
}

static PyObject *move_rows(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    Py_buffer table, rows, squares;
    double rate, epsilon;
    if (!PyArg_ParseTuple(arguments, "Kiy*ny*y*y*w*y*w*dd:move_rows", &given.parallel, &given.threads,
                          &given.bounds, &given.width, &given.values, &given.places, &given.offsets, &table,
                          &rows, &squares, &rate, &epsilon))
        return NULL;
    Sums work = read_given(&given);
    work.table = table.buf, work.rows = rows.buf, work.rate = (float)rate, work.epsilon = (float)epsilon;
    work.squares = squares.len ? squares.buf : NULL;
    int fits = given_fits(&given, &work) && rows.len == work.sums * 8 &&
               (!squares.len || squares.len * work.width == table.len);
    for (int64_t at = 0; fits && at < work.sums; at++)
        fits = work.rows[at] >= 0 && work.rows[at] < table.len / (4 * work.width);
    PyObject *result = done(&given, &work, move_share, fits);
    PyBuffer_Release(&table), PyBuffer_Release(&rows), PyBuffer_Release(&squares);
    return result;
}

/* Sorts ids by their digits, the last ones first; each pass keeps the order of equal ones. Returns the
   array of the two, of `count` keys each, that holds the result. The id is the upper half of a key. */
static uint64_t *sort_keys(uint64_t *keys, uint64_t *other, int64_t count, uint64_t largest) {
    enum { BITS = 10 };
    for (int shift = 32; shift < 64 && (largest << 32) >> shift; shift += BITS) {
        int64_t starts[1 << BITS] = {0}, before = 0;
        for (int64_t at = 0; at < count; at++) starts[keys[at] >> shift & ((1 << BITS) - 1)]++;
        for (int digit = 0; digit < 1 << BITS; digit++) {
            int64_t here = starts[digit];
            starts[digit] = before;
            before += here;
        }
        for (int64_t at = 0; at < count; at++) other[starts[keys[at] >> shift & ((1 << BITS) - 1)]++] = keys[at];
        uint64_t *sorted = other;
        other = keys, keys = sorted;
    }
    return keys;
}

/* Writes the different ids in ascending order, their owners, and where those of each id begin. Returns
   the number of different ids, -1 if an id is out of bounds, or -2 without memory. */
static int64_t group_ids(const int64_t *ids, const int64_t *owners, int64_t count, int64_t *rows,
                         int64_t *grouped, int64_t *offsets) {
    uint64_t *keys = malloc(2 * (size_t)(count + 1) * sizeof *keys), largest = 0;
    if (!keys) return -2;
    for (int64_t at = 0; at < count; at++) {
        largest |= (uint64_t)ids[at];
        keys[at] = (uint64_t)ids[at] << 32 | (uint64_t)at;
    }
    int64_t found = -1;
    if (largest <= INT32_MAX) {
        const uint64_t *sorted = sort_keys(keys, keys + count, count, largest);
        found = 0;
        for (int64_t at = 0; at < count; at++) {
            int64_t id = (int64_t)(sorted[at] >> 32);
            if (!at || id != rows[found - 1]) rows[found] = id, offsets[found++] = at;
            grouped[at] = owners[sorted[at] & UINT32_MAX];
        }
        offsets[found] = count;
    }
    free(keys);
    return found;
}

static PyObject *group(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer ids, owners, rows, grouped, offsets;
    if (!PyArg_ParseTuple(arguments, "y*y*w*w*w*:group", &ids, &owners, &rows, &grouped, &offsets)) return NULL;
    int64_t count = ids.len / 8, found = -1;
    if (count <= INT32_MAX && owners.len == ids.len && rows.len == ids.len && grouped.len == ids.len &&
        offsets.len == ids.len + 8) {
        Py_BEGIN_ALLOW_THREADS
        found = group_ids(ids.buf, owners.buf, count, rows.buf, grouped.buf, offsets.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&ids), PyBuffer_Release(&owners), PyBuffer_Release(&rows);
    PyBuffer_Release(&grouped), PyBuffer_Release(&offsets);
    if (found == -2) return PyErr_NoMemory();
    if (found == -1) {
        PyErr_SetString(PyExc_ValueError, "group: arrays of these sizes, or ids, do not belong together");
        return NULL;
    }
    return PyLong_FromLongLong(found);
}

static PyMethodDef methods[] = {
    {"group", group, METH_VARARGS, "group(ids, owners, rows, grouped, offsets)"},
    {"sum_rows", sum_rows, METH_VARARGS,
     "sum_rows(parallel, threads, bounds, width, values, places, offsets, out)"},
    {"mean_squares", mean_squares, METH_VARARGS,
     "mean_squares(parallel, threads, bounds, width, values, places, offsets, out)"},
    {"move_rows", move_rows, METH_VARARGS,
     "move_rows(parallel, threads, bounds, width, values, places, offsets, table, rows, squares, rate, epsilon)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_rows", "Sums over rows of a table, and updates of its rows.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__rows(void) { return PyModule_Create(&module); }
