/* The best texts of a segment by BM25: rejoinder.index.matcher calls this, and says what it computes.

   Texts are searched in ranges that stay in the processor's cache. The most that each word adds to a text
   is a byte, of frequent words in columns that all queries share. Texts whose bytes add up to enough get
   their scores. Searches without the interpreter's lock. Rows that are out of range are refused, never
   followed. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fast.h"
#include "module.h"
#include "offsets.h"

enum { RANGE = 8192, BLOCK = 64, WORDS = 128, WHOLE = 63, MORE = 3 };
/* Words are looked up if they add at most this share of the least of the best scores: for more, too
   many texts would be left. */
static const double LOOKED_UP = 0.1;

typedef struct {
    const uint32_t *rows; /* of each word's texts, ascending */
    const char *counts;
    const float *slack; /* of each text: count / (count + slack) is its share */
    const int64_t *offsets;
    const uint8_t *absent; /* of each text: 1 if it is not found; NULL: all are */
    const uint8_t *bytes;   /* of each word's texts: WHOLE * the share, rounded up, and above it the count, at most MORE */
    const uint8_t *columns; /* the same of each frequent word, for all texts */
    int64_t pairs, texts, count_bytes;
} Segment;

typedef struct {
    float score;
    uint32_t row;
} Hit;

/* The best hits so far; the worst of them is first: a heap. */
typedef struct {
    Hit *hits;
    int64_t size, most;
} Best;

typedef struct {
    const int64_t *words, *slots; /* slots: numbers of `columns`, -1 for rare words */
    const double *weights, *rests; /* rests: the most that a word and those after it add */
    int64_t count;
    double scale;    /* of weights, so that sums of bytes fit in 16 bits */
    int64_t *places; /* of each word: its next text */
} Query;

static inline int worse(Hit one, Hit other) {
    return one.score < other.score || (one.score == other.score && one.row > other.row);
}

