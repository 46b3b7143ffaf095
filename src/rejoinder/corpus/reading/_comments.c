/* Fields of JSON lines: rejoinder.corpus.reading.readers calls this, and works without it.

   A line that is anything but plain (an invalid one, a wanted field that is neither a string nor a
   short integer, half of a surrogate pair) is left to the caller: one place decides about those. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define MAX_FIELDS 16
#define MAX_DEPTH 32
#define MAX_DIGITS 18

typedef struct {
    uint8_t *values;
    size_t size;
} Bytes;

typedef struct {
    const char *name;
    size_t name_size;
    Bytes content, ends, present; /* as in a column of Arrow, but `present` has a byte per row */
    int found;                    /* in the current line */
} Field;

typedef struct {
    const uint8_t *at, *end;
    const uint8_t *readable; /* end of the memory after `end`, which vectors may read */
} Text;

/* What each reader returns, other than 0: the line is left to the caller. */
enum { REFUSED = -1 };

static void skip_space(Text *text) {
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\r'))
        text->at++;
}

/* Skips characters of ASCII that need no decoding, and copies them: to `*out` there is
   room for a vector more than the text has. */
static void plain_run(Text *text, uint8_t **out) {
#if defined(__SSE2__)
    while (text->readable - text->at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)text->at);
        __m128i special = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
        /* as signed numbers, bytes beyond ASCII are below the space, too */
        special = _mm_or_si128(special, _mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')));
        int found = _mm_movemask_epi8(special);
        if (*out) _mm_storeu_si128((__m128i *)*out, bytes);
        /* a line feed ends each line but the last, and is special */
        int length = found ? __builtin_ctz((unsigned)found) : 16;
        if (length > text->end - text->at) length = (int)(text->end - text->at);
        if (*out) *out += length;
        text->at += length;
        if (length < 16) return;
    }
#endif
    while (text->at < text->end && *text->at >= 0x20 && *text->at < 0x80 && *text->at != '"' &&
           *text->at != '\\') {
        if (*out) *(*out)++ = *text->at;
        text->at++;
    }
}

/* Returns the length of a valid character of more than one byte, 0 for an invalid one. */
static int wide_character(const uint8_t *at, const uint8_t *end) {
    uint8_t first = at[0];
    int size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || end - at < size) return 0;
    for (int index = 1; index < size; index++)
        if ((at[index] & 0xC0) != 0x80) return 0;
    if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F) ||
        (first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F))
        return 0;
    return size;
}

