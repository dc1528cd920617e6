/* SPDX-License-Identifier: Apache-2.0
 * What Python sees of the hypotheses, and what it is asked of the n-gram. */
#include "module.h"

#include <math.h>

static PyObject *token_tuple(const gh_token *token)
{
    return Py_BuildValue("(iid)", token->id, token->step, exp(token->log_p));
}

/* (score, mean, slot, tokens that are not final as (id, step, confidence)) */
static PyObject *hypothesis_tuple(const gh_search *search, const gh_hypothesis *one, int32_t finals)
{
    const Py_ssize_t count = one->tokens - finals;
    PyObject *tokens = PyTuple_New(count);
    int32_t at = one->tail;
    for (Py_ssize_t i = count; tokens && i-- > 0; at = gh_token_at(search, at)->parent) {
        PyObject *token = token_tuple(gh_token_at(search, at));
        if (!token)
            Py_CLEAR(tokens);
        else
            PyTuple_SET_ITEM(tokens, i, token);
    }
    if (!tokens)
        return NULL;
    return Py_BuildValue("(ddiN)", one->score, gh_mean(one), one->asked ? (int)gh_slot_number(search, one->slot) : NONE, tokens);
}

PyObject *gh_kept(Search *self, PyObject *args)
{
    Py_ssize_t number, most;
    int by_mean;
    int32_t those[MOST_WIDTH];
    if (!PyArg_ParseTuple(args, "nnp", &number, &most, &by_mean) || gh_stream_number(self, number))
        return NULL;
    const gh_stream *stream = gh_stream_at(self->search, (int32_t)number);
    if (stream->stage != BETWEEN) {
        PyErr_SetString(PyExc_RuntimeError, "the stream is not between two steps");
        return NULL;
    }
    int32_t count = stream->kept_count;
    for (int32_t i = 0; i < count; i++)
        those[i] = stream->kept[i];
    if (by_mean)
        gh_by_mean(self->search, those, count);
    count = most < count ? (int32_t)(most < 0 ? 0 : most) : count;
    PyObject *list = PyList_New(count);
    for (int32_t i = 0; list && i < count; i++) {
        PyObject *one = hypothesis_tuple(self->search, gh_at(self->search, those[i]), stream->finals);
        if (!one)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, one);
    }
    return list;
}

/* score(lane, function, states, words, unit): function(states[from], words[token], states[to]) * unit is ln p of each query. */
PyObject *gh_score(Search *self, PyObject *args)
{
    Py_ssize_t number;
    PyObject *function, *states, *words;
    double unit;
    gh_search *search = self->search;
    if (!PyArg_ParseTuple(args, "nOO!O!d", &number, &function, &PyList_Type, &states, &PyList_Type, &words, &unit) || gh_stream_number(self, 0))
        return NULL;
    if (number < 0 || number >= search->lane_count || search->lanes[number].stage != LANE_SCORES) {
        PyErr_SetString(PyExc_RuntimeError, "the lane has no results");
        return NULL;
    }
    gh_lane *lane = &search->lanes[number];
    if (PyList_GET_SIZE(states) < (Py_ssize_t)search->ngrams.capacity || PyList_GET_SIZE(words) < search->options.classes) {
        PyErr_SetString(PyExc_ValueError, "states or words are too few");
        return NULL;
    }
    self->busy = 1;
    for (int32_t i = 0; i < lane->query_count; i++) {
        const gh_query *query = &lane->queries[i];
        const gh_entry *entry = &lane->entries[query->entry];
        const gh_stream *stream = gh_stream_at(search, entry->stream);
        if (stream->generation != entry->generation || stream->stage != WITHIN)
            continue;
        PyObject *given[4] = {NULL, PyList_GetItem(states, query->from), PyList_GetItem(words, query->token), PyList_GetItem(states, query->to)};
        if (!given[1] || !given[2] || !given[3])
            break;
        PyObject *result = PyObject_Vectorcall(function, given + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (!result)
            break;
        const double log_p = PyFloat_AsDouble(result) * unit;
        Py_DECREF(result);
        if (PyErr_Occurred())
            break;
        if (!isfinite(log_p))
            gh_fail(search, entry->stream, GH_NGRAM);
        else
            gh_evaluation_at(search, query->evaluation)->candidates[query->candidate].ngram_log_p = log_p;
    }
    self->busy = 0;
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
