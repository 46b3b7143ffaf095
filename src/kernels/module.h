/* What kernels in C have in common as modules of Python. Include Python.h before. */
#include <stdint.h>

#define MODULE(name, about)                                                                                       \
    static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, #name, about, -1, methods, NULL, NULL, NULL, NULL}; \
    PyMODINIT_FUNC PyInit_##name(void) { return PyModule_Create(&module); }

/* Refuses arrays that do not belong together, or ids that they lack. */
static inline PyObject *refused(const char *kernel) {
    return PyErr_Format(PyExc_ValueError, "%s: arrays of these sizes, or ids, do not belong together", kernel);
}