static int32_t hexadecimal(Text *text) {
    if (text->end - text->at < 4) return -1;
    int32_t value = 0;
    for (int index = 0; index < 4; index++) {
        uint8_t c = *text->at++, lower = c | 0x20;
        if (c >= '0' && c <= '9')
            value = value << 4 | (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value << 4 | (lower - 'a' + 10);
        else
            return -1;
    }
    return value;
}

/* Reads what follows a backslash. Writes a character if `*out` is not null. */
static int escape(Text *text, uint8_t **out) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (text->at == text->end) return REFUSED;
    uint8_t kind = *text->at++;
    if (kind != 'u') {
        const char *place = kind ? strchr(names, kind) : NULL;
        if (!place) return REFUSED;
        if (*out) *(*out)++ = (uint8_t)values[place - names];
        return 0;
    }
    int32_t code = hexadecimal(text);
    if (code <= 0 || (code >= 0xDC00 && code < 0xE000)) return REFUSED;
    if (code >= 0xD800 && code < 0xDC00) {
        if (text->end - text->at < 6 || text->at[0] != '\\' || text->at[1] != 'u') return REFUSED;
        text->at += 2;
        int32_t low = hexadecimal(text);
        if (low < 0xDC00 || low > 0xDFFF) return REFUSED;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    uint8_t *to = *out;
    if (!to) return 0;
    if (code < 0x80) {
        *to++ = (uint8_t)code;
    } else if (code < 0x800) {
        *to++ = (uint8_t)(0xC0 | code >> 6), *to++ = (uint8_t)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (uint8_t)(0xE0 | code >> 12), *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    } else {
        *to++ = (uint8_t)(0xF0 | code >> 18), *to++ = (uint8_t)(0x80 | (code >> 12 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F)), *to++ = (uint8_t)(0x80 | (code & 0x3F));
    }
    *out = to;
    return 0;
}

/* Reads the rest of a string, after its first quote. Writes it to `out` unless that is null. */
static int string(Text *text, uint8_t *out, uint8_t **end) {
    for (;;) {
        plain_run(text, &out);
        if (text->at == text->end) return REFUSED;
        uint8_t c = *text->at;
        if (c == '"') break;
        if (c == '\\') {
            text->at++;
            if (escape(text, &out)) return REFUSED;
        } else {
            int size = c < 0x80 ? 0 : wide_character(text->at, text->end);
            if (!size) return REFUSED;
            if (out)
                for (int index = 0; index < size; index++) *out++ = text->at[index];
            text->at += size;
        }
    }
    text->at++;
    if (end) *end = out;
    return 0;
}

static int digits(Text *text) {
    const uint8_t *start = text->at;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9') text->at++;
    return (int)(text->at - start);
}

/* Reads a number. `*whole` is its length if it is a short integer, else 0. */
static int number(Text *text, size_t *whole) {
    const uint8_t *start = text->at;
    int negative = *text->at == '-';
    text->at += negative;
    const uint8_t *first = text->at;
    int count = digits(text);
    if (!count || (count > 1 && *first == '0')) return REFUSED;
    int plain = count <= MAX_DIGITS && !(negative && *first == '0');
    if (text->at < text->end && *text->at == '.') {
        text->at++, plain = 0;
        if (!digits(text)) return REFUSED;
    }
    if (text->at < text->end && (*text->at | 0x20) == 'e') {
        text->at++, plain = 0;
        if (text->at < text->end && (*text->at == '+' || *text->at == '-')) text->at++;
        if (!digits(text)) return REFUSED;
    }
    *whole = plain ? (size_t)(text->at - start) : 0;
    return 0;
}

static int word(Text *text, const char *name) {
    size_t size = strlen(name);
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, name, size)) return REFUSED;
    text->at += size;
    return 0;
}

static int skip_value(Text *text, int depth);

/* Reads the members of an object or the items of an array that is not wanted. */
static int skip_nested(Text *text, int depth, uint8_t close) {
    if (depth == MAX_DEPTH) return REFUSED;
    text->at++;
    skip_space(text);
    if (text->at < text->end && *text->at == close) return text->at++, 0;
    for (;;) {
        if (close == '}') {
            skip_space(text);
            if (text->at == text->end || *text->at++ != '"' || string(text, NULL, NULL))
                return REFUSED;
            skip_space(text);
            if (text->at == text->end || *text->at++ != ':') return REFUSED;
        }
        if (skip_value(text, depth + 1)) return REFUSED;
        skip_space(text);
        if (text->at == text->end) return REFUSED;
        uint8_t c = *text->at++;
        if (c == close) return 0;
        if (c != ',') return REFUSED;
    }
}

static int skip_value(Text *text, int depth) {
    skip_space(text);
    if (text->at == text->end) return REFUSED;
    size_t whole;
    switch (*text->at) {
    case '"': return text->at++, string(text, NULL, NULL);
    case '{': return skip_nested(text, depth, '}');
    case '[': return skip_nested(text, depth, ']');
    case 't': return word(text, "true");
    case 'f': return word(text, "false");
    case 'n': return word(text, "null");
    default: return number(text, &whole);
    }
}

