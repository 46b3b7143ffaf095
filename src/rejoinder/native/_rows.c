/* Sums over rows of a table in training, and updates of its rows: rejoinder.encoders.row_sums calls
   this, and says what it computes.

   A call does a share of the work, from `first` to `last`, so that threads can divide it. It works
   without the interpreter's lock. All matrices are float32 with rows of `width`. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* On Linux the loader picks the version for the processor at hand. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)
#define FASTEST __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define FASTEST
#endif
#if defined(__GNUC__)
#define FETCH(address) __builtin_prefetch(address)
#define FETCH_TO_WRITE(address) __builtin_prefetch(address, 1)
#else
#define FETCH(address) ((void)(address))
#define FETCH_TO_WRITE(address) ((void)(address))
#endif

enum {
    AHEAD = 6, /* rows fetched before they are needed; memory is slower than the sums */
    LANES = 16 /* partial sums of squares, which the compiler keeps in vector registers */
};

typedef struct {
    const float *values; /* the rows that are summed */
    const int64_t *places, *offsets; /* sum i is of the rows places[offsets[i]] to places[offsets[i + 1] - 1] */
    int64_t width, first, last;
} Sums;

FASTEST static void add(const float *restrict row, float *restrict sum, int64_t width) {
    for (int64_t at = 0; at < width; at++) sum[at] += row[at];
}

FASTEST static float mean_square(const float *restrict row, int64_t width) {
    float parts[LANES] = {0}, sum = 0;
    int64_t at = 0;
    for (; at + LANES <= width; at += LANES)
        for (int lane = 0; lane < LANES; lane++) parts[lane] += row[at + lane] * row[at + lane];
    for (; at < width; at++) sum += row[at] * row[at];
    for (int lane = 0; lane < LANES; lane++) sum += parts[lane];
    return sum / (float)width;
}

FASTEST static void subtract(float *restrict row, const float *restrict gradient, float factor, int64_t width) {
    for (int64_t at = 0; at < width; at++) row[at] -= factor * gradient[at];
}

static inline void sum_one(const Sums *work, int64_t number, float *sum) {
    int64_t end = work->offsets[work->last];
    memset(sum, 0, (size_t)work->width * sizeof *sum);
    for (int64_t at = work->offsets[number]; at < work->offsets[number + 1]; at++) {
        if (at + AHEAD < end) {
            const float *next = work->values + work->places[at + AHEAD] * work->width;
            for (int64_t value = 0; value < work->width; value += 16) FETCH(next + value);
        }
        add(work->values + work->places[at] * work->width, sum, work->width);
    }
}

/* Whether the share and all that it names lie within the arrays. */
static int fits(const Sums *work, int64_t values, int64_t places, int64_t sums) {
    if (work->width <= 0 || work->first < 0 || work->first > work->last || work->last > sums) return 0;
    if (work->offsets[work->first] < 0 || work->offsets[work->last] > places) return 0;
    for (int64_t at = work->first; at < work->last; at++)
        if (work->offsets[at] > work->offsets[at + 1]) return 0;
    for (int64_t at = work->offsets[work->first]; at < work->offsets[work->last]; at++)
        if (work->places[at] < 0 || work->places[at] >= values) return 0;
    return 1;
}

typedef struct {
    Py_buffer values, places, offsets;
    Sums work;
    int fits;
} Given;

static void read_given(Given *given, Py_ssize_t width, Py_ssize_t first, Py_ssize_t last) {
    given->work = (Sums){given->values.buf, given->places.buf, given->offsets.buf, width, first, last};
    int64_t sums = given->offsets.len / 8 - 1;
    given->fits = width > 0 && sums >= 0 &&
                  fits(&given->work, given->values.len / (4 * width), given->places.len / 8, sums);
}

static PyObject *finished(Given *given, int fits, int memory) {
    PyBuffer_Release(&given->values), PyBuffer_Release(&given->places), PyBuffer_Release(&given->offsets);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "rows: arrays of these sizes, or ids, do not belong together");
        return NULL;
    }
    if (!memory) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *sum_rows(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    Py_buffer out;
    Py_ssize_t width, first, last;
    if (!PyArg_ParseTuple(arguments, "nnny*y*y*w*:sum_rows", &width, &first, &last, &given.values,
                          &given.places, &given.offsets, &out))
        return NULL;
    read_given(&given, width, first, last);
    int fits = given.fits && out.len == (given.offsets.len / 8 - 1) * width * 4;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        for (int64_t at = first; at < last; at++) sum_one(&given.work, at, (float *)out.buf + at * width);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&out);
    return finished(&given, fits, 1);
}

static PyObject *mean_squares(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    Py_buffer out;
    Py_ssize_t width, first, last;
    if (!PyArg_ParseTuple(arguments, "nnny*y*y*w*:mean_squares", &width, &first, &last, &given.values,
                          &given.places, &given.offsets, &out))
        return NULL;
    read_given(&given, width, first, last);
    int fits = given.fits && out.len == (given.offsets.len / 8 - 1) * 4;
    float *sum = fits ? malloc((size_t)width * sizeof *sum) : NULL;
    if (sum) {
        Py_BEGIN_ALLOW_THREADS
        for (int64_t at = first; at < last; at++) {
            sum_one(&given.work, at, sum);
            ((float *)out.buf)[at] = mean_square(sum, width);
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&out);
    int memory = sum != NULL;
    free(sum);
    return finished(&given, fits, memory);
}

static void move_all(const Sums *work, float *table, const int64_t *rows, const float *factors, float *sum) {
    for (int64_t at = work->first; at < work->last; at++) {
        if (at + AHEAD < work->last) {
            float *next = table + rows[at + AHEAD] * work->width;
            for (int64_t value = 0; value < work->width; value += 16) FETCH_TO_WRITE(next + value);
        }
        sum_one(work, at, sum);
        subtract(table + rows[at] * work->width, sum, factors[at], work->width);
    }
}

static PyObject *move_rows(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    Py_buffer table, rows, factors;
    Py_ssize_t width, first, last;
    if (!PyArg_ParseTuple(arguments, "nnny*y*y*w*y*y*:move_rows", &width, &first, &last, &given.values,
                          &given.places, &given.offsets, &table, &rows, &factors))
        return NULL;
    read_given(&given, width, first, last);
    int64_t sums = given.offsets.len / 8 - 1;
    int fits = given.fits && rows.len == sums * 8 && factors.len == sums * 4;
    for (int64_t at = first; fits && at < last; at++) {
        int64_t row = ((const int64_t *)rows.buf)[at];
        fits = row >= 0 && row < table.len / (4 * width);
    }
    float *sum = fits ? malloc((size_t)width * sizeof *sum) : NULL;
    if (sum) {
        Py_BEGIN_ALLOW_THREADS
        move_all(&given.work, table.buf, rows.buf, factors.buf, sum);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&table), PyBuffer_Release(&rows), PyBuffer_Release(&factors);
    int memory = sum != NULL;
    free(sum);
    return finished(&given, fits, memory);
}

static PyMethodDef methods[] = {
    {"sum_rows", sum_rows, METH_VARARGS, "sum_rows(width, first, last, values, places, offsets, out)"},
    {"mean_squares", mean_squares, METH_VARARGS, "mean_squares(width, first, last, values, places, offsets, out)"},
    {"move_rows", move_rows, METH_VARARGS,
     "move_rows(width, first, last, values, places, offsets, table, rows, factors)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_rows", "Sums over rows of a table, and updates of its rows.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__rows(void) { return PyModule_Create(&module); }
