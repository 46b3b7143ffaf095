/* Strings gathered from columns, hashed and sorted, and facts about texts. rejoinder.corpus.reading works without it. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fast.h"
#include "module.h"

/* Columns of strings as Arrow lays them out, and their strings by column and row. */
typedef struct {
    Py_buffer content, ends;
} Column;

typedef struct {
    Column *columns;
    Py_ssize_t count;
} Columns;

static void release(Columns *columns) {
    for (Py_ssize_t index = 0; index < columns->count; index++) {
        PyBuffer_Release(&columns->columns[index].content);
        PyBuffer_Release(&columns->columns[index].ends);
    }
    free(columns->columns);
    columns->columns = NULL, columns->count = 0;
}

/* Takes the buffers of a list of (content, ends). */
static int columns_of(PyObject *list, Columns *columns) {
    Py_ssize_t count = PyList_Size(list);
    columns->count = 0;
    columns->columns = calloc(count ? (size_t)count : 1, sizeof(Column));
    if (!columns->columns) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        Column *column = columns->columns + index;
        PyObject *pair = PyList_GetItem(list, index);
        if (pair && !PyTuple_Check(pair)) PyErr_SetString(PyExc_ValueError, "a column is a pair of content and ends");
        if (PyErr_Occurred() || !PyArg_ParseTuple(pair, "y*y*", &column->content, &column->ends)) {
            release(columns);
            return -1;
        }
        columns->count = index + 1;
    }
    return 0;
}

typedef struct {
    const uint8_t *start;
    size_t size;
} String;

#define NO_STRING SIZE_MAX

/* Returns a string without a prefix of three bytes; its size is NO_STRING outside of a column. */
static String string_at(const Columns *columns, uint32_t which, uint32_t row, const char *prefix) {
    String none = {NULL, NO_STRING};
    if ((Py_ssize_t)which >= columns->count) return none;
    const Column *column = columns->columns + which;
    const int64_t *ends = column->ends.buf;
    if ((Py_ssize_t)row + 1 >= column->ends.len / 8) return none;
    if (ends[row] < 0 || ends[row + 1] < ends[row] || ends[row + 1] > column->content.len) return none;
    String found = {(const uint8_t *)column->content.buf + ends[row], (size_t)(ends[row + 1] - ends[row])};
    if (prefix[0] && found.size >= 3 && found.start[0] == prefix[0] && found.start[1] == prefix[1] &&
        found.start[2] == prefix[2])
        found.start += 3, found.size -= 3;
    return found;
}

/* Returns the number of strings of a column, or -1 if its ends do not lie within its content. */
static Py_ssize_t rows_of(const Column *column) {
    const int64_t *ends = column->ends.buf;
    Py_ssize_t count = column->ends.len % 8 ? -1 : column->ends.len / 8 - 1;
    if (count < 0 || ends[0] < 0 || ends[count] > column->content.len) return -1;
    for (Py_ssize_t row = 0; row < count; row++)
        if (ends[row] > ends[row + 1]) return -1;
    return count;
}

/* Rows lie anywhere in memory: so many rows ahead they are fetched into the cache. */
#define AHEAD 16

static const char *checked_prefix(const char *prefix) {
    if (!prefix[0] || strlen(prefix) == 3) return prefix;
    PyErr_SetString(PyExc_ValueError, "a prefix has three bytes or none");
    return NULL;
}

static PyObject *gather(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *list;
    Py_buffer which, rows;
    const char *prefix;
    if (!PyArg_ParseTuple(arguments, "O!y*y*s", &PyList_Type, &list, &which, &rows, &prefix)) return NULL;
    Columns columns = {0};
    PyObject *ends = NULL, *content = NULL, *result = NULL;
    Py_ssize_t count = rows.len / 4, bad = -1;
    if (which.len != rows.len) PyErr_SetString(PyExc_ValueError, "which and rows differ in length");
    if (PyErr_Occurred() || !checked_prefix(prefix) || columns_of(list, &columns)) goto done;
    if (!(ends = PyBytes_FromStringAndSize(NULL, (count + 1) * 8))) goto done;
    int64_t *to = (int64_t *)PyBytes_AsString(ends);
    const uint32_t *column = which.buf, *row = rows.buf;
    Py_BEGIN_ALLOW_THREADS
    to[0] = 0;
    for (Py_ssize_t index = 0; index < count; index++) {
        if (index + AHEAD < count && (Py_ssize_t)column[index + AHEAD] < columns.count)
            FETCH((const int64_t *)columns.columns[column[index + AHEAD]].ends.buf +
                               row[index + AHEAD]);
        String found = string_at(&columns, column[index], row[index], prefix);
        if (found.size == NO_STRING) { bad = index; break; }
        to[index + 1] = to[index] + (int64_t)found.size;
    }
    Py_END_ALLOW_THREADS
    if (bad >= 0) {
        PyErr_Format(PyExc_IndexError, "no row %u in column %u", row[bad], column[bad]);
        goto done;
    }
    if (!(content = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)to[count]))) goto done;
    uint8_t *out = (uint8_t *)PyBytes_AsString(content);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t index = 0; index < count; index++) {
        if (index + AHEAD < count)
            FETCH(string_at(&columns, column[index + AHEAD], row[index + AHEAD], "").start);
        String found = string_at(&columns, column[index], row[index], prefix);
        if (found.size != NO_STRING) memcpy(out + to[index], found.start, found.size);
    }
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("(OO)", content, ends);
done:
    Py_XDECREF(content);
    Py_XDECREF(ends);
    release(&columns);
    PyBuffer_Release(&which);
    PyBuffer_Release(&rows);
    return result;
}

