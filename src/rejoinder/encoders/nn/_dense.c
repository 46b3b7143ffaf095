/* Arithmetic of dense layers in training: tanh, rows of length 1, and their gradients.
   rejoinder.encoders.nn.dense_math calls this, and says what it computes.

   Numbers are float32, or bfloat16 where a kind says so; all is computed in float32. Work is done in
   shares, by several threads and without the interpreter's lock. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fast.h"
#include "shares.h"
#include "vectors.h"

enum {
    BLOCK = 1 << 9, /* numbers at a time, which stay in the first cache */
    WIDEST = 1 << 14 /* entries of a row: 64 kB of the stack, the limit of configs */
};

typedef struct {
    char kind; /* 'f' float32, 'b' bfloat16 */
    const char *in;
    char *out;
    const float *gradient, *rows, *factors;
    const uint8_t *present;
    float *units, *lengths;
    int64_t width;
} Work;

static inline size_t size_of(char kind) { return kind == 'b' ? 2 : 4; }

static void read_numbers(char kind, const char *from, int64_t first, float *to, int64_t count) {
    from += (size_t)first * size_of(kind);
    if (kind == 'b') from_bfloat16((const uint16_t *)from, to, count);
    else memcpy(to, from, (size_t)count * sizeof *to);
}

static void write_numbers(char kind, const float *from, char *to, int64_t first, int64_t count) {
    to += (size_t)first * size_of(kind);
    if (kind == 'b') to_bfloat16(from, (uint16_t *)to, count);
    else memcpy(to, from, (size_t)count * sizeof *from);
}

/* A quotient of polynomials, the one that Eigen's ptanh uses, to 5e-7 of the value; beyond the bounds
   tanh is 1 to the last bit. What is no number stays so. */
FASTEST static void tangents(float *restrict values, int64_t count) {
    for (int64_t at = 0; at < count; at++) {
        float x = values[at];
        x = x > 7.90531111f ? 7.90531111f : x;
        x = x < -7.90531111f ? -7.90531111f : x;
        float square = x * x;
        float above = -2.76076847742355e-16f;
        above = above * square + 2.00018790482477e-13f;
        above = above * square - 8.60467152213735e-11f;
        above = above * square + 5.12229709037114e-08f;
        above = above * square + 1.48572235717979e-05f;
        above = above * square + 6.37261928875436e-04f;
        above = above * square + 4.89352455891786e-03f;
        float below = 1.19825839466702e-06f;
        below = below * square + 1.18534705686654e-04f;
        below = below * square + 2.26843463243900e-03f;
        below = below * square + 4.89352518554385e-03f;
        values[at] = x * above / below;
    }
}

static void tanh_share(void *data, int64_t first, int64_t last) {
    const Work *work = data;
    float values[BLOCK];
    for (int64_t at = first; at < last; at += BLOCK) {
        int64_t count = last - at < BLOCK ? last - at : BLOCK;
        read_numbers(work->kind, work->in, at, values, count);
        tangents(values, count);
        write_numbers(work->kind, values, work->out, at, count);
    }
}

static void length_share(void *data, int64_t first, int64_t last) {
    const Work *work = data;
    float row[WIDEST];
    for (int64_t at = first; at < last; at++) {
        read_numbers(work->kind, work->in, at * work->width, row, work->width);
        work->lengths[at] = sqrtf(dot(row, row, work->width));
    }
}

static void unit_share(void *data, int64_t first, int64_t last) {
    const Work *work = data;
    for (int64_t at = first; at < last; at++) {
        float *row = work->units + at * work->width;
        read_numbers(work->kind, work->in, at * work->width, row, work->width);
        float length = sqrtf(dot(row, row, work->width));
        float factor = (work->present[at] ? 1.0f : 0.0f) / (length < 1e-12f ? 1e-12f : length);
        work->lengths[at] = factor;
        multiply(row, factor, work->width);
    }
}

FASTEST static void across(const float *restrict gradient, const float *restrict row, float along,
                           float factor, float *restrict out, int64_t width) {
    for (int64_t at = 0; at < width; at++) out[at] = (gradient[at] - along * row[at]) * factor;
}

static void unit_gradient_share(void *data, int64_t first, int64_t last) {
    const Work *work = data;
    float out[WIDEST];
    for (int64_t at = first; at < last; at++) {
        const float *gradient = work->gradient + at * work->width, *row = work->rows + at * work->width;
        float along = dot(gradient, row, work->width);
        across(gradient, row, along, work->factors[at], out, work->width);
        write_numbers(work->kind, out, work->out, at * work->width, work->width);
    }
}

