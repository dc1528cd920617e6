/* SPDX-License-Identifier: Apache-2.0
 * What Python calls in every round: steps begun, results taken, and what came of them. */
#include "module.h"

#include <math.h>

/* A final token as Python's arrays have it. */
typedef struct {
    int32_t id, step;
    double confidence;
} final_token;

/* The lane's number; -1 with an exception if there is no such lane or the search cannot be used. */
static Py_ssize_t lane_number(const Search *self, PyObject *given)
{
    const Py_ssize_t number = PyNumber_AsSsize_t(given, PyExc_IndexError);
    if ((number == -1 && PyErr_Occurred()) || gh_stream_number(self, 0))
        return -1;
    if (number >= 0 && number < self->search->lane_count)
        return number;
    PyErr_SetString(PyExc_IndexError, "no such lane");
    return -1;
}

/* The same for a lane at that stage. */
static Py_ssize_t lane_at(const Search *self, PyObject *given, gh_lane_stage stage)
{
    const Py_ssize_t number = lane_number(self, given);
    if (number < 0)
        return -1;
    if (!self->views[number].entries.obj)
        PyErr_SetString(PyExc_RuntimeError, "the lane has nowhere to write to");
    else if (self->search->lanes[number].stage == stage)
        return number;
    else
        PyErr_SetString(PyExc_RuntimeError, stage == LANE_FREE      ? "the lane is in use"
                                            : stage == LANE_RESULTS ? "nothing was asked for on this lane"
                                                                    : "the lane has no results");
    return -1;
}

static int has_arguments(Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%zd arguments wanted, %zd given", wanted, count);
    return 0;
}

void gh_lane_release(LaneViews *views)
{
    if (views->entries.obj) {
        PyBuffer_Release(&views->entries);
        PyBuffer_Release(&views->ended);
        PyBuffer_Release(&views->tokens);
        Py_DECREF(views->of_entries);
        Py_DECREF(views->of_ended);
    }
}

/* use(lane, entries, ended, tokens, of_entries, of_ended): bytes, as many entries and streams as there can be, any number of tokens; the
 * mappings that LaneViews names. */
PyObject *gh_lane_use(Search *self, PyObject *args)
{
    PyObject *lane, *given[3], *of_entries, *of_ended;
    Py_buffer views[3];
    int held = 0;
    if (!PyArg_ParseTuple(args, "OOOOOO", &lane, &given[0], &given[1], &given[2], &of_entries, &of_ended))
        return NULL;
    const Py_ssize_t number = lane_number(self, lane);
    if (number < 0)
        return NULL;
    while (held < 3 && gh_buffer(given[held], 'B', 1, "lane", &views[held]))
        held++;
    if (held == 3 && (views[0].len < (Py_ssize_t)self->search->most_entries * ENTRY_BYTES ||
                      views[1].len < (Py_ssize_t)self->search->stream_count * (Py_ssize_t)sizeof(gh_outcome)))
        PyErr_SetString(PyExc_ValueError, "lane: too few bytes");
    if (PyErr_Occurred()) {
        while (held--)
            PyBuffer_Release(&views[held]);
        return NULL;
    }
    gh_lane_release(&self->views[number]);
    self->views[number] = (LaneViews){views[0], views[1], views[2], Py_NewRef(of_entries), Py_NewRef(of_ended)};
    Py_RETURN_NONE;
}

/* Whether these streams can begin a step: each is there once, between two steps, with an encoder slot and bank that exist. */
static int can_begin(gh_search *search, const int32_t *streams, const int32_t *encoders, const int32_t *banks, int32_t count)
{
    int32_t checked = 0, sound = 1;
    for (int32_t i = 0; i < count; i++)
        if (streams[i] < 0 || streams[i] >= search->stream_count)
            return 0;
    gh_fetch(search, streams, count);
    for (; checked < count; checked++) {
        gh_stream *stream = gh_stream_at(search, streams[checked]);
        if (stream->stage != BETWEEN || encoders[checked] < 0 || encoders[checked] > 65535 || (banks[checked] & ~1)) {
            sound = 0;
            break;
        }
        stream->stage = WITHIN;
    }
    for (int32_t i = 0; i < checked; i++)
        gh_stream_at(search, streams[i])->stage = BETWEEN;
    return sound;
}

static PyObject *item(PyObject *of, long long number)
{
    PyObject *key = PyLong_FromLongLong(number), *found = key ? PyObject_GetItem(of, key) : NULL;
    Py_XDECREF(key);
    return found;
}

/* What Python is given for the entries that the lane asks for now. */
static PyObject *asked(const Search *self, Py_ssize_t lane)
{
    return item(self->views[lane].of_entries, gh_ask(self->search, (int32_t)lane, self->views[lane].entries.buf));
}

/* begin(lane, streams, encoders, banks) */
PyObject *gh_lane_begin(Search *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *result = NULL;
    Py_buffer views[3];
    int held = 0;
    if (!has_arguments(count, 4))
        return NULL;
    const Py_ssize_t number = lane_at(self, args[0], LANE_FREE);
    if (number < 0)
        return NULL;
    while (held < 3 && gh_buffer(args[1 + held], 'i', 0, "begin", &views[held]))
        held++;
    if (held == 3) {
        const Py_ssize_t streams = views[0].len / 4;
        if (streams > self->search->stream_count || views[1].len != views[0].len || views[2].len != views[0].len ||
            !can_begin(self->search, views[0].buf, views[1].buf, views[2].buf, (int32_t)streams))
            PyErr_SetString(PyExc_ValueError, "streams between two steps, once each, with encoder slots and banks wanted");
        else {
            gh_begin(self->search, (int32_t)number, views[0].buf, views[1].buf, views[2].buf, (int32_t)streams);
            result = asked(self, number);
        }
    }
    while (held--)
        PyBuffer_Release(&views[held]);
    return result;
}

