/* Sums over rows of a table in training, and updates of its rows: rejoinder.encoders.row_sums calls
   this, and says what it computes.

   All matrices are float32 with rows of `width`. Sums are worked out in shares, by several threads and
   without the interpreter's lock. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_fast.h"
#include "_shares.h"

enum {
    AHEAD = 6, /* rows fetched before they are needed; memory is slower than the sums */
    LANES = 16, /* partial sums of products, which the compiler keeps in vector registers */
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

FASTEST static float dot(const float *restrict left, const float *restrict right, int64_t width) {
    float parts[LANES] = {0}, sum = 0;
    int64_t at = 0;
    for (; at + LANES <= width; at += LANES)
        for (int lane = 0; lane < LANES; lane++) parts[lane] += left[at + lane] * right[at + lane];
    for (; at < width; at++) sum += left[at] * right[at];
    for (int lane = 0; lane < LANES; lane++) sum += parts[lane];
    return sum;
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

typedef struct {
    const float *gradient, *rows, *factors;
    float *out;
    int64_t width;
} Units;

FASTEST static void across(const float *restrict gradient, const float *restrict row, float along,
                           float factor, float *restrict out, int64_t width) {
    for (int64_t at = 0; at < width; at++) out[at] = (gradient[at] - along * row[at]) * factor;
}

static void unit_share(void *data, int64_t first, int64_t last) {
    const Units *work = data;
    for (int64_t at = first; at < last; at++) {
        const float *gradient = work->gradient + at * work->width, *row = work->rows + at * work->width;
        float along = dot(gradient, row, work->width);
        across(gradient, row, along, work->factors[at], work->out + at * work->width, work->width);
    }
}

static PyObject *unit_gradients(PyObject *Py_UNUSED(module), PyObject *arguments) {
    unsigned long long parallel;
    int threads;
    Py_buffer bounds, gradient, rows, factors, out;
    Py_ssize_t width;
    if (!PyArg_ParseTuple(arguments, "Kiy*ny*y*y*w*:unit_gradients", &parallel, &threads, &bounds, &width,
                          &gradient, &rows, &factors, &out))
        return NULL;
    int64_t count = factors.len / 4;
    Units work = {gradient.buf, rows.buf, factors.buf, out.buf, width};
    int fits = width > 0 && gradient.len == count * width * 4 && rows.len == gradient.len &&
               out.len == gradient.len && bounds_fit(bounds.buf, bounds.len / 8 - 1, count);
    if (fits) {
        Shares shares = {unit_share, &work, bounds.buf, bounds.len / 8 - 1, 0};
        Py_BEGIN_ALLOW_THREADS
        do_shares(&shares, (uintptr_t)parallel, threads);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&bounds), PyBuffer_Release(&gradient), PyBuffer_Release(&rows);
    PyBuffer_Release(&factors), PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "unit_gradients: arrays of these sizes do not belong together");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"sum_rows", sum_rows, METH_VARARGS,
     "sum_rows(parallel, threads, bounds, width, values, places, offsets, out)"},
    {"mean_squares", mean_squares, METH_VARARGS,
     "mean_squares(parallel, threads, bounds, width, values, places, offsets, out)"},
    {"move_rows", move_rows, METH_VARARGS,
     "move_rows(parallel, threads, bounds, width, values, places, offsets, table, rows, squares, rate, epsilon)"},
    {"unit_gradients", unit_gradients, METH_VARARGS,
     "unit_gradients(parallel, threads, bounds, width, gradient, rows, factors, out)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_rows", "Sums over rows of a table, and updates of its rows.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__rows(void) { return PyModule_Create(&module); }
