/* Comments joined by hashes of their ids: rejoinder.corpus.engines.local calls this, and works without it. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "fast.h"
#include "columns.h"

/* The finalizer of MurmurHash3 (Austin Appleby, public domain). It maps different numbers to different
   ones: strings of up to 8 bytes and of one length never have the same hash. */
static uint64_t mixed(uint64_t number) {
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD;
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53;
    return number ^ number >> 33;
}

static uint64_t word_at(const uint8_t *start) {
    uint64_t word;
    memcpy(&word, start, 8);
    return word;
}

/* Each word is mixed wholly before the next one comes: differences of digits in neighbouring words
   would cancel out. Two chains at a time keep the multipliers busy. */
static uint64_t hash_of(String string) {
    const uint64_t golden = 0x9E3779B97F4A7C15;
    uint64_t hash = golden * (string.size + 1), other = golden, word = 0;
    for (; string.size >= 16; string.start += 16, string.size -= 16) {
        hash = mixed(hash ^ word_at(string.start)) + golden;
        other = mixed(other ^ word_at(string.start + 8)) + golden;
    }
    hash ^= other;
    if (string.size >= 8) {
        hash = mixed(hash ^ word_at(string.start)) + golden;
        string.start += 8, string.size -= 8;
    }
    for (size_t index = 0; index < string.size; index++) word |= (uint64_t)string.start[index] << 8 * index;
    return mixed(hash ^ word);
}

static PyObject *hashes(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *column, *list = NULL, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "O", &column) || !(list = Py_BuildValue("[O]", column))) return NULL;
    Columns columns = {0};
    int failed = columns_of(list, &columns);
    Py_DECREF(list);
    if (failed) return NULL;
    Py_ssize_t count = columns.columns[0].ends.len / 8 - 1, bad = -1;
    if (count >= 0) result = PyBytes_FromStringAndSize(NULL, count * 8);
    if (result) {
        uint64_t *to = (uint64_t *)PyBytes_AsString(result);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t index = 0; index < count && bad < 0; index++) {
            String string = string_at(&columns, 0, (uint32_t)index, "");
            if (string.size == NO_STRING) bad = index;
            else to[index] = hash_of(string);
        }
        Py_END_ALLOW_THREADS
    }
    if (count < 0 || bad >= 0) {
        Py_CLEAR(result);
        PyErr_SetString(PyExc_ValueError, "a column of strings is expected");
    }
    release(&columns);
    return result;
}

static int begins_with(String string, const char *prefix) {
    return string.size >= 3 && !memcmp(string.start, prefix, 3);
}

static String without(String string, const char *prefix) {
    if (begins_with(string, prefix)) string.start += 3, string.size -= 3;
    return string;
}

static int equal(String one, String other) {
    return one.size == other.size && !memcmp(one.start, other.start, one.size);
}

/* Finds what corpus.query.classified says of ids, parents and threads; an empty string is a null. */
static PyObject *keys(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *list, *made[5] = {NULL}, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "O!", &PyList_Type, &list)) return NULL;
    Columns columns = {0};
    if (columns_of(list, &columns)) return NULL;
    Py_ssize_t count = columns.count == 3 ? columns.columns[0].ends.len / 8 - 1 : -1;
    for (int index = 0; index < 3 && count >= 0; index++)
        if (columns.columns[index].ends.len / 8 - 1 != count) count = -1;
    if (count < 0) {
        PyErr_SetString(PyExc_ValueError, "three columns of the same length are expected");
        goto done;
    }
    void *to[5];
    for (int index = 0; index < 5; index++) {
        made[index] = PyBytes_FromStringAndSize(NULL, index < 3 ? count * 8 : count);
        if (!made[index]) goto done;
        to[index] = PyBytes_AsString(made[index]);
    }
    uint64_t *ids = to[0], *parents = to[1], *threads = to[2];
    uint8_t *answers = to[3], *loose = to[4];
    Py_ssize_t bad = -1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t index = 0; index < count; index++) {
        String id = string_at(&columns, 0, (uint32_t)index, "");
        String parent = string_at(&columns, 1, (uint32_t)index, "");
        String thread = string_at(&columns, 2, (uint32_t)index, "");
        if (id.size == NO_STRING || parent.size == NO_STRING || thread.size == NO_STRING) { bad = index; break; }
        int is_comment = begins_with(parent, "t1_");
        parent = without(parent, "t1_"), thread = without(thread, "t3_");
        answers[index] = (is_comment || (parent.size && !begins_with(parent, "t3_"))) && !equal(parent, id);
        loose[index] = !thread.size;
        ids[index] = hash_of(id), parents[index] = hash_of(parent), threads[index] = hash_of(thread);
    }
    Py_END_ALLOW_THREADS
    if (bad >= 0)
        PyErr_Format(PyExc_IndexError, "no row %zd", bad);
    else
        result = PyTuple_Pack(5, made[0], made[1], made[2], made[3], made[4]);
