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

enum { ENDED_NEAR = 1024 };

/* What Python is given for so many streams and tokens. */
typedef struct {
    long long counts; /* streams << 32 | tokens */
    PyObject *given;  /* or NULL */
} EndedView;

/* Where a lane writes to: entries, streams whose step has ended, their final tokens; and what Python is given for so many of them. */
typedef struct {
    Py_buffer entries, ended, tokens; /* obj: NULL until they are there */
    PyObject *of_entries, *of_ended;  /* mappings, by the number of entries, and of streams << 32 | tokens */
    PyObject **entries_given;         /* what they gave, by the number of entries; or NULL */
    EndedView *ended_given;           /* ENDED_NEAR, each place for many counts */
} LaneViews;

typedef struct {
    PyObject_HEAD
    gh_search *search;
    PyObject **tries; /* of each stream, or NULL */
    LaneViews *views; /* of each lane */
    PyObject *ngram;  /* what scores, or NULL */
    PyObject *ints;   /* makes an array of int32 of anything else */
    int queries;      /* of the last feed */
    int busy;         /* while a Python function scores: nothing else may be called */
} Search;

extern PyTypeObject TrieType, NgramType;

/* A contiguous buffer of that format ("i": int32, "I": uint32, "d": double, "B": bytes); 0 with an exception if it is another. */
int gh_buffer(PyObject *object, char format, int writable, const char *name, Py_buffer *view);

/* search_new's part: the settings, checked. 0, or -1 with an exception. */
int gh_parse_options(PyObject *settings, gh_options *options);

/* module_lanes.c */
PyObject *gh_lane_use(Search *self, PyObject *args);
PyObject *gh_lane_begin(Search *self, PyObject *const *args, Py_ssize_t count);
PyObject *gh_lane_turn(Search *self, PyObject *const *args, Py_ssize_t count);
PyObject *gh_lane_feed(Search *self, PyObject *const *args, Py_ssize_t count);
PyObject *gh_lane_ask(Search *self, PyObject *lane);
PyObject *gh_lane_cancel(Search *self, PyObject *lane);
PyObject *gh_lane_outcomes(Search *self, PyObject *lane);
PyObject *gh_lane_ended(Search *self, PyObject *lane);
void gh_lane_release(const Search *self, LaneViews *views);

PyObject *gh_kept(Search *self, PyObject *args);
PyObject *gh_score(Search *self, PyObject *args);
int gh_stream_number(const Search *self, Py_ssize_t stream);

#endif