/* The finalizer of MurmurHash3 (Austin Appleby, public domain), which maps different numbers to different
   ones: strings of up to 8 bytes and of one length never have the same hash. */
static uint64_t mixed(uint64_t number) {
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD;
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53;
    return number ^ number >> 33;
}

static uint64_t hash_of(String string) {
    uint64_t hash = 0x9E3779B97F4A7C15 * (string.size + 1), word = 0;
    for (; string.size >= 8; string.start += 8, string.size -= 8) {
        memcpy(&word, string.start, 8);
        hash = mixed(hash ^ word) + 0x9E3779B97F4A7C15;
    }
    word = 0;
    for (size_t index = 0; index < string.size; index++) word |= (uint64_t)string.start[index] << 8 * index;
    return mixed(hash ^ word);
}

static PyObject *hashes(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *list, *result = NULL;
    const char *prefix;
    Columns columns = {0};
    if (!PyArg_ParseTuple(arguments, "O!s", &PyList_Type, &list, &prefix)) return NULL;
    if (!checked_prefix(prefix) || columns_of(list, &columns)) return NULL;
    Py_ssize_t count = columns.count == 1 ? rows_of(columns.columns) : -1;
    if (count < 0)
        PyErr_SetString(PyExc_ValueError, "one column of strings is expected");
    else
        result = PyBytes_FromStringAndSize(NULL, count * 8);
    if (result) {
        uint64_t *to = (uint64_t *)PyBytes_AsString(result);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t index = 0; index < count; index++)
            to[index] = hash_of(string_at(&columns, 0, (uint32_t)index, prefix));
        Py_END_ALLOW_THREADS
    }
    release(&columns);
    return result;
}

static int before(String one, String other) {
    int order = memcmp(one.start, other.start, one.size < other.size ? one.size : other.size);
    return order < 0 || (order == 0 && one.size < other.size);
}

typedef struct {
    String string;
    int64_t row;
} Named;

/* Sorts by merging halves. Halves in order, as in most dumps, are not touched. */
static void sort(Named *named, Named *room, size_t count) {
    if (count < 2) return;
    size_t half = count / 2;
    sort(named, room, half);
    sort(named + half, room, count - half);
    if (!before(named[half].string, named[half - 1].string)) return;
    memcpy(room, named, half * sizeof *room);
    for (size_t left = 0, right = half, to = 0; left < half; to++)
        named[to] = right < count && before(named[right].string, room[left].string) ? named[right++] : room[left++];
}

static PyObject *order_in_runs(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *list, *result = NULL;
    Py_buffer starts;
    if (!PyArg_ParseTuple(arguments, "O!y*", &PyList_Type, &list, &starts)) return NULL;
    Columns columns = {0};
    Named *named = NULL;
    const int64_t *start = starts.buf;
    Py_ssize_t runs = starts.len / 8 - 1;
    if (columns_of(list, &columns)) goto done;
    int64_t count = columns.count == 1 ? rows_of(columns.columns) : -1;
    int valid = count >= 0 && runs >= 0 && start[0] == 0 && start[runs] == count;
    for (Py_ssize_t run = 0; run < runs && valid; run++) valid = start[run] <= start[run + 1];
    if (!valid) {
        PyErr_SetString(PyExc_ValueError, "a column of strings and the starts of its runs are expected");
        goto done;
    }
    if (!(result = PyBytes_FromStringAndSize(NULL, count * 8))) goto done;
    if (!(named = malloc((size_t)(count + 1) * 2 * sizeof *named))) {
        Py_CLEAR(result);
        PyErr_NoMemory();
        goto done;
    }
    int64_t *order = (int64_t *)PyBytes_AsString(result);
    Py_BEGIN_ALLOW_THREADS
    for (int64_t row = 0; row < count; row++)
        named[row].string = string_at(&columns, 0, (uint32_t)row, ""), named[row].row = row;
    for (Py_ssize_t run = 0; run < runs; run++)
        sort(named + start[run], named + count, (size_t)(start[run + 1] - start[run]));
    for (int64_t row = 0; row < count; row++) order[row] = named[row].row;
    Py_END_ALLOW_THREADS
done:
    free(named);
    release(&columns);
    PyBuffer_Release(&starts);
    return result;
}

