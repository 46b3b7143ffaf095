/* Words of sentences as ids: rejoinder.text.features calls this, and says what it computes.

   Sentences are normalised before they come here, except that ASCII letters may be upper case.
   Ids are worked out without the interpreter's lock, unless words are added. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CODE_POINTS 0x110000

enum { OTHER, LETTER, DIGIT, SPACE };

typedef struct {
    PyObject_HEAD
    uint8_t *text;        /* the vocabulary: each word followed by a line feed */
    size_t room;          /* bytes allocated for text */
    PyObject *classes;    /* bytes: a class for each code point */
    PyObject *read_as;    /* bytes: the id that each word is read as, int32, or its complement; NULL: its own */
    uint64_t *hashes;     /* of each slot; 0 is an empty slot */
    int32_t *slots;       /* id of each slot */
    int64_t *starts;      /* offsets of words in text, one more than words */
    size_t mask;          /* number of slots - 1 */
    int32_t words;
} Table;

static uint64_t hash_of(const uint8_t *text, size_t size) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ size, part;
    while (size >= 8) {
        memcpy(&part, text, 8);
        hash = (hash ^ part) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
        text += 8, size -= 8;
    }
    part = 0;
    memcpy(&part, text, size);
    hash = (hash ^ part) * 0xC4CEB9FE1A85EC53u;
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

static int32_t find(const Table *table, const uint8_t *text, size_t size) {
    const uint8_t *words = table->text;
    uint64_t hash = hash_of(text, size);
    for (size_t slot = hash & table->mask; table->hashes[slot]; slot = (slot + 1) & table->mask) {
        if (table->hashes[slot] != hash) continue;
        int32_t id = table->slots[slot];
        size_t length = (size_t)(table->starts[id + 1] - table->starts[id] - 1);
        if (length == size && !memcmp(words + table->starts[id], text, size)) return id;
    }
    return -1;
}

static void place(Table *table, uint64_t hash, int32_t id) {
    size_t slot = hash & table->mask;
    while (table->hashes[slot]) slot = (slot + 1) & table->mask;
    table->hashes[slot] = hash, table->slots[slot] = id;
}

/* Makes `slots` empty slots, a power of two, and places all words. Returns whether there was memory. */
static int place_all(Table *table, size_t slots) {
    uint64_t *hashes = calloc(slots, sizeof *hashes);
    int32_t *ids = malloc(slots * sizeof *ids);
    if (!hashes || !ids) return free(hashes), free(ids), 0;
    free(table->hashes), free(table->slots);
    table->hashes = hashes, table->slots = ids, table->mask = slots - 1;
    for (int32_t id = 0; id < table->words; id++) {
        size_t size = (size_t)(table->starts[id + 1] - table->starts[id] - 1);
        place(table, hash_of(table->text + table->starts[id], size), id);
    }
    return 1;
}

/* Adds a word that the table lacks, and returns its id, or -1 if there was no memory. */
static int32_t add(Table *table, const uint8_t *text, size_t size) {
    int32_t id = table->words;
    size_t start = (size_t)table->starts[id], slots = table->mask + 1;
    if (id == INT32_MAX) return -1;
    if (start + size + 1 > table->room) {
        uint8_t *more = realloc(table->text, 2 * (start + size + 1));
        if (!more) return -1;
        table->text = more, table->room = 2 * (start + size + 1);
    }
    if (2 * ((size_t)id + 1) > slots) {
        int64_t *more = realloc(table->starts, (slots + 2) * sizeof *more);
        if (!more) return -1;
        table->starts = more;
        if (!place_all(table, 2 * slots)) return -1;
    }
    memcpy(table->text + start, text, size);
    table->text[start + size] = '\n';
    table->starts[id + 1] = (int64_t)(start + size + 1);
    place(table, hash_of(text, size), id);
    return table->words++;
}

/* Reads a code point of valid UTF-8 and moves past it. */
static uint32_t next_code_point(const uint8_t **at) {
    const uint8_t *p = *at;
    uint32_t first = p[0];
    if (first < 0x80) return *at += 1, first;
    if (first < 0xE0) return *at += 2, (first & 0x1F) << 6 | (p[1] & 0x3F);
    if (first < 0xF0) return *at += 3, (first & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3F);
    return *at += 4,
           (first & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3F);
}