/* Reads the value of a wanted field: a string, a short integer or null. */
static int wanted_value(Text *text, Field *field) {
    if (field->found) return REFUSED; /* a repeated key */
    field->found = 1;
    skip_space(text);
    if (text->at == text->end) return REFUSED;
    if (*text->at == '"') {
        text->at++;
        uint8_t *start = field->content.values + field->content.size, *end = start;
        if (string(text, start, &end)) return REFUSED;
        field->content.size += (size_t)(end - start);
        field->found = 2;
        return 0;
    }
    if (*text->at == 'n') return word(text, "null");
    const uint8_t *start = text->at;
    size_t size = 0;
    if ((*start != '-' && (*start < '0' || *start > '9')) || number(text, &size) || !size)
        return REFUSED;
    field->found = 2;
    memcpy(field->content.values + field->content.size, start, size);
    field->content.size += size;
    return 0;
}

static Field *find(Field *fields, int count, const uint8_t *name, size_t size, int *guess) {
    for (int tried = 0; tried < count; tried++) {
        int index = (*guess + tried) % count;
        if (fields[index].name_size == size && !memcmp(fields[index].name, name, size))
            return *guess = (index + 1) % count, fields + index;
    }
    return NULL;
}

static int object(Text *text, Field *fields, int count, int *guess) {
    skip_space(text);
    if (text->at == text->end || *text->at++ != '{') return REFUSED;
    skip_space(text);
    if (text->at < text->end && *text->at == '}') {
        text->at++;
    } else {
        for (;;) {
            skip_space(text);
            if (text->at == text->end || *text->at++ != '"') return REFUSED;
            const uint8_t *name = text->at;
            uint8_t *none = NULL;
            plain_run(text, &none);
            size_t size = (size_t)(text->at - name);
            if (text->at == text->end || *text->at++ != '"') return REFUSED;
            skip_space(text);
            if (text->at == text->end || *text->at++ != ':') return REFUSED;
            Field *field = find(fields, count, name, size, guess);
            int problem = field ? wanted_value(text, field) : skip_value(text, 0);
            if (problem) return problem;
            skip_space(text);
            if (text->at == text->end) return REFUSED;
            uint8_t c = *text->at++;
            if (c == '}') break;
            if (c != ',') return REFUSED;
        }
    }
    skip_space(text);
    return text->at == text->end ? 0 : REFUSED;
}

static int is_blank(const Text *text) {
    Text rest = *text;
    skip_space(&rest);
    return rest.at == rest.end;
}

static void add_number(Bytes *numbers, int64_t number) {
    memcpy(numbers->values + numbers->size, &number, sizeof number);
    numbers->size += sizeof number;
}

/* Reads a line: a row is added to all columns, or none is. */
static int line(Text text, Field *fields, int count, int *guess) {
    size_t sizes[MAX_FIELDS];
    for (int index = 0; index < count; index++)
        sizes[index] = fields[index].content.size, fields[index].found = 0;
    int problem = object(&text, fields, count, guess);
    for (int index = 0; index < count; index++) {
        Field *field = fields + index;
        if (problem) {
            field->content.size = sizes[index];
            continue;
        }
        add_number(&field->ends, (int64_t)field->content.size);
        field->present.values[field->present.size++] = field->found == 2;
    }
    return problem;
}

static void all_lines(const uint8_t *at, const uint8_t *end, int64_t number, Field *fields, int count,
                      Bytes *numbers, Bytes *refused) {
    const uint8_t *readable = end;
    int guess = 0;
    for (; at < end; number++) {
        const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
        Text text = {at, stop ? stop : end, readable};
        at = stop ? stop + 1 : end;
        if (is_blank(&text)) continue;
        add_number(line(text, fields, count, &guess) ? refused : numbers, number);
    }
}

static size_t lines_of(const uint8_t *at, const uint8_t *end) {
    size_t count = at < end && end[-1] != '\n';
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) at++, count++;
    return count;
}

/* Memory that Python reads as a buffer, without a copy. */
typedef struct {
    PyObject_HEAD
    Bytes bytes;
} Memory;

static int memory_buffer(PyObject *self, Py_buffer *view, int flags) {
    Bytes *bytes = &((Memory *)self)->bytes;
    return PyBuffer_FillInfo(view, self, bytes->values, (Py_ssize_t)bytes->size, 1, flags);
}

