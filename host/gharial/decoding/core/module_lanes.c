/* SPDX-License-Identifier: Apache-2.0
 * What Python calls in every round: steps begun, results taken, and what came of them. */
#include "module.h"

#include <math.h>
#include <stdlib.h>

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

static int has_arguments(Py_ssize_t count, Py_ssize_t least, Py_ssize_t most)
{
    if (count >= least && count <= most)
        return 1;
    PyErr_Format(PyExc_TypeError, "%zd arguments wanted, %zd given", least, count);
    return 0;
}

static void forget_ended(const LaneViews *views)
{
    for (int i = 0; i < ENDED_NEAR; i++)
        Py_CLEAR(views->ended_given[i].given);
}

void gh_lane_release(const Search *self, LaneViews *views)
{
    if (!views->entries.obj)
        return;
    for (int32_t i = 0; i <= self->search->most_entries; i++)
        Py_XDECREF(views->entries_given[i]);
    forget_ended(views);
    free(views->entries_given);
    free(views->ended_given);
    PyBuffer_Release(&views->entries);
    PyBuffer_Release(&views->ended);
    PyBuffer_Release(&views->tokens);
    Py_DECREF(views->of_entries);
    Py_DECREF(views->of_ended);
}

/* use(lane, entries, ended, tokens, of_entries, of_ended): bytes, as many entries and streams as there can be, any number of tokens; the
 * mappings that LaneViews names. of_ended.more(count) gives room for that many tokens and more. */
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
    PyObject **entries_given = calloc((size_t)self->search->most_entries + 1, sizeof *entries_given);
    EndedView *ended_given = calloc(ENDED_NEAR, sizeof *ended_given);
    if (!PyErr_Occurred() && (!entries_given || !ended_given))
        PyErr_NoMemory();
    if (PyErr_Occurred()) {
        free(entries_given);
        free(ended_given);
        while (held--)
            PyBuffer_Release(&views[held]);
        return NULL;
    }
    gh_lane_release(self, &self->views[number]);
    self->views[number] = (LaneViews){views[0], views[1], views[2], Py_NewRef(of_entries), Py_NewRef(of_ended), entries_given, ended_given};
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
static PyObject *asked(const Search *self, Py_ssize_t lane, int begun)
{
    const LaneViews *views = &self->views[lane];
    const int32_t count = gh_ask(self->search, (int32_t)lane, views->entries.buf, begun);
    if (!views->entries_given[count])
        views->entries_given[count] = item(views->of_entries, count);
    return Py_XNewRef(views->entries_given[count]);
}

/* A buffer of int32, of anything that can be made one. */
static int ints(const Search *self, PyObject *given, Py_buffer *view)
{
    if (gh_buffer(given, 'i', 0, "begin", view))
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return 0;
    PyErr_Clear();
    PyObject *made = PyObject_CallOneArg(self->ints, given);
    const int found = made && gh_buffer(made, 'i', 0, "begin", view);
    Py_XDECREF(made); /* the view holds it */
    return found;
}

/* begin(lane, streams, encoders, banks) */
PyObject *gh_lane_begin(Search *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *result = NULL;
    Py_buffer views[3];
    int held = 0;
    if (!has_arguments(count, 4, 4))
        return NULL;
    const Py_ssize_t number = lane_at(self, args[0], LANE_FREE);
    if (number < 0)
        return NULL;
    while (held < 3 && ints(self, args[1 + held], &views[held]))
        held++;
    if (held == 3) {
        const Py_ssize_t streams = views[0].len / 4;
        if (self->search->lanes[number].stage != LANE_FREE) /* what makes an array may be anybody's code */
            PyErr_SetString(PyExc_RuntimeError, "the lane is in use");
        else if (streams > self->search->stream_count || views[1].len != views[0].len || views[2].len != views[0].len ||
                 !can_begin(self->search, views[0].buf, views[1].buf, views[2].buf, (int32_t)streams))
            PyErr_SetString(PyExc_ValueError, "streams between two steps, once each, with encoder slots and banks wanted");
        else {
            gh_begin(self->search, (int32_t)number, views[0].buf, views[1].buf, views[2].buf, (int32_t)streams);
            result = asked(self, number, 1);
        }
    }
    while (held--)
        PyBuffer_Release(&views[held]);
    return result;
}