/* Moves past code points of a class. */
static const uint8_t *past(const uint8_t *at, const uint8_t *end, const uint8_t *classes, int kind) {
    while (at < end) {
        const uint8_t *next = at;
        uint32_t code = next_code_point(&next);
        if (code >= CODE_POINTS || classes[code] != kind) break;
        at = next;
    }
    return at;
}

/* What is written for unknown words: each with a line feed, and a mark (text.readings.Mark). */
typedef struct {
    uint8_t *words, *marks;
    int flagged; /* whether a word is read as a complement */
} Rest;

static int is_capital(uint8_t byte) { return (uint8_t)(byte - 'A') < 26; }
static int is_among(uint8_t byte, const char *bytes) { return byte && strchr(bytes, byte); }

/* Returns whether the token at [start, stop) is part of an identifier, an address or a number. */
static int is_in_code(const uint8_t *text, const uint8_t *end, const uint8_t *start, const uint8_t *stop) {
    uint8_t before = start > text ? start[-1] : ' ', after = stop < end ? *stop : ' ';
    uint8_t next = stop + 1 < end ? stop[1] : ' ';
    if ((uint8_t)(before - '0') < 10 || is_among(before, "_@#$`\\")) return 1;
    if ((uint8_t)(after - '0') < 10 || is_among(after, "_@`\\")) return 1;
    if (after == '(' && next == ')') return 1;
    if (after == '.' && ((uint8_t)(next - 'a') < 26 || (uint8_t)(next - '0') < 10)) return 1;
    return before == '.' && start > text + 1 && !is_among(start[-2], " .\t\n\r");
}

/* Returns whether a capital follows the first letter of a word. */
static int has_late_capital(const uint8_t *start, const uint8_t *stop) {
    while (++start < stop)
        if (is_capital(*start)) return 1;
    return 0;
}

enum { NO_MARK, IS_NAME, IN_CODE, FOREIGN = 2 }; /* while a sentence is read; then 1 is for both of the first */

/* Writes the ids of a sentence, at most one for each byte, and returns the place after them.
   An unknown word has the id -1 and is written to `rest`, or if `adding` is added: NULL means that there was no
   memory. `given` is the sentence before its letters became small. */
static int32_t *add_sentence(Table *table, const uint8_t *given, const uint8_t *at, const uint8_t *end, int adding,
                             Rest *rest, int32_t *ids) {
    const uint8_t *classes = (const uint8_t *)PyBytes_AsString(table->classes);
    const char *read_as = table->read_as ? PyBytes_AsString(table->read_as) : NULL;
    const uint8_t *text = at;
    uint8_t *marks = rest->marks, last = 0;
    size_t words = 0, unknown = 0, small = 0; /* small: words of four letters and more without a capital */
    while (at < end) {
        const uint8_t *start = at;
        uint32_t code = next_code_point(&at);
        int kind = code < CODE_POINTS ? classes[code] : OTHER;
        if (kind == SPACE) continue;
        if (kind == LETTER) {
            at = past(at, end, classes, LETTER);
            while (at < end && *at == '\'') {
                const uint8_t *more = past(at + 1, end, classes, LETTER);
                if (more == at + 1) break;
                at = more;
            }
        } else if (kind == DIGIT) {
            at = past(at, end, classes, DIGIT);
        }
        size_t size = (size_t)(at - start);
        int32_t id = find(table, start, size);
        const uint8_t *first = given + (start - text);
        if (id < 0 && adding) {
            if ((id = add(table, start, size)) < 0) return NULL;
        } else if (id < 0) {
            memcpy(rest->words, start, size);
            rest->words += size;
            *rest->words++ = '\n';
            int inside = is_capital(*first) && (last == 'a' || is_among(last, ",;-('&/"));
            int name = inside || has_late_capital(first, first + size);
            int code = kind == LETTER && is_in_code(given, given + (end - text), first, first + size);
            *rest->marks++ = code ? IN_CODE : name ? IS_NAME : NO_MARK;
        } else if (read_as) {
            memcpy(&id, read_as + 4 * (size_t)id, 4);
            if (id < 0) id = ~id, rest->flagged = 1;
        }
        if (kind == LETTER) words++, unknown += id < 0, small += size >= 4 && !is_capital(*first);
        last = kind == LETTER || kind == DIGIT ? 'a' : *start;
        *ids++ = id;
    }
    /* where all words have a capital, it tells nothing; two unknown words of five are another language */
    int foreign = unknown >= 3 && 5 * unknown >= 2 * words;
    for (; marks < rest->marks; marks++)
        *marks = *marks == IN_CODE || (small && *marks == IS_NAME) ? IS_NAME : foreign ? FOREIGN : NO_MARK;
    return ids;
}