static void memory_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(((Memory *)self)->bytes.values);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot memory_slots[] = {
    {Py_bf_getbuffer, memory_buffer},
    {Py_tp_dealloc, memory_free},
    {0, NULL},
};
static PyType_Spec memory_spec = {"rejoinder.corpus.reading._comments.Memory", sizeof(Memory), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};
static PyTypeObject *memory_type;

static int take(Bytes *bytes, size_t room) {
    bytes->values = malloc(room ? room : 1);
    return bytes->values ? 0 : -1;
}

/* Hands memory over to Python, without what was not used of it. */
static PyObject *as_memory(Bytes *bytes) {
    uint8_t *values = realloc(bytes->values, bytes->size ? bytes->size : 1);
    if (values) bytes->values = values;
    Memory *memory = (Memory *)PyType_GenericAlloc(memory_type, 0);
    if (!memory) return NULL;
    memory->bytes = *bytes;
    bytes->values = NULL;
    return (PyObject *)memory;
}

static PyObject *as_columns(Field *fields, int count) {
    PyObject *columns = PyList_New(0);
    for (int index = 0; columns && index < count; index++) {
        Field *field = fields + index;
        PyObject *column = Py_BuildValue("(NNN)", as_memory(&field->content), as_memory(&field->ends),
                                         as_memory(&field->present));
        if (!column || PyList_Append(columns, column)) Py_CLEAR(columns);
        Py_XDECREF(column);
    }
    return columns;
}

static int fields_of(PyObject *names, Field *fields) {
    int count = (int)PyTuple_Size(names);
    if (count > MAX_FIELDS) {
        PyErr_Format(PyExc_ValueError, "%d fields, at most %d", count, MAX_FIELDS);
        return -1;
    }
    for (int index = 0; index < count; index++) {
        Py_ssize_t size;
        fields[index].name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, index), &size);
        if (!fields[index].name) return -1;
        fields[index].name_size = (size_t)size;
    }
    return count;
}

static PyObject *json_fields(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer block;
    PyObject *names;
    long long first;
    if (!PyArg_ParseTuple(arguments, "y*O!L", &block, &PyTuple_Type, &names, &first)) return NULL;
    Field fields[MAX_FIELDS] = {0};
    Bytes numbers = {0}, refused = {0};
    int count = fields_of(names, fields);
    if (count < 0) {
        PyBuffer_Release(&block);
        return NULL;
    }
    const uint8_t *start = block.buf;
    size_t size = (size_t)block.len;
    /* Memory that is not written to costs nothing, and what is left over is given back: no column
       is copied because it grew. */
    size_t rows = lines_of(start, start + size);
    int failed = take(&numbers, rows * 8) || take(&refused, rows * 8);
    for (int index = 0; index < count && !failed; index++) {
        Field *field = fields + index;
        failed = take(&field->content, size + 16) || take(&field->ends, (rows + 1) * 8) ||
                 take(&field->present, rows);
        if (!failed) add_number(&field->ends, 0);
    }
    PyObject *result = NULL;
    if (failed) {
        PyErr_NoMemory();
    } else {
        Py_BEGIN_ALLOW_THREADS
        all_lines(start, start + size, first, fields, count, &numbers, &refused);
        Py_END_ALLOW_THREADS
        PyObject *columns = as_columns(fields, count);
        if (columns) result = Py_BuildValue("(NNN)", columns, as_memory(&numbers), as_memory(&refused));
    }
    for (int index = 0; index < count; index++)
        free(fields[index].content.values), free(fields[index].ends.values),
            free(fields[index].present.values);
    free(numbers.values), free(refused.values);
    PyBuffer_Release(&block);
    return result;
}

static PyMethodDef methods[] = {
    {"json_fields", json_fields, METH_VARARGS,
     "json_fields(lines, names, first line's number) -> (columns, numbers of rows, of refused lines)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_comments", "Fields of JSON lines.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__comments(void) {
    if (!(memory_type = (PyTypeObject *)PyType_FromSpec(&memory_spec))) return NULL;
    return PyModule_Create(&module);
}