/* (lane, results[, stride]): the lane's number, -1 with an exception. Without a stride, or None, results follow one another. */
static Py_ssize_t fed(Search *self, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    if (!has_arguments(count, 2, 3))
        return -1;
    const Py_ssize_t number = lane_at(self, args[0], LANE_RESULTS);
    if (number < 0)
        return -1;
    const int32_t bytes = gh_result_bytes(&self->search->options);
    const Py_ssize_t stride = count == 2 || args[2] == Py_None ? bytes : PyNumber_AsSsize_t(args[2], PyExc_ValueError);
    if ((stride == -1 && PyErr_Occurred()) || !gh_buffer(args[1], 'B', 0, "results", &view))
        return -1;
    const gh_lane *lane = &self->search->lanes[number];
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

/* Room for all the lane's tokens; 0 with an exception if there is none. */
static int make_room(LaneViews *views, int32_t tokens)
{
    Py_buffer room;
    PyObject *given = PyObject_CallMethod(views->of_ended, "more", "i", (int)tokens);
    const int found = given && gh_buffer(given, 'B', 1, "lane", &room);
    Py_XDECREF(given);
    if (!found)
        return 0;
    forget_ended(views);
    PyBuffer_Release(&views->tokens);
    views->tokens = room;
    if (room.len / (Py_ssize_t)sizeof(final_token) >= tokens)
        return 1;
    PyErr_SetString(PyExc_ValueError, "lane: too few bytes");
    return 0;
}

/* Outcomes to the lane's arrays, and what Python is given for them. */
static PyObject *ended(const Search *self, Py_ssize_t number)
{
    const gh_lane *lane = &self->search->lanes[number];
    LaneViews *views = &self->views[number];
    if (lane->final_count > views->tokens.len / (Py_ssize_t)sizeof(final_token) && !make_room(views, lane->final_count))
        return NULL;
    gh_outcome *outcomes = views->ended.buf;
    final_token *tokens = views->tokens.buf;
    for (int32_t i = 0; i < lane->outcome_count; i++)
        outcomes[i] = lane->outcomes[i];
    for (int32_t i = 0; i < lane->final_count; i++)
        tokens[i] = (final_token){lane->finals[i].id, lane->finals[i].step, exp(lane->finals[i].log_p)};
    const long long counts = (long long)lane->outcome_count << 32 | lane->final_count;
    EndedView *near = &views->ended_given[(unsigned)(lane->outcome_count * 61 + lane->final_count) % ENDED_NEAR];
    if (!near->given || near->counts != counts) {
        PyObject *given = item(views->of_ended, counts);
        if (!given)
            return NULL;
        Py_XSETREF(near->given, given);
        near->counts = counts;
    }
    return Py_NewRef(near->given);
}

/* turn(lane, results[, stride]): feed, ask and ended at once; (what ask gives, what ended gives). */
PyObject *gh_lane_turn(Search *self, PyObject *const *args, Py_ssize_t count)
{
    if (!self->search || (self->search->options.ngram && !self->search->ngram)) {
        PyErr_SetString(PyExc_RuntimeError, "the n-gram's scores come from elsewhere");
        return NULL;
    }
    const Py_ssize_t number = fed(self, args, count);
    if (number < 0)
        return NULL;
    PyObject *entries = asked(self, number, 0), *outcomes = entries ? ended(self, number) : NULL;
    PyObject *both = outcomes ? PyTuple_Pack(2, entries, outcomes) : NULL;
    Py_XDECREF(entries);
    Py_XDECREF(outcomes);
    return both;
}

PyObject *gh_lane_ask(Search *self, PyObject *lane)
{
    const Py_ssize_t number = lane_at(self, lane, LANE_SCORES);
    return number < 0 ? NULL : asked(self, number, 0);
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

/* What Python is given for the streams whose step ended in the last begin, turn or ask. */
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
