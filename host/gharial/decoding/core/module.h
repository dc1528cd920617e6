/* SPDX-License-Identifier: Apache-2.0
 * What the files of the Python module share. */
#ifndef GHARIAL_DECODING_MODULE_H
#define GHARIAL_DECODING_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "search.h"

typedef struct {
    PyObject_HEAD
    gh_trie *trie;
} Trie;

typedef struct {
    PyObject_HEAD
    gh_ngram ngram; /* bytes: NULL until it is set up */
    Py_buffer view;
} Ngram;

typedef struct {
    PyObject_HEAD
    gh_search *search;
    PyObject **tries; /* of each stream, or NULL */
    PyObject *ngram;  /* what scores, or NULL */
    int busy;         /* while a Python function scores: nothing else may be called */
} Search;

extern PyTypeObject TrieType, NgramType;

/* A contiguous buffer of that format ("i": int32, "I": uint32, "d": double, "B": bytes); 0 with an exception if it is another. */
int gh_buffer(PyObject *object, char format, int writable, const char *name, Py_buffer *view);

/* search_new's part: the settings, checked. 0, or -1 with an exception. */
int gh_parse_options(PyObject *settings, gh_options *options);

PyObject *gh_kept(Search *self, PyObject *args);
PyObject *gh_score(Search *self, PyObject *args);
int gh_stream_number(const Search *self, Py_ssize_t stream);

#endif