typedef struct {
    unsigned long long parallel;
    int threads, kind;
    Py_ssize_t width;
    Py_buffer bounds, arrays[4];
} Given;

/* Does the work on `count` rows or numbers if it `fits`, and gives the first `arrays` back. */
static PyObject *done(Given *given, Work *work, void (*one)(void *, int64_t, int64_t), int64_t count,
                      int arrays, int fits) {
    work->kind = (char)given->kind, work->width = given->width;
    fits = fits && given->width > 0 && given->width <= WIDEST &&
           bounds_fit(given->bounds.buf, given->bounds.len / 8 - 1, count);
    if (fits) {
        Shares shares = {one, work, given->bounds.buf, given->bounds.len / 8 - 1, 0};
        Py_BEGIN_ALLOW_THREADS
        do_shares(&shares, (uintptr_t)given->parallel, given->threads);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&given->bounds);
    for (int at = 0; at < arrays; at++) PyBuffer_Release(&given->arrays[at]);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "dense: arrays of these sizes do not belong together");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *tangent(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given = {.width = 1};
    if (!PyArg_ParseTuple(arguments, "Kiy*Cy*w*:tanh", &given.parallel, &given.threads, &given.bounds,
                          &given.kind, &given.arrays[0], &given.arrays[1]))
        return NULL;
    Py_buffer *in = &given.arrays[0], *out = &given.arrays[1];
    Work work = {.in = in->buf, .out = out->buf};
    return done(&given, &work, tanh_share, in->len / (int64_t)size_of((char)given.kind), 2, in->len == out->len);
}

static PyObject *lengths(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    if (!PyArg_ParseTuple(arguments, "Kiy*Cny*w*:lengths", &given.parallel, &given.threads, &given.bounds,
                          &given.kind, &given.width, &given.arrays[0], &given.arrays[1]))
        return NULL;
    Py_buffer *in = &given.arrays[0], *out = &given.arrays[1];
    int64_t count = out->len / 4;
    Work work = {.in = in->buf, .lengths = out->buf};
    return done(&given, &work, length_share, count, 2,
                in->len == count * given.width * (int64_t)size_of((char)given.kind));
}

static PyObject *unit_rows(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    if (!PyArg_ParseTuple(arguments, "Kiy*Cny*y*w*w*:unit_rows", &given.parallel, &given.threads, &given.bounds,
                          &given.kind, &given.width, &given.arrays[0], &given.arrays[1], &given.arrays[2],
                          &given.arrays[3]))
        return NULL;
    Py_buffer *in = &given.arrays[0], *present = &given.arrays[1], *units = &given.arrays[2];
    Py_buffer *factors = &given.arrays[3];
    int64_t count = present->len;
    Work work = {.in = in->buf, .present = present->buf, .units = units->buf, .lengths = factors->buf};
    int fits = in->len == count * given.width * (int64_t)size_of((char)given.kind) &&
               units->len == count * given.width * 4 && factors->len == count * 4;
    return done(&given, &work, unit_share, count, 4, fits);
}

static PyObject *unit_gradients(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Given given;
    if (!PyArg_ParseTuple(arguments, "Kiy*Cny*y*y*w*:unit_gradients", &given.parallel, &given.threads,
                          &given.bounds, &given.kind, &given.width, &given.arrays[0], &given.arrays[1],
                          &given.arrays[2], &given.arrays[3]))
        return NULL;
    Py_buffer *gradient = &given.arrays[0], *rows = &given.arrays[1], *factors = &given.arrays[2];
    Py_buffer *out = &given.arrays[3];
    int64_t count = factors->len / 4;
    Work work = {.gradient = gradient->buf, .rows = rows->buf, .factors = factors->buf, .out = out->buf};
    int fits = gradient->len == count * given.width * 4 && rows->len == gradient->len &&
               out->len == count * given.width * (int64_t)size_of((char)given.kind);
    return done(&given, &work, unit_gradient_share, count, 4, fits);
}

static PyMethodDef methods[] = {
    {"tanh", tangent, METH_VARARGS, "tanh(parallel, threads, bounds, kind, x, out)"},
    {"lengths", lengths, METH_VARARGS, "lengths(parallel, threads, bounds, kind, width, x, out)"},
    {"unit_rows", unit_rows, METH_VARARGS,
     "unit_rows(parallel, threads, bounds, kind, width, x, present, out, factors)"},
    {"unit_gradients", unit_gradients, METH_VARARGS,
     "unit_gradients(parallel, threads, bounds, kind, width, gradient, rows, factors, out)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_dense", "Arithmetic of dense layers.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__dense(void) { return PyModule_Create(&module); }
