/* Products of rows and the weights of dense layers. rejoinder.encoders.linear calls this.

   An entry is the sum of its products in their order, whatever rows stand beside it: the libraries
   of BLAS round a row in one way or another, by the shape of the batch and its place within it.
   Work is done without the interpreter's lock, on one thread.

   Only for processors with AVX2: on others the BLAS is faster by far. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) || !defined(__x86_64__)
#error "this kernel is not for this compiler or processor; without it, NumPy computes the same"
#endif

enum {
    ROWS = 6,     /* rows at a time, whose sums stay in registers beside two vectors of weights */
    PANEL = 32,   /* columns of weights that lie together: two vectors of AVX-512 */
    CHUNK = 96    /* rows that stay in the second cache while all panels pass */
};

typedef struct {
    const float *in, *panels, *biases;
    float *out;
    int64_t rows, inputs, outputs;
} Work;

/* What the versions for several processors do. `Vector` has `width` numbers; two of them are a step. */
#define VERSION(name, target, width)                                                                \
    typedef float name##_vector __attribute__((vector_size(width * 4), aligned(4)));                \
    target static void name##_tile(const Work *work, int64_t row, int64_t count, int64_t panel) {   \
        const float *rows[ROWS];                                                                    \
        /* rows that are missing repeat the last one: all entries come from the same instructions */ \
        for (int64_t at = 0; at < ROWS; at++)                                                       \
            rows[at] = work->in + (row + (at < count ? at : count - 1)) * work->inputs;             \
        for (int64_t start = 0; start < PANEL; start += 2 * width) {                                \
            const float *weights = work->panels + panel * work->inputs * PANEL + start;             \
            name##_vector sums[ROWS][2] = {{{0}}};                                                  \
            for (int64_t input = 0; input < work->inputs; input++, weights += PANEL) {              \
                name##_vector first = *(const name##_vector *)weights;                              \
                name##_vector second = *(const name##_vector *)(weights + width);                   \
                _Pragma("GCC unroll 6") for (int at = 0; at < ROWS; at++) {                         \
                    sums[at][0] += rows[at][input] * first;                                         \
                    sums[at][1] += rows[at][input] * second;                                        \
                }                                                                                   \
            }                                                                                       \
            store(work, row, count, panel * PANEL + start, (const float *)sums, 2 * width);         \
        }                                                                                           \
    }                                                                                               \
    target static void name(const Work *work) {                                                     \
        for (int64_t begin = 0; begin < work->rows; begin += CHUNK) {                               \
            int64_t end = begin + CHUNK < work->rows ? begin + CHUNK : work->rows;                  \
            for (int64_t panel = 0; panel * PANEL < work->outputs; panel++)                         \
                for (int64_t row = begin; row < end; row += ROWS)                                   \
                    name##_tile(work, row, end - row < ROWS ? end - row : ROWS, panel);             \
        }                                                                                           \
    }

/* Adds the biases to (ROWS, width) sums and writes them; columns beyond the last are left out. */
static void store(const Work *work, int64_t row, int64_t count, int64_t column, const float *sums, int64_t width) {
    int64_t columns = work->outputs - column < width ? work->outputs - column : width;
    for (int64_t at = 0; at < count; at++) {
        float *out = work->out + (row + at) * work->outputs + column;
        for (int64_t lane = 0; lane < columns; lane++)
            out[lane] = sums[at * width + lane] + work->biases[column + lane];
    }
}

VERSION(avx2, __attribute__((target("avx2,fma"))), 8)
VERSION(avx512, __attribute__((target("avx512f"))), 16)

static PyObject *dense(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer in, panels, biases, out;
    Py_ssize_t inputs;
    if (!PyArg_ParseTuple(arguments, "ny*y*y*w*:dense", &inputs, &in, &panels, &biases, &out)) return NULL;
    int64_t outputs = biases.len / 4;
    int64_t padded = (outputs + PANEL - 1) / PANEL * PANEL;
    int64_t rows = inputs > 0 ? in.len / (inputs * 4) : 0;
    Work work = {in.buf, panels.buf, biases.buf, out.buf, rows, inputs, outputs};
    int fits = inputs > 0 && outputs > 0 && in.len == rows * inputs * 4 &&
               panels.len == padded * inputs * 4 && out.len == rows * outputs * 4;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        if (__builtin_cpu_supports("avx512f")) avx512(&work);
        else avx2(&work);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&in), PyBuffer_Release(&panels), PyBuffer_Release(&biases), PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "dense: arrays of these sizes do not belong together");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"dense", dense, METH_VARARGS, "dense(inputs, rows, panels of 32 columns, biases, out)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_layers", "Products of rows and the weights of dense layers.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__layers(void) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        PyErr_SetString(PyExc_ImportError, "the processor has no AVX2");
        return NULL;
    }
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddIntConstant(made, "PANEL", PANEL) < 0) Py_CLEAR(made);
    return made;
}