done:
    for (int index = 0; index < 5; index++) Py_XDECREF(made[index]);
    release(&columns);
    return result;
}

/* Finds the row of each wanted hash among hashes that are all different, -1 where there is none. */
static PyObject *places(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer hashes, wanted;
    if (!PyArg_ParseTuple(arguments, "y*y*", &hashes, &wanted)) return NULL;
    const uint64_t *hash = hashes.buf, *want = wanted.buf;
    Py_ssize_t count = hashes.len / 8, questions = wanted.len / 8;
    size_t slots = 16;
    while (slots < (size_t)count * 2) slots *= 2;
    PyObject *result = PyBytes_FromStringAndSize(NULL, questions * 8);
    uint32_t *rows = count < UINT32_MAX ? calloc(slots, sizeof *rows) : NULL;
    if (!result || !rows) {
        Py_CLEAR(result);
        PyErr_NoMemory();
        goto done;
    }
    int64_t *found = (int64_t *)PyBytes_AsString(result);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < count; row++) {
        size_t slot = hash[row] & (slots - 1);
        while (rows[slot]) slot = (slot + 1) & (slots - 1);
        rows[slot] = (uint32_t)row + 1;
    }
    for (Py_ssize_t index = 0; index < questions; index++) {
        size_t slot = want[index] & (slots - 1);
        while (rows[slot] && hash[rows[slot] - 1] != want[index]) slot = (slot + 1) & (slots - 1);
        found[index] = (int64_t)rows[slot] - 1;
    }
    Py_END_ALLOW_THREADS
done:
    free(rows);
    PyBuffer_Release(&hashes);
    PyBuffer_Release(&wanted);
    return result;
}

/* Strings chosen from columns. */
typedef struct {
    Columns columns;
    Py_buffer which, rows;
    const char *prefix;
} Chosen;

static void release_chosen(Chosen *chosen) {
    release(&chosen->columns);
    PyBuffer_Release(&chosen->which);
    PyBuffer_Release(&chosen->rows);
}

static int chosen_of(PyObject *given, Chosen *chosen) {
    PyObject *list;
    if (!PyArg_ParseTuple(given, "O!y*y*s", &PyList_Type, &list, &chosen->which, &chosen->rows,
                          &chosen->prefix))
        return -1;
    if (columns_of(list, &chosen->columns)) {
        PyBuffer_Release(&chosen->which);
        PyBuffer_Release(&chosen->rows);
        return -1;
    }
    return 0;
}

static String chosen_string(const Chosen *chosen, int64_t index) {
    return string_at(&chosen->columns, ((const uint32_t *)chosen->which.buf)[index],
                     ((const uint32_t *)chosen->rows.buf)[index], chosen->prefix);
}

/* Fetches what comes after a string into the cache: first where it is, later the string itself. */
static void fetch_ahead(const Chosen *chosen, int64_t index, int64_t count) {
    const uint32_t *which = chosen->which.buf, *rows = chosen->rows.buf;
    int64_t far = index + 2 * AHEAD, near = index + AHEAD;
    if (far < count && (Py_ssize_t)which[far] < chosen->columns.count)
        FETCH((const int64_t *)chosen->columns.columns[which[far]].ends.buf + rows[far]);
    if (near < count) FETCH(chosen_string(chosen, near).start);
}

