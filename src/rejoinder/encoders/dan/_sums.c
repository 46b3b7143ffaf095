/* Sums of rows of a table, and rows of length 1: rejoinder.encoders.layers calls this, and says what it
   computes.

   Rows of a table are float32, float16, or int8 with a float32 scale each; all others are float32.
   Both are worked out without the interpreter's lock. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fast.h"
#include "module.h"
#include "offsets.h"
#include "vectors.h"

enum { AHEAD = 6 }; /* rows fetched before they are needed; memory is slower than the sums */

static int is_width(Py_ssize_t width) { return width > 0 && width < (Py_ssize_t)1 << 40; } /* no product overflows */

typedef struct {
    const char *table;
    const float *scales;
    const int32_t *ids;
    const int64_t *offsets;
    float *sums;
    int64_t sentences, width, row_bytes;
    double power;
} Work;

static inline void fetch(const Work *work, int64_t at) {
    if (at < work->offsets[work->sentences]) {
        const char *row = work->table + (int64_t)work->ids[at] * work->row_bytes;
        for (int64_t line = 0; line < work->row_bytes; line += 64) FETCH(row + line);
    }
}

FASTEST static void add_float(const char *row, float *restrict sums, int64_t width) {
    const float *restrict values = (const float *)row;
    for (int64_t at = 0; at < width; at++) sums[at] += values[at];
}

FASTEST static void add_half(const char *row, float *restrict sums, int64_t width) {
    const uint16_t *restrict values = (const uint16_t *)row;
    for (int64_t at = 0; at < width; at++) {
        /* exact for finite halves: the exponent is moved by a product with 2 to the 112th */
        uint32_t bits = (uint32_t)(values[at] & 0x7FFF) << 13;
        float value;
        memcpy(&value, &bits, 4);
        value *= 0x1p112f;
        memcpy(&bits, &value, 4);
        bits |= (uint32_t)(values[at] & 0x8000) << 16;
        memcpy(&value, &bits, 4);
        sums[at] += value;
    }
}

FASTEST static void add_int8(const char *row, float scale, float *restrict sums, int64_t width) {
    const int8_t *restrict values = (const int8_t *)row;
    for (int64_t at = 0; at < width; at++) sums[at] += scale * (float)values[at];
}

FASTEST static void divide(float *restrict values, float divisor, int64_t width) {
    for (int64_t at = 0; at < width; at++) values[at] /= divisor;
}

static void sum_all(const Work *work, char kind) {
    for (int64_t sentence = 0; sentence < work->sentences; sentence++) {
        float *sums = work->sums + sentence * work->width;
        memset(sums, 0, (size_t)work->width * sizeof *sums);
        for (int64_t at = work->offsets[sentence]; at < work->offsets[sentence + 1]; at++) {
            fetch(work, at + AHEAD);
            const char *row = work->table + (int64_t)work->ids[at] * work->row_bytes;
            if (kind == 'f') add_float(row, sums, work->width);
            else if (kind == 'e') add_half(row, sums, work->width);
            else add_int8(row, work->scales[work->ids[at]], sums, work->width);
        }
        int64_t count = work->offsets[sentence + 1] - work->offsets[sentence];
        if (count > 1 && work->power != 0) divide(sums, (float)pow((double)count, work->power), work->width);
    }
}

FASTEST static void scale(const float *restrict row, float factor, float *restrict out, int64_t width) {
    for (int64_t at = 0; at < width; at++) out[at] = row[at] * factor;
}

/* Returns whether all lengths are finite. */
static int scale_all(const float *rows, float *out, int64_t count, int64_t width) {
    for (int64_t row = 0; row < count; row++) {
        float length = sqrtf(dot(rows + row * width, rows + row * width, width));
        if (!isfinite(length)) return 0;
        scale(rows + row * width, 1.0f / (length > 1e-12f ? length : 1e-12f), out + row * width, width);
    }
    return 1;
}

static int fits(const Work *work, int64_t ids, int64_t rows) {
    if (!are_offsets(work->offsets, work->sentences, ids)) return 0;
    for (int64_t at = 0; at < ids; at++)
        if (work->ids[at] < 0 || work->ids[at] >= rows) return 0;
    return 1;
}

static PyObject *sums(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer table, scales, ids, offsets, out;
    int kind;
    Py_ssize_t width;
    double power;
    if (!PyArg_ParseTuple(arguments, "Cndy*y*y*y*w*:sums", &kind, &width, &power, &table, &scales,
                          &ids, &offsets, &out))
        return NULL;
    int64_t size = kind == 'f' ? 4 : kind == 'e' ? 2 : kind == 'b' ? 1 : 0;
    int64_t sentences = offsets.len / 8 - 1;
    int64_t rows = size && is_width(width) ? table.len / (width * size) : 0;
    Work work = {table.buf, scales.buf, ids.buf, offsets.buf, out.buf, sentences, width, width * size,
                 power};
    int right = size && is_width(width) && sentences >= 0 && out.len % (width * 4) == 0 &&
                out.len / (width * 4) == sentences && (kind != 'b' || scales.len == rows * 4) && fits(&work, ids.len / 4, rows);
    if (right) {
        Py_BEGIN_ALLOW_THREADS
        sum_all(&work, (char)kind);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&table), PyBuffer_Release(&scales), PyBuffer_Release(&ids);
    PyBuffer_Release(&offsets), PyBuffer_Release(&out);
    if (!right) return refused("sums");
    Py_RETURN_NONE;
}

static PyObject *unit_rows(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer rows, out;
    Py_ssize_t width;
    int finite = 1;
    if (!PyArg_ParseTuple(arguments, "ny*w*:unit_rows", &width, &rows, &out)) return NULL;
    int right = is_width(width) && rows.len == out.len && rows.len % (width * 4) == 0;
    if (right) {
        Py_BEGIN_ALLOW_THREADS
        finite = scale_all(rows.buf, out.buf, rows.len / (width * 4), width);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&rows), PyBuffer_Release(&out);
    if (!right) return refused("unit_rows");
    return PyBool_FromLong(finite);
}

static PyMethodDef methods[] = {
    {"sums", sums, METH_VARARGS, "sums(kind, width, power, table, scales, ids, offsets, out)"},
    {"unit_rows", unit_rows, METH_VARARGS, "unit_rows(width, rows, out): whether all are finite"},
    {NULL, NULL, 0, NULL},
};

MODULE(_sums, "Sums of rows of a table, and rows of length 1.")