enum { WIDE = 1, UNCLEAN = 2 };

FASTEST static uint8_t ascii_facts(const uint8_t *restrict text, size_t size, int32_t *letters) {
    int32_t count = 0;
    uint8_t wide = 0, unclean = size && (text[0] == ' ' || text[size - 1] == ' ');
    for (size_t index = 0; index < size; index++) {
        uint8_t c = text[index];
        count += (uint8_t)((c | 0x20) - 'a') < 26;
        wide |= c;
        unclean |= (c == '&') | ((uint8_t)(c - '\t') < 5);
    }
    for (size_t index = 1; index < size; index++) unclean |= (text[index] == ' ') & (text[index - 1] == ' ');
    *letters = count;
    return (uint8_t)((wide >> 7 ? WIDE : 0) | (unclean ? UNCLEAN : 0));
}

/* Counts the letters of a text of UTF-8 by a table with a bit for each character. */
static int32_t wide_letters(const uint8_t *text, size_t size, const uint8_t *table) {
    int32_t count = 0;
    for (size_t index = 0; index < size;) {
        uint32_t c = text[index];
        size_t more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
        if (index + more >= size) break;
        static const uint8_t firsts[] = {0x7F, 0x1F, 0x0F, 0x07};
        c &= firsts[more];
        for (size_t next = 1; next <= more; next++) c = c << 6 | (text[index + next] & 0x3F);
        count += table[c >> 3] >> (c & 7) & 1;
        index += more + 1;
    }
    return count;
}

/* Counts the letters of a text, and finds whether it has characters beyond ASCII (WIDE) and may have
   what cleaning changes (UNCLEAN): an ampersand, or white space other than single spaces within. */
static uint8_t facts(const uint8_t *text, size_t size, const uint8_t *table, int32_t *letters) {
    uint8_t found = ascii_facts(text, size, letters);
    if (!(found & WIDE)) return found;
    *letters = wide_letters(text, size, table);
    /* U+0085, U+00A0, U+1680, U+2000 to U+205F, U+3000 and their neighbours */
    for (size_t index = 0; !(found & UNCLEAN) && index + 1 < size; index++) {
        uint8_t c = text[index], next = text[index + 1];
        uint8_t last = index + 2 < size ? text[index + 2] : 0;
        if ((c == 0xC2 && (next == 0x85 || next == 0xA0)) || (c == 0xE1 && next == 0x9A) ||
            (c == 0xE2 && next == 0x80 && (last < 0x8C || (last >= 0xA8 && last <= 0xAF))) ||
            (c == 0xE2 && next == 0x81) || (c == 0xE3 && next == 0x80))
            found |= UNCLEAN;
    }
    return found;
}

#define TABLE_BYTES (0x200000 / 8)

static PyObject *text_facts(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Column texts;
    Py_buffer table;
    if (!PyArg_ParseTuple(arguments, "y*y*y*", &texts.content, &texts.ends, &table)) return NULL;
    Py_ssize_t rows = rows_of(&texts);
    PyObject *letters = NULL, *kinds = NULL;
    if (table.len != TABLE_BYTES)
        PyErr_Format(PyExc_ValueError, "a table of %d bytes is expected", TABLE_BYTES);
    else if (rows < 0)
        PyErr_SetString(PyExc_ValueError, "a column of strings is expected");
    else if ((letters = PyBytes_FromStringAndSize(NULL, rows * 4)))
        kinds = PyBytes_FromStringAndSize(NULL, rows);
    if (kinds) {
        const uint8_t *content = texts.content.buf;
        const int64_t *ends = texts.ends.buf;
        int32_t *counts = (int32_t *)PyBytes_AsString(letters);
        uint8_t *flags = (uint8_t *)PyBytes_AsString(kinds);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t row = 0; row < rows; row++)
            flags[row] = facts(content + ends[row], (size_t)(ends[row + 1] - ends[row]), table.buf, counts + row);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&texts.content);
    PyBuffer_Release(&texts.ends);
    PyBuffer_Release(&table);
    if (!kinds) {
        Py_XDECREF(letters);
        return NULL;
    }
    return Py_BuildValue("(NN)", letters, kinds);
}

static PyMethodDef methods[] = {
    {"gather", gather, METH_VARARGS, "gather(columns, which, rows, prefix) -> (content, ends)"},
    {"hashes", hashes, METH_VARARGS, "hashes([(content, ends)], prefix) -> hash of each string"},
    {"order_in_runs", order_in_runs, METH_VARARGS,
     "order_in_runs([(content, ends)], starts of runs) -> order of the strings within runs"},
    {"text_facts", text_facts, METH_VARARGS, "text_facts(content, ends, table) -> (letters, kinds)"},
    {NULL, NULL, 0, NULL},
};

MODULE(_strings, "Strings gathered, hashed and sorted, facts about texts.")
