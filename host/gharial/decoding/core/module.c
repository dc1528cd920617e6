/* SPDX-License-Identifier: Apache-2.0
 * The Python module gharial.decoding._search: a thin layer over search.h, which checks all that comes from Python. */
#include "module.h"

#include <stddef.h>
#include <stdlib.h>
#include <structmember.h>

/* 0 if the search can be used and has such a stream. */
int gh_stream_number(const Search *self, Py_ssize_t stream)
{
    if (!self->search || self->busy)
        PyErr_SetString(PyExc_RuntimeError, self->busy ? "the search is at work" : "the search has not been set up");
    else if (stream < 0 || stream >= self->search->stream_count)
        PyErr_SetString(PyExc_IndexError, "no such stream");
    else
        return 0;
    return -1;
}

static int pieces_init(gh_search *search, const Py_buffer *letters, const Py_buffer *ends, const Py_buffer *scored, const Py_buffer *words)
{
    const Py_ssize_t classes = search->options.classes, total = letters->len / 4;
    const int32_t *end = ends->buf;
    int sound = ends->len == 4 * classes && scored->len == classes && total < INT32_MAX;
    for (Py_ssize_t i = 0; sound && i < classes; i++)
        sound = end[i] >= (i ? end[i - 1] : 0) && end[i] <= total;
    if (!sound || end[classes - 1] != total) {
        PyErr_SetString(PyExc_ValueError, "the pieces do not fit the classes");
        return -1;
    }
    if (gh_set_pieces(search, letters->buf, ends->buf, scored->buf, words->buf)) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static int search_init(Search *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    static const char formats[5] = {'i', 'I', 'i', 'B', 'I'};
    PyObject *settings, *given[5], *scores, *ints;
    Py_buffer views[5];
    gh_options options = {0};
    int streams, lanes, entries, held = 0;
    if (!PyArg_ParseTuple(args, "OiiiOOOOOOO", &settings, &streams, &lanes, &entries, &given[0], &given[1], &given[2], &given[3], &scores, &given[4],
                          &ints) ||
        gh_parse_options(settings, &options))
        return -1;
    if (scores != Py_None && (!PyObject_TypeCheck(scores, &NgramType) || !((Ngram *)scores)->ngram.bytes)) {
        PyErr_SetString(PyExc_TypeError, "ngram: an Ngram wanted");
        return -1;
    }
    const gh_ngram *ngram = scores == Py_None ? NULL : &((Ngram *)scores)->ngram;
    if (self->search) {
        PyErr_SetString(PyExc_RuntimeError, "the search has been set up already");
        return -1;
    }
    while (held < 5 && gh_buffer(given[held], formats[held], 0, "search", &views[held]))
        held++;
    if (held == 5) {
        const Py_ssize_t slots = views[0].len / 4;
        int sound = streams >= 1 && streams <= 65536 && lanes >= 1 && lanes <= 64 && entries >= 1 && entries <= 65535 && slots >= 1 && slots <= 65536;
        for (Py_ssize_t i = 0; sound && i < slots; i++)
            sound = ((int32_t *)views[0].buf)[i] >= 0 && ((int32_t *)views[0].buf)[i] < 65536;
        sound = sound && (!ngram || (options.ngram && views[4].len == 4 * (Py_ssize_t)options.classes));
        for (int32_t i = 0; sound && ngram && i < options.classes; i++)
            sound = ((uint32_t *)views[4].buf)[i] < ngram->words;
        gh_search *search = sound ? gh_search_new(&options, streams, lanes, entries, views[0].buf, (int32_t)slots, ngram) : NULL;
        self->tries = search ? calloc((size_t)streams, sizeof *self->tries) : NULL;
        self->views = search ? calloc((size_t)lanes, sizeof *self->views) : NULL;
        if (!sound)
            PyErr_SetString(PyExc_ValueError, "streams, slots 1 .. 65536, lanes 1 .. 64, entries 1 .. 65535, words of the n-gram");
        else if (!search || !self->tries || !self->views)
            PyErr_NoMemory();
        else
            pieces_init(search, &views[1], &views[2], &views[3], &views[4]);
        if (PyErr_Occurred()) {
            gh_search_free(search);
            free(self->tries);
            free(self->views);
            self->tries = NULL;
            self->views = NULL;
        } else {
            self->search = search;
            self->ngram = ngram ? Py_NewRef(scores) : NULL;
            self->ints = Py_NewRef(ints);
        }
    }
    while (held--)
        PyBuffer_Release(&views[held]);
    return PyErr_Occurred() ? -1 : 0;
}

static void search_dealloc(Search *self)
{
    for (int32_t i = 0; self->search && i < self->search->stream_count; i++)
        Py_XDECREF(self->tries[i]);
    for (int32_t i = 0; self->search && i < self->search->lane_count; i++)
        gh_lane_release(self, &self->views[i]);
    free(self->views);
    free(self->tries);
    gh_search_free(self->search);
    Py_XDECREF(self->ngram);
    Py_XDECREF(self->ints);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *search_open(Search *self, PyObject *args)
{
    Py_ssize_t number;
    PyObject *trie, *prefix;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "nOO", &number, &trie, &prefix) || gh_stream_number(self, number))
        return NULL;
    if (trie != Py_None && (!PyObject_TypeCheck(trie, &TrieType) || !((Trie *)trie)->trie)) {
        PyErr_SetString(PyExc_TypeError, "keywords: a Trie wanted");
        return NULL;
    }
    if (!gh_buffer(prefix, 'i', 0, "prefix", &view))
        return NULL;
    int sound = view.len <= 4 * 65536;
    for (Py_ssize_t i = 0; sound && i < view.len / 4; i++) {
        const int32_t token = ((int32_t *)view.buf)[i];
        sound = token >= 0 && token < self->search->options.classes && token != self->search->options.blank;
    }
    gh_fault fault = GH_FINE;
    if (sound) {
        fault = gh_open(self->search, (int32_t)number, trie == Py_None ? NULL : ((Trie *)trie)->trie, view.buf, (int32_t)(view.len / 4));
        Py_XSETREF(self->tries[number], trie == Py_None ? NULL : Py_NewRef(trie));
    }
    PyBuffer_Release(&view);
    if (!sound)
        PyErr_SetString(PyExc_ValueError, "prefix: no such token");
    else if (fault)
        PyErr_NoMemory();
    if (!sound || fault)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *search_close(Search *self, PyObject *args)
{
    Py_ssize_t number;
    if (!PyArg_ParseTuple(args, "n", &number) || gh_stream_number(self, number))
        return NULL;
    gh_close(self->search, (int32_t)number);
    Py_CLEAR(self->tries[number]);
    Py_RETURN_NONE;
}

static PyObject *search_pools(Search *self, PyObject *Py_UNUSED(none))
{
    if (gh_stream_number(self, 0))
        return NULL;
    const gh_pool *pools[5] = {&self->search->slots, &self->search->hypotheses, &self->search->evaluations, &self->search->tokens,
                               &self->search->ngrams};
    PyObject *tuple = PyTuple_New(5);
    for (int i = 0; tuple && i < 5; i++) {
        PyObject *one = Py_BuildValue("(II)", pools[i]->free, pools[i]->capacity);
        if (!one)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, one);
    }
    return tuple;
}