static int is_filled(const Table *table) {
    if (!table->classes) PyErr_SetString(PyExc_RuntimeError, "the table was not filled");
    return table->classes != NULL;
}

static PyObject *table_ids(PyObject *self, PyObject *arguments) {
    Table *table = (Table *)self;
    if (!is_filled(table)) return NULL;
    PyObject *sentences, *result = NULL, *ids_array = NULL, *offsets_array = NULL;
    int adding;
    if (!PyArg_ParseTuple(arguments, "O!p:ids", &PyTuple_Type, &sentences, &adding)) return NULL;
    if (adding && table->read_as)
        return PyErr_SetString(PyExc_ValueError, "a table that reads words as others takes no more words"), NULL;
    Py_ssize_t count = PyTuple_Size(sentences);
    size_t total = 0, longest = 0;
    const char **texts = malloc((size_t)(count + 1) * sizeof *texts);
    int64_t *offsets = malloc((size_t)(count + 1) * sizeof *offsets);
    int32_t *ids = NULL;
    uint8_t *lower = NULL, *words = NULL, *marks = NULL;
    if (!texts || !offsets) goto no_memory;
    for (Py_ssize_t index = 0; index < count; index++) {
        Py_ssize_t size;
        /* the UTF-8 belongs to the string, which the tuple keeps */
        texts[index] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(sentences, index), &size);
        if (!texts[index]) goto done;
        offsets[index + 1] = size;
        total += (size_t)size;
        if ((size_t)size > longest) longest = (size_t)size;
    }
    ids = malloc((total + 1) * sizeof *ids);
    lower = malloc(longest + 8);
    words = malloc(2 * total + 1); /* the shortest word is a byte and a line feed */
    marks = malloc(total + 1);
    if (!ids || !lower || !words || !marks) goto no_memory;
    int32_t *end = ids;
    Rest rest = {words, marks, 0};
    PyThreadState *state = adding ? NULL : PyEval_SaveThread(); /* threads may share a table that stays */
    offsets[0] = 0;
    for (Py_ssize_t index = 0; index < count && end; index++) {
        const uint8_t *text = (const uint8_t *)texts[index];
        size_t size = (size_t)offsets[index + 1];
        for (size_t at = 0; at < size; at++)
            lower[at] = (uint8_t)(text[at] + ((uint8_t)(text[at] - 'A') < 26 ? 32 : 0));
        end = add_sentence(table, (const uint8_t *)text, lower, lower + size, adding, &rest, end);
        offsets[index + 1] = end - ids;
    }
    if (state) PyEval_RestoreThread(state);
    if (!end) goto no_memory;
    ids_array = PyByteArray_FromStringAndSize((char *)ids, (Py_ssize_t)(offsets[count] * 4));
    offsets_array = PyByteArray_FromStringAndSize((char *)offsets, (count + 1) * 8);
    if (ids_array && offsets_array)
        result = Py_BuildValue("OOy#y#i", ids_array, offsets_array, (char *)words, (Py_ssize_t)(rest.words - words),
                               (char *)marks, (Py_ssize_t)(rest.marks - marks), rest.flagged);
    goto done;
no_memory:
    PyErr_NoMemory();