static PyObject *same(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *first, *second;
    if (!PyArg_ParseTuple(arguments, "OO", &first, &second)) return NULL;
    Chosen one, other;
    if (chosen_of(first, &one)) return NULL;
    if (chosen_of(second, &other)) {
        release_chosen(&one);
        return NULL;
    }
    Py_ssize_t count = one.rows.len / 4;
    int is_same = one.which.len == one.rows.len && other.which.len == one.rows.len &&
                  other.rows.len == one.rows.len;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t index = 0; index < count && is_same; index++) {
        fetch_ahead(&one, index, count), fetch_ahead(&other, index, count);
        String left = chosen_string(&one, index), right = chosen_string(&other, index);
        is_same = left.size != NO_STRING && right.size != NO_STRING && equal(left, right);
    }
    Py_END_ALLOW_THREADS
    release_chosen(&one);
    release_chosen(&other);
    return PyBool_FromLong(is_same);
}

static int before(String one, String other) {
    int order = memcmp(one.start, other.start, one.size < other.size ? one.size : other.size);
    return order < 0 || (order == 0 && one.size < other.size);
}

/* Sorts strings and their numbers by merging halves. Halves in order, as in most dumps, are not
   touched. */
static void sort(String *strings, int64_t *numbers, String *room, int64_t *room_of_numbers, size_t count) {
    if (count < 2) return;
    size_t half = count / 2;
    sort(strings, numbers, room, room_of_numbers, half);
    sort(strings + half, numbers + half, room, room_of_numbers, count - half);
    if (!before(strings[half], strings[half - 1])) return;
    memcpy(room, strings, half * sizeof *room);
    memcpy(room_of_numbers, numbers, half * sizeof *room_of_numbers);
    for (size_t left = 0, right = half, to = 0; left < half; to++) {
        int from_right = right < count && before(strings[right], room[left]);
        strings[to] = from_right ? strings[right] : room[left];
        numbers[to] = from_right ? numbers[right++] : room_of_numbers[left++];
    }
}

static PyObject *sorted_runs(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *given, *result = NULL;
    Py_buffer starts;
    if (!PyArg_ParseTuple(arguments, "Oy*", &given, &starts)) return NULL;
    Chosen chosen;
    if (chosen_of(given, &chosen)) {
        PyBuffer_Release(&starts);
        return NULL;
    }
    const int64_t *start = starts.buf;
    Py_ssize_t runs = starts.len / 8 - 1;
    int64_t count = chosen.rows.len / 4;
    int valid = runs >= 0 && start[0] == 0 && start[runs] == count && chosen.which.len == chosen.rows.len;
    for (Py_ssize_t run = 0; run < runs && valid; run++) valid = start[run] <= start[run + 1];
    String *strings = malloc((size_t)(count + 1) * 2 * sizeof *strings);
    int64_t *room = malloc((size_t)(count + 1) * sizeof *room);
    result = PyBytes_FromStringAndSize(NULL, count * 8);
    if (!strings || !room || !result) {
        Py_CLEAR(result);
        PyErr_NoMemory();
        goto done;
    }
    int64_t *order = (int64_t *)PyBytes_AsString(result);
    Py_BEGIN_ALLOW_THREADS
    for (int64_t index = 0; index < count && valid; index++) {
        fetch_ahead(&chosen, index, count);
        order[index] = index;
        strings[index] = chosen_string(&chosen, index);
        valid = strings[index].size != NO_STRING;
    }
    for (Py_ssize_t run = 0; run < runs && valid; run++)
        sort(strings + start[run], order + start[run], strings + count, room,
             (size_t)(start[run + 1] - start[run]));
    Py_END_ALLOW_THREADS
    if (!valid) {
        Py_CLEAR(result);
        PyErr_SetString(PyExc_ValueError, "runs of chosen strings are expected");
    }
done:
    free(strings), free(room);
    release_chosen(&chosen);
    PyBuffer_Release(&starts);
    return result;
}

static PyMethodDef methods[] = {
    {"hashes", hashes, METH_VARARGS, "hashes((content, ends)) -> hash of each string"},
    {"keys", keys, METH_VARARGS,
     "keys([ids, parents, threads]) -> (hashes of each, answers a comment, has no thread)"},
    {"places", places, METH_VARARGS, "places(hashes, wanted) -> row of each, or -1"},
    {"same", same, METH_VARARGS,
     "same((columns, which, rows, prefix), (columns, which, rows, prefix)) -> whether they are equal"},
    {"sorted_runs", sorted_runs, METH_VARARGS,
     "sorted_runs((columns, which, rows, prefix), starts of runs) -> order within runs"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_join", "Comments joined by hashes of their ids.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__join(void) { return PyModule_Create(&module); }