static void push(Best *best, Hit hit) {
    Hit *heap = best->hits;
    int64_t at;
    if (best->size < best->most) {
        for (at = best->size++; at && worse(hit, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    } else {
        if (!worse(heap[0], hit)) return;
        for (at = 0;;) {
            int64_t child = 2 * at + 1;
            if (child >= best->size) break;
            if (child + 1 < best->size && worse(heap[child + 1], heap[child])) child++;
            if (!worse(heap[child], hit)) break;
            heap[at] = heap[child];
            at = child;
        }
    }
    heap[at] = hit;
}

/* The score that a text must exceed, or 0 if there are fewer hits than wanted. */
static inline float least_of(const Best *best) { return best->size < best->most ? 0 : best->hits[0].score; }

static float count_of(const Segment *segment, int64_t at) {
    return segment->count_bytes == 1   ? (float)((const uint8_t *)segment->counts)[at]
           : segment->count_bytes == 2 ? (float)((const uint16_t *)segment->counts)[at]
                                       : (float)((const uint32_t *)segment->counts)[at];
}

/* The first place from `at` on whose row is at least `row`: steps that double, then halves. */
static int64_t gallop(const uint32_t *rows, int64_t at, int64_t end, uint32_t row) {
    int64_t step = 1;
    if (at >= end || rows[at] >= row) return at;
    while (at + step < end && rows[at + step] < row) at += step, step *= 2;
    int64_t high = at + step < end ? at + step : end;
    while (high - at > 1) {
        int64_t middle = at + (high - at) / 2;
        if (rows[middle] < row) at = middle;
        else high = middle;
    }
    return high;
}

/* Adds a word, whose texts begin at `at`, to the bounds of `size` texts from `first` on. */
static void add_word(const Segment *segment, int64_t at, int64_t stop, uint16_t weight, uint32_t first, uint32_t size,
                     uint16_t *restrict bounds) {
    for (uint32_t text; at < stop && (text = segment->rows[at] - first) < size; at++)
        bounds[text] = (uint16_t)(bounds[text] + (segment->bytes[at] & WHOLE) * weight);
}

FASTEST static void add_column(const uint8_t *restrict column, uint16_t weight, uint16_t *restrict bounds, int64_t size) {
    for (int64_t at = 0; at < size; at++) bounds[at] = (uint16_t)(bounds[at] + (column[at] & WHOLE) * weight);
}

FASTEST static uint16_t most_of(const uint16_t *bounds) {
    uint16_t most = 0;
    for (int at = 0; at < BLOCK; at++) most = bounds[at] > most ? bounds[at] : most;
    return most;
}

/* Returns the score of a text, or 0 once it can't be among the best. */
static float score_of(const Segment *segment, const Query *query, uint32_t row, double least) {
    float score = 0;
    for (int64_t word = 0; word < query->count; word++) {
        if (score < least - query->rests[word]) return 0;
        int64_t slot = query->slots[word], stop = segment->offsets[query->words[word] + 1], *at = query->places + word;
        float count = slot < 0 ? MORE : (float)(segment->columns[slot * segment->texts + row] / (WHOLE + 1));
        if (count == MORE) {
            *at = gallop(segment->rows, *at, stop, row);
            if (*at == stop || segment->rows[*at] != row) continue;
            count = (float)(segment->bytes[*at] / (WHOLE + 1));
            if (count == MORE) count = count_of(segment, *at);
        }
        if (count) score += (float)query->weights[word] * (count / (count + segment->slack[row]));
    }
    return score;
}

static void search_range(const Segment *segment, const Query *query, uint32_t first, uint32_t size, uint16_t *bounds,
                         Best *best) {
    double looked_up = LOOKED_UP * least_of(best);
    int64_t done = 0;
    for (; done < query->count && done < WORDS && query->rests[done] >= looked_up; done++) {
        uint16_t weight = (uint16_t)(query->weights[done] * query->scale + 1);
        int64_t slot = query->slots[done], *place = query->places + done, stop = segment->offsets[query->words[done] + 1];
        if (slot >= 0) {
            add_column(segment->columns + slot * segment->texts + first, weight, bounds, size);
        } else {
            *place = gallop(segment->rows, *place, stop, first);
            add_word(segment, *place, stop, weight, first, size, bounds);
        }
    }
    double rest = done < query->count ? query->rests[done] : 0;
    for (uint32_t block = 0; block < size; block += BLOCK) {
        double least = least_of(best) * (1 - 1e-5); /* less the rounding error of a score */
        double needed = (least - rest) * WHOLE * query->scale;
        uint16_t limit = needed < 1 ? rest == 0 : needed < UINT16_MAX ? (uint16_t)needed : UINT16_MAX;
        if (most_of(bounds + block) < limit) continue;
        for (uint32_t at = block; at < block + BLOCK && at < size; at++) {
            if (bounds[at] < limit || (segment->absent && segment->absent[first + at])) continue;
            float score = score_of(segment, query, first + at, least);
            if (score > least_of(best)) push(best, (Hit){score, first + at});
        }
    }
    memset(bounds, 0, RANGE * sizeof *bounds);
}

static int order(const void *first, const void *second) {
    return worse(*(const Hit *)second, *(const Hit *)first) ? -1 : 1; /* rows differ */
}

typedef struct {
    const int64_t *words, *slots, *begins; /* of all queries, and where those of each begin; one more than queries */
    const double *weights, *rests;
    int64_t queries, top_k;
    uint32_t *rows;
    float *scores;
    int64_t *sizes;
} Queries;

/* Returns whether there was memory. */
static int search_all(const Segment *segment, const Queries *all) {
    uint16_t *bounds = calloc(RANGE, sizeof *bounds);
    Hit *hits = malloc((size_t)(all->queries * all->top_k + 1) * sizeof *hits);
    Best *best = malloc((size_t)(all->queries + 1) * sizeof *best);
    int64_t *places = malloc((size_t)(all->begins[all->queries] + 1) * sizeof *places);
    int enough = bounds && hits && best && places;
    for (int64_t word = 0; word < all->begins[all->queries] && enough; word++)
        places[word] = segment->offsets[all->words[word]];
    for (int64_t number = 0; number < all->queries && enough; number++)
        best[number] = (Best){hits + number * all->top_k, 0, all->top_k};
    for (int64_t first = 0; first < segment->texts && enough; first += RANGE) {
        int64_t size = segment->texts - first < RANGE ? segment->texts - first : RANGE;
        for (int64_t number = 0; number < all->queries; number++) {
            int64_t begin = all->begins[number], count = all->begins[number + 1] - begin;
            double weights = 0, most = count < WORDS ? (double)count : WORDS;
            for (int64_t word = begin; word < begin + most; word++) weights += all->weights[word];
            /* each weight is rounded up, and the sum of all times WHOLE is below 2^16 */
            Query query = {all->words + begin, all->slots + begin, all->weights + begin, all->rests + begin,
                           count, (UINT16_MAX / WHOLE - most) / weights, places + begin};
            if (count) search_range(segment, &query, (uint32_t)first, (uint32_t)size, bounds, best + number);
        }
    }
    for (int64_t number = 0; number < all->queries && enough; number++) {
        qsort(best[number].hits, (size_t)best[number].size, sizeof *hits, order);
        all->sizes[number] = best[number].size;
        for (int64_t place = 0; place < best[number].size; place++) {
            all->rows[number * all->top_k + place] = best[number].hits[place].row;
            all->scores[number * all->top_k + place] = best[number].hits[place].score;
        }
    }
    free(bounds), free(hits), free(best), free(places);
    return enough;
}

static int belong_together(const Segment *segment, int64_t known, int64_t columns, const Queries *all, int64_t words) {
    if (!are_offsets(all->begins, all->queries, words)) return 0;
    for (int64_t at = 0; at < words; at++) {
        int64_t word = all->words[at];
        if (word < 0 || word >= known || all->slots[at] < -1 || all->slots[at] >= columns) return 0;
        int64_t begin = segment->offsets[word], end = segment->offsets[word + 1];
        if (begin < 0 || begin > end || end > segment->pairs) return 0;
    }
    return 1;
}

static PyObject *best(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Py_buffer absent, rows, counts, slack, offsets, bytes, columns, words, slots, begins, weights, rests, out_rows, out_scores,
        out_sizes;
    Py_ssize_t top_k;
    if (!PyArg_ParseTuple(arguments, "nz*y*y*y*y*y*y*y*y*y*y*y*w*w*w*:best", &top_k, &absent, &rows, &counts, &slack, &offsets,
                          &bytes, &columns, &words, &slots, &begins, &weights, &rests, &out_rows, &out_scores, &out_sizes))
        return NULL;
    int64_t pairs = rows.len / 4, texts = slack.len / 4, total = words.len / 8;
    int64_t count_bytes = pairs ? counts.len / pairs : 1;
    Segment segment = {rows.buf, counts.buf, slack.buf, offsets.buf, absent.buf, bytes.buf, columns.buf, pairs, texts, count_bytes};
    Queries all = {words.buf, slots.buf, begins.buf, weights.buf, rests.buf, begins.len / 8 - 1, top_k, out_rows.buf,
                   out_scores.buf, out_sizes.buf};
    int64_t hits = top_k * all.queries;
    int fits = top_k > 0 && (all.queries < 1 || top_k <= out_rows.len / 4) && (!absent.buf || absent.len == texts) && (count_bytes == 1 || count_bytes == 2 || count_bytes == 4) &&
               counts.len == pairs * count_bytes && bytes.len == pairs &&
               texts <= UINT32_MAX - RANGE && offsets.len >= 8 && all.queries >= 0 &&
               columns.len % (texts + !texts) == 0 && slots.len == total * 8 && weights.len == total * 8 && rests.len == total * 8 && out_rows.len == hits * 4 &&
               out_scores.len == hits * 4 && out_sizes.len == all.queries * 8 &&
               belong_together(&segment, offsets.len / 8 - 1, columns.len / (texts + !texts), &all, total);
    int enough = 1;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        enough = search_all(&segment, &all);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&absent), PyBuffer_Release(&rows), PyBuffer_Release(&counts), PyBuffer_Release(&slack);
    PyBuffer_Release(&offsets), PyBuffer_Release(&bytes), PyBuffer_Release(&columns), PyBuffer_Release(&slots), PyBuffer_Release(&words), PyBuffer_Release(&begins), PyBuffer_Release(&weights);
    PyBuffer_Release(&rests), PyBuffer_Release(&out_rows), PyBuffer_Release(&out_scores), PyBuffer_Release(&out_sizes);
    if (!enough) return PyErr_NoMemory();
    if (!fits) return refused("best");
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"best", best, METH_VARARGS,
     "best(top_k, absent, rows, counts, slack, offsets, bytes, columns, words, slots, begins, weights, rests, out_rows, out_scores, out_sizes)"},
    {NULL, NULL, 0, NULL},
};

MODULE(_matches, "The best texts of a segment by BM25.")