/* (lane, results, stride): the lane's number, -1 with an exception. */
static Py_ssize_t fed(Search *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    if (!has_arguments(count, 3))
        return -1;
    const Py_ssize_t number = lane_at(self, args[0], LANE_RESULTS), stride = PyNumber_AsSsize_t(args[2], PyExc_ValueError);
    if (number < 0 || PyErr_Occurred() || !gh_buffer(args[1], 'B', 0, "results", &view))
        return -1;
    const gh_lane *lane = &self->search->lanes[number];
    const int32_t bytes = gh_result_bytes(&self->search->options);
    const int sound = stride >= bytes && stride <= INT32_MAX && view.len >= bytes && (view.len - bytes) / stride >= lane->entry_count - 1;
    if (sound) {
        gh_feed(self->search, (int32_t)number, view.buf, (int32_t)stride);
        self->queries = lane->query_count;
    } else
        PyErr_SetString(PyExc_ValueError, "results: too few bytes");
    PyBuffer_Release(&view);
    return sound ? number : -1;
}

PyObject *gh_lane_feed(Search *self, PyObject *const *args, Py_ssize_t count)
{
    const Py_ssize_t number = fed(self, args, count);
    return number < 0 ? NULL : PyLong_FromLong(self->queries);
}

/* Outcomes to the lane's arrays, and what Python is given for them; None where there is no room for all tokens. */
static PyObject *ended(const Search *self, Py_ssize_t number)
{
    const gh_lane *lane = &self->search->lanes[number];
    const LaneViews *views = &self->views[number];
    gh_outcome *outcomes = views->ended.buf;
    final_token *tokens = views->tokens.buf;
    if (lane->final_count > views->tokens.len / (Py_ssize_t)sizeof *tokens)
        Py_RETURN_NONE;
    for (int32_t i = 0; i < lane->outcome_count; i++)
        outcomes[i] = lane->outcomes[i];
    for (int32_t i = 0; i < lane->final_count; i++)
        tokens[i] = (final_token){lane->finals[i].id, lane->finals[i].step, exp(lane->finals[i].log_p)};
    return item(views->of_ended, (long long)lane->outcome_count << 32 | lane->final_count);
}

/* turn(lane, results, stride): feed, ask and ended at once; (what ask gives, what ended gives). */
PyObject *gh_lane_turn(Search *self, PyObject *const *args, Py_ssize_t count)
{
    if (!self->search || (self->search->options.ngram && !self->search->ngram)) {
        PyErr_SetString(PyExc_RuntimeError, "the n-gram's scores come from elsewhere");
        return NULL;
    }
    const Py_ssize_t number = fed(self, args, count);
    if (number < 0)
        return NULL;
    PyObject *entries = asked(self, number), *outcomes = entries ? ended(self, number) : NULL;
    PyObject *both = outcomes ? PyTuple_Pack(2, entries, outcomes) : NULL;
    Py_XDECREF(entries);
    Py_XDECREF(outcomes);
    return both;
}

PyObject *gh_lane_ask(Search *self, PyObject *lane)
{
    const Py_ssize_t number = lane_at(self, lane, LANE_SCORES);
    return number < 0 ? NULL : asked(self, number);
}

PyObject *gh_lane_cancel(Search *self, PyObject *lane)
{
    const Py_ssize_t number = lane_number(self, lane);
    if (number < 0)
        return NULL;
    gh_cancel(self->search, (int32_t)number);
    Py_RETURN_NONE;
}

/* [(stream, fault, new finals as (id, step, confidence))] of the streams whose step ended in the last begin, turn or ask. */
PyObject *gh_lane_outcomes(Search *self, PyObject *given)
{
    const Py_ssize_t number = lane_number(self, given);
    if (number < 0)
        return NULL;
    const gh_lane *lane = &self->search->lanes[number];
    PyObject *list = PyList_New(lane->outcome_count);
    for (int32_t i = 0; list && i < lane->outcome_count; i++) {
        const gh_outcome *outcome = &lane->outcomes[i];
        PyObject *finals = PyTuple_New(outcome->count);
        for (int32_t j = 0; finals && j < outcome->count; j++) {
            const gh_token *token = &lane->finals[outcome->first + j];
            PyObject *one = Py_BuildValue("(iid)", token->id, token->step, exp(token->log_p));
            if (!one)
                Py_CLEAR(finals);
            else
                PyTuple_SET_ITEM(finals, j, one);
        }
        PyObject *one = finals ? Py_BuildValue("(iiN)", outcome->stream, outcome->fault, finals) : NULL;
        if (!one)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, one);
    }
    return list;
}

/* What Python is given for the streams whose step ended in the last begin, turn or ask; None where there is no room for all tokens. */
PyObject *gh_lane_ended(Search *self, PyObject *given)
{
    const Py_ssize_t number = lane_number(self, given);
    if (number < 0)
        return NULL;
    if (self->views[number].entries.obj)
        return ended(self, number);
    PyErr_SetString(PyExc_RuntimeError, "the lane has nowhere to write to");
    return NULL;
}
