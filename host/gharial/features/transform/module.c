/* SPDX-License-Identifier: Apache-2.0
 * The Python module gharial.features._transform: a thin layer over transform.h. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "transform.h"

enum { MOST_POINTS = 1 << 16 };

typedef struct {
    PyObject_HEAD
    gh_transform *transform;
} Transform;

/* A contiguous one-dimensional buffer of that format, for reading or writing; 0 with an exception if it is another. */
static int buffer(PyObject *object, const char *format, int writable, const char *name, Py_buffer *view)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)))
        return 0;
    if (view->format && view->format[0] == format[0] && view->format[1] == 0)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s: format '%s' wanted", name, format);
    PyBuffer_Release(view);
    return 0;
}

static int transform_init(Transform *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"window", "points", NULL};
    PyObject *window;
    Py_ssize_t points;
    Py_buffer view;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "On", names, &window, &points) || !buffer(window, "f", 0, "window", &view))
        return -1;
    const size_t length = (size_t)view.len / sizeof(float);
    int wrong = points < 8 || points > MOST_POINTS || (points & (points - 1)) || length < 1 || length > (size_t)points;
    if (wrong)
        PyErr_SetString(PyExc_ValueError, "points: a power of two from 8 to 65536; window: 1 to that many samples");
    if (!wrong) {
        gh_transform_free(self->transform);
        self->transform = gh_transform_new(view.buf, length, (size_t)points);
        if (!self->transform) {
            PyErr_NoMemory();
            wrong = 1;
        }
    }
    PyBuffer_Release(&view);
    return wrong ? -1 : 0;
}

static void transform_dealloc(Transform *self)
{
    gh_transform_free(self->transform);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *transform_power(Transform *self, PyObject *args)
{
    PyObject *samples, *power;
    Py_ssize_t hop, frames;
    Py_buffer in, out;
    if (!PyArg_ParseTuple(args, "OnnO", &samples, &hop, &frames, &power))
        return NULL;
    if (!self->transform) {
        PyErr_SetString(PyExc_RuntimeError, "the transform has not been set up");
        return NULL;
    }
    if (!buffer(samples, "f", 0, "samples", &in))
        return NULL;
    if (!buffer(power, "d", 1, "power", &out)) {
        PyBuffer_Release(&in);
        return NULL;
    }
    const size_t bins = gh_transform_bins(self->transform), length = gh_transform_length(self->transform);
    const size_t there = (size_t)in.len / sizeof(float), room = (size_t)out.len / sizeof(double);
    int fits = hop >= 1 && frames >= 0 && room / bins >= (size_t)frames;
    if (fits && frames > 0)
        fits = there >= length && (there - length) / (size_t)hop >= (size_t)(frames - 1);
    if (fits)
        for (Py_ssize_t frame = 0; frame < frames; frame++)
            gh_transform_power(self->transform, (const float *)in.buf + frame * hop, (double *)out.buf + (size_t)frame * bins);
    else
        PyErr_SetString(PyExc_ValueError, "the frames do not lie in samples, or their spectra not in power");
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"power", (PyCFunction)transform_power, METH_VARARGS, "Power spectra of frames, hop samples apart."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject TransformType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gharial.features._transform.Transform",
    .tp_basicsize = sizeof(Transform),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)transform_init,
    .tp_dealloc = (destructor)transform_dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_transform", .m_size = -1};

PyMODINIT_FUNC PyInit__transform(void)
{
    if (PyType_Ready(&TransformType))
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddObjectRef(module, "Transform", (PyObject *)&TransformType)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
