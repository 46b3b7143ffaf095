/* A last sentence where a library in C or Rust ends the process, as it does when memory runs out.
   rejoinder.cli.memory calls this.

   A handler of Python's runs too late: the process has ended, or the fault comes again. This one
   writes, and exits, and does nothing else that may not be done in a signal handler. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <signal.h>
#include <string.h>
#if defined(_WIN32)
#include <io.h>
#define write _write
#else
#include <unistd.h>
#endif

static char sentence[1024];
static unsigned length;
static int status;

static void end(int number) {
    (void)number;
    /* nothing can be done about a sentence that is not written */
    if (write(2, sentence, length) < 0) _exit(status);
    _exit(status);
}

static PyObject *tell(PyObject *self, PyObject *args) {
    (void)self;
    const char *text;
    Py_ssize_t size;
    int given;
    if (!PyArg_ParseTuple(args, "y#i:tell", &text, &size, &given)) return NULL;
    if ((size_t)size > sizeof sentence) {
        PyErr_Format(PyExc_ValueError, "%zd bytes; at most %zu are allowed", size, sizeof sentence);
        return NULL;
    }
    memcpy(sentence, text, (size_t)size);
    length = (unsigned)size;
    status = given;
    signal(SIGABRT, end);
    signal(SIGSEGV, end);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"tell", tell, METH_VARARGS, "tell(sentence, status): written, and exited with, where SIGABRT or SIGSEGV would end"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_ending", "A last sentence of a process.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__ending(void) { return PyModule_Create(&module); }