done:
    Py_XDECREF(ids_array);
    Py_XDECREF(offsets_array);
    free(texts), free(offsets), free(ids), free(lower), free(words), free(marks);
    return result;
}

static int table_init(PyObject *self, PyObject *arguments, PyObject *Py_UNUSED(keywords)) {
    Table *table = (Table *)self;
    PyObject *text, *classes, *read_as = NULL;
    if (table->text) {
        PyErr_SetString(PyExc_RuntimeError, "a table is filled once");
        return -1;
    }
    if (!PyArg_ParseTuple(arguments, "SS|S", &text, &classes, &read_as)) return -1;
    Py_ssize_t size = PyBytes_Size(text);
    const uint8_t *words = (const uint8_t *)PyBytes_AsString(text);
    if (PyBytes_Size(classes) != CODE_POINTS || size < 0 || (size && words[size - 1] != '\n') || size > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a line for each word, and 0x110000 classes, are needed");
        return -1;
    }
    int64_t count = 0, id = 0;
    for (Py_ssize_t at = 0; at < size; at++) count += words[at] == '\n';
    for (Py_ssize_t at = 0; read_as && at < PyBytes_Size(read_as) / 4; at++) {
        int32_t id_of;
        memcpy(&id_of, PyBytes_AsString(read_as) + 4 * at, 4);
        if ((id_of < 0 ? ~id_of : id_of) >= count) count = -1;
        if (count < 0) break;
    }
    if (count < 0 || (read_as && PyBytes_Size(read_as) != 4 * count)) {
        PyErr_SetString(PyExc_ValueError, "an id of a word for each word is needed");
        return -1;
    }
    size_t room = 16;
    while (room < 2 * (size_t)count) room *= 2;
    table->text = malloc((size_t)size + 1);
    table->starts = malloc((room + 1) * sizeof *table->starts);
    if (!table->text || !table->starts) goto no_memory;
    if (size) memcpy(table->text, words, (size_t)size);
    table->room = (size_t)size + 1;
    table->starts[0] = 0;
    for (Py_ssize_t at = 0; at < size; at++)
        if (words[at] == '\n') table->starts[++id] = at + 1;
    table->words = (int32_t)count;
    if (!place_all(table, room)) goto no_memory;
    Py_INCREF(classes), table->classes = classes;
    Py_XINCREF(read_as), table->read_as = read_as;
    return 0;
no_memory:
    PyErr_NoMemory();
    return -1;
}

static PyObject *table_since(PyObject *self, PyObject *number) {
    Table *table = (Table *)self;
    if (!is_filled(table)) return NULL;
    Py_ssize_t first = PyLong_AsSsize_t(number);
    if (PyErr_Occurred()) return NULL;
    if (first < 0 || first > table->words) first = table->words;
    int64_t begin = table->starts[first];
    return PyBytes_FromStringAndSize((char *)table->text + begin, (Py_ssize_t)(table->starts[table->words] - begin));
}

static void table_dealloc(PyObject *self) {
    Table *table = (Table *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(table->classes);
    Py_XDECREF(table->read_as);
    free(table->text), free(table->hashes), free(table->slots), free(table->starts);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef table_methods[] = {
    {"ids", table_ids, METH_VARARGS, "ids(sentences, adding) -> (ids, offsets, unknown words, each followed by a line feed, a mark for each); their ids are -1"},
    {"since", table_since, METH_O, "since(id) -> the words from an id on, each followed by a line feed"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot table_slots[] = {
    {Py_tp_init, table_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, table_methods},
    {0, NULL},
};

static PyType_Spec table_spec = {
    "rejoinder.text._words.Table", sizeof(Table), 0, Py_TPFLAGS_DEFAULT, table_slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_words", "Ids of words.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__words(void) {
    PyObject *made = PyModule_Create(&module);
    PyObject *type = made ? PyType_FromSpec(&table_spec) : NULL;
    if (!type || PyModule_AddObjectRef(made, "Table", type)) {
        Py_XDECREF(type);
        Py_XDECREF(made);
        return NULL;
    }
    Py_DECREF(type);
    return made;
}