static PyObject *search_grown(Search *self, PyObject *Py_UNUSED(none))
{
    if (gh_stream_number(self, 0))
        return NULL;
    const gh_search *s = self->search;
    return PyLong_FromUnsignedLong(s->grown + s->hypotheses.grown + s->evaluations.grown + s->tokens.grown + s->ngrams.grown);
}

static PyMethodDef methods[] = {
    {"open", (PyCFunction)search_open, METH_VARARGS, "Begin a stream anew."},
    {"close", (PyCFunction)search_close, METH_VARARGS, "End a stream."},
    {"use", (PyCFunction)gh_lane_use, METH_VARARGS, "Where a lane's entries, ended streams and final tokens are written to."},
    {"begin", (PyCFunction)(void (*)(void))gh_lane_begin, METH_FASTCALL, "Begin a step of streams; as ask."},
    {"turn", (PyCFunction)(void (*)(void))gh_lane_turn, METH_FASTCALL, "feed, ask and ended at once: a pair."},
    {"feed", (PyCFunction)(void (*)(void))gh_lane_feed, METH_FASTCALL, "Take results; the number of n-gram queries."},
    {"score", (PyCFunction)gh_score, METH_VARARGS, "Answer the n-gram queries."},
    {"ask", (PyCFunction)gh_lane_ask, METH_O, "Go on; what use was given for the number of entries, 0 at the end."},
    {"cancel", (PyCFunction)gh_lane_cancel, METH_O, "Give up a lane; its streams fail."},
    {"outcomes", (PyCFunction)gh_lane_outcomes, METH_O, "Streams whose step has ended."},
    {"ended", (PyCFunction)gh_lane_ended, METH_O, "The same into arrays: what use was given for streams << 32 | tokens."},
    {"kept", (PyCFunction)gh_kept, METH_VARARGS, "Hypotheses of a stream."},
    {"grown", (PyCFunction)search_grown, METH_NOARGS, "How often memory was taken since the search was made, prefixes apart."},
    {"pools", (PyCFunction)search_pools, METH_NOARGS, "(free, all) of slots, hypotheses, evaluations, tokens, n-gram states."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"queries", T_INT, offsetof(Search, queries), READONLY, "Scores that the last feed asked the n-gram for."},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject SearchType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gharial.decoding._search.Search",
    .tp_basicsize = sizeof(Search),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)search_init,
    .tp_dealloc = (destructor)search_dealloc,
    .tp_methods = methods,
    .tp_members = members,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_search", .m_size = -1};

PyMODINIT_FUNC PyInit__search(void)
{
    if (PyType_Ready(&SearchType) || PyType_Ready(&TrieType) || PyType_Ready(&NgramType))
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddObjectRef(module, "Search", (PyObject *)&SearchType) || PyModule_AddObjectRef(module, "Trie", (PyObject *)&TrieType) ||
                   PyModule_AddObjectRef(module, "Ngram", (PyObject *)&NgramType)))
        Py_CLEAR(module);
    return module;
}
