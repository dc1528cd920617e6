/* SPDX-License-Identifier: Apache-2.0
 * Python's class Ngram: the tables of a KenLM binary in a buffer, as gharial.ngram.native describes them. */
#include "module.h"

#include <string.h>

/* A state as Python has it: words, then back-offs, as many as matter. */
static PyObject *state_bytes(const gh_ngram_state *state)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)state->length * 8);
    if (bytes) {
        memcpy(PyBytes_AS_STRING(bytes), state->words, state->length * 4);
        memcpy(PyBytes_AS_STRING(bytes) + state->length * 4, state->backoffs, state->length * 4);
    }
    return bytes;
}

static int state_of(const gh_ngram *ngram, PyObject *bytes, gh_ngram_state *state)
{
    const Py_ssize_t length = PyBytes_GET_SIZE(bytes) / 8;
    int sound = PyBytes_GET_SIZE(bytes) % 8 == 0 && length < (Py_ssize_t)ngram->order;
    *state = (gh_ngram_state){0};
    if (sound) {
        state->length = (uint32_t)length;
        memcpy(state->words, PyBytes_AS_STRING(bytes), (size_t)length * 4);
        memcpy(state->backoffs, PyBytes_AS_STRING(bytes) + length * 4, (size_t)length * 4);
    }
    for (Py_ssize_t i = 0; sound && i < length; i++)
        sound = state->words[i] < ngram->words;
    if (!sound)
        PyErr_SetString(PyExc_ValueError, "this is no state of the n-gram");
    return sound ? 0 : -1;
}

static int opened(const Ngram *self)
{
    if (!self->ngram.bytes)
        PyErr_SetString(PyExc_RuntimeError, "the n-gram has not been set up");
    return self->ngram.bytes ? 0 : -1;
}

static int parse_table(PyObject *given, gh_ngram_table *t)
{
    unsigned long long at, entries, high, high_count, probs, backoffs;
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "tables: tuples wanted");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "KKIIIKKKK", &at, &entries, &t->stride, &t->next_at, &t->next_bits, &high, &high_count, &probs, &backoffs))
        return -1;
    t->at = at;
    t->entries = entries;
    t->high = high;
    t->high_count = high_count;
    t->probs = probs;
    t->backoffs = backoffs;
    return 0;
}

static int ngram_init(Ngram *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *buffer, *tables;
    unsigned long long vocabulary, places, unigrams;
    gh_ngram n = {0};
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "OpIKKKI(III)O!", &buffer, &n.trie, &n.words, &vocabulary, &places, &unigrams, &n.unigram_stride, &n.word_bits,
                          &n.prob_bits, &n.backoff_bits, &PyTuple_Type, &tables))
        return -1;
    if (self->ngram.bytes) {
        PyErr_SetString(PyExc_RuntimeError, "the n-gram has been set up already");
        return -1;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(tables);
    if (count < LEAST_ORDER - 1 || count > MOST_ORDER - 1) {
        PyErr_SetString(PyExc_ValueError, "n-grams of 2 to 6 words wanted");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (parse_table(PyTuple_GET_ITEM(tables, i), &n.tables[i]))
            return -1;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE))
        return -1;
    n.order = (uint32_t)count + 1;
    n.vocabulary = vocabulary;
    n.places = places;
    n.unigrams = unigrams;
    n.bytes = view.buf;
    n.size = (uint64_t)view.len;
    if (!gh_ngram_fits(&n)) {
        PyErr_SetString(PyExc_ValueError, "the tables do not fit into the bytes");
        PyBuffer_Release(&view);
        return -1;
    }
    self->view = view;
    self->ngram = n;
    return 0;
}

static void ngram_dealloc(Ngram *self)
{
    if (self->ngram.bytes)
        PyBuffer_Release(&self->view);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *ngram_word(Ngram *self, PyObject *args)
{
    const char *text;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "y#", &text, &length) || opened(self))
        return NULL;
    return PyLong_FromUnsignedLong(gh_ngram_word(&self->ngram, (const uint8_t *)text, (size_t)length));
}

static int has_word(const Ngram *self, unsigned word)
{
    if (word < self->ngram.words)
        return 1;
    PyErr_SetString(PyExc_IndexError, "no such word");
    return 0;
}

static PyObject *ngram_begin(Ngram *self, PyObject *args)
{
    unsigned word;
    gh_ngram_state state;
    if (!PyArg_ParseTuple(args, "I", &word) || opened(self) || !has_word(self, word))
        return NULL;
    gh_ngram_begin(&self->ngram, word, &state);
    return state_bytes(&state);
}

static PyObject *ngram_score(Ngram *self, PyObject *args)
{
    PyObject *bytes;
    unsigned word;
    gh_ngram_state from, to;
    if (!PyArg_ParseTuple(args, "SI", &bytes, &word) || opened(self) || !has_word(self, word) || state_of(&self->ngram, bytes, &from))
        return NULL;
    const float log_p = gh_ngram_score(&self->ngram, &from, word, &to);
    return Py_BuildValue("(dN)", (double)log_p, state_bytes(&to));
}

static PyMethodDef methods[] = {
    {"word", (PyCFunction)ngram_word, METH_VARARGS, "Number of a word, 0 if it is unknown."},
    {"begin", (PyCFunction)ngram_begin, METH_VARARGS, "The context of one word."},
    {"score", (PyCFunction)ngram_score, METH_VARARGS, "(log10 p of a word, the context behind it)."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject NgramType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gharial.decoding._search.Ngram",
    .tp_basicsize = sizeof(Ngram),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)ngram_init,
    .tp_dealloc = (destructor)ngram_dealloc,
    .tp_methods = methods,
};
