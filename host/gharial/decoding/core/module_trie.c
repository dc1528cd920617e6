/* SPDX-License-Identifier: Apache-2.0
 * Python's class Trie, buffers and settings. */
#include "module.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int gh_buffer(PyObject *object, char format, int writable, const char *name, Py_buffer *view)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)))
        return 0;
    if (view->format && view->format[0] == format && view->format[1] == 0)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s: format '%c' wanted", name, format);
    PyBuffer_Release(view);
    return 0;
}

static void *copied(const Py_buffer *view)
{
    void *copy = malloc((size_t)view->len + 1);
    if (copy)
        memcpy(copy, view->buf, (size_t)view->len);
    return copy;
}

/* Edges lead away from the root and suffixes towards it, so that every walk ends. */
static int sound(const gh_trie *t, Py_ssize_t edges)
{
    if (t->first[0] != 0 || t->first[t->nodes] != edges || t->suffix[0] != 0)
        return 0;
    for (int32_t node = 0; node < t->nodes; node++) {
        if (t->first[node] > t->first[node + 1] || t->first[node + 1] > edges || t->suffix[node] < 0 || (node && t->suffix[node] >= node))
            return 0;
        for (int32_t edge = t->first[node]; edge < t->first[node + 1]; edge++)
            if (t->targets[edge] <= node || t->targets[edge] >= t->nodes)
                return 0;
    }
    return 1;
}

static int trie_init(Trie *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    static const char formats[6] = {'i', 'I', 'i', 'i', 'd', 'd'};
    PyObject *given[6];
    Py_buffer views[6];
    int held = 0;
    if (!PyArg_ParseTuple(args, "OOOOOO", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5]))
        return -1;
    if (self->trie) {
        PyErr_SetString(PyExc_RuntimeError, "the trie has been set up already");
        return -1;
    }
    while (held < 6 && gh_buffer(given[held], formats[held], 0, "trie", &views[held]))
        held++;
    gh_trie *trie = held == 6 ? calloc(1, sizeof *trie) : NULL;
    const Py_ssize_t nodes = held == 6 ? views[3].len / 4 : 0, edges = held == 6 ? views[1].len / 4 : 0;
    if (trie) {
        trie->nodes = (int32_t)nodes;
        trie->first = copied(&views[0]);
        trie->letters = copied(&views[1]);
        trie->targets = copied(&views[2]);
        trie->suffix = copied(&views[3]);
        trie->gain = copied(&views[4]);
        trie->at_risk = copied(&views[5]);
        if (!trie->first || !trie->letters || !trie->targets || !trie->suffix || !trie->gain || !trie->at_risk)
            PyErr_NoMemory();
        else if (nodes < 1 || nodes > INT32_MAX || views[0].len != 4 * (nodes + 1) || views[2].len != 4 * edges || views[4].len != 8 * nodes ||
                 views[5].len != 8 * nodes || !sound(trie, edges))
            PyErr_SetString(PyExc_ValueError, "the arrays are no trie");
    } else if (held == 6)
        PyErr_NoMemory();
    while (held--)
        PyBuffer_Release(&views[held]);
    if (PyErr_Occurred()) {
        gh_trie_free(trie);
        return -1;
    }
    self->trie = trie;
    return 0;
}

static void trie_dealloc(Trie *self)
{
    gh_trie_free(self->trie);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

PyTypeObject TrieType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gharial.decoding._search.Trie",
    .tp_basicsize = sizeof(Trie),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)trie_init,
    .tp_dealloc = (destructor)trie_dealloc,
};

int gh_parse_options(PyObject *settings, gh_options *o)
{
    int eos, mode;
    if (!PyTuple_Check(settings)) {
        PyErr_SetString(PyExc_TypeError, "settings: a tuple wanted");
        return -1;
    }
    if (!PyArg_ParseTuple(settings, "iiidddddppiddiiiiiii", &o->width, &o->max_symbols, &o->max_expansions, &o->topk_threshold, &o->score_threshold,
                          &o->final_limit, &o->blank_penalty, &o->ngram_scale, &o->ngram, &o->merge_lone_marks, &eos, &o->alpha, &o->least,
                          &o->classes, &o->blank, &o->eos_token, &o->temperature, &o->logit_bits, &mode, &o->listed))
        return -1;
    o->eos = (gh_eos)eos;
    o->mode = (gh_mode)mode;
    const int named = o->eos_token == NONE ? eos == EOS_NONE : o->eos_token >= 0 && o->eos_token < o->classes && o->eos_token != o->blank;
    if (o->width < 1 || o->width > MOST_WIDTH || o->max_symbols < 1 || o->max_symbols > 255 || o->max_expansions < 1 || o->max_expansions > 65536 ||
        eos < EOS_NONE || eos > EOS_PREDICT || !named || o->classes < 1 || o->classes > 65535 || o->blank < 0 || o->blank >= o->classes ||
        o->temperature < 1 || o->temperature > 65535 || o->logit_bits < 4 || o->logit_bits > 12 || mode < MODE_TOP_K || mode > MODE_ALL ||
        o->listed < 1 || o->listed > MOST_LISTED || o->listed > o->classes || !isfinite(o->blank_penalty) || fabs(o->blank_penalty) > 20.0 ||
        !isfinite(o->ngram_scale) || !isfinite(o->alpha) || isnan(o->least) || isnan(o->topk_threshold) || isnan(o->score_threshold) ||
        isnan(o->final_limit)) {
        PyErr_SetString(PyExc_ValueError, "a setting is out of its range");
        return -1;
    }
    return 0;
}
