/* SPDX-License-Identifier: Apache-2.0
 * The Python module gharial.devices.emulator._engine: a thin layer over engine.h. The GIL is let go of while a program is
 * packed or run; another call meanwhile raises RuntimeError. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>

#include "engine.h"

enum { MEMORY, STATE, ENC_FLAGS, PRED_FLAGS, HELD };

typedef struct {
    PyObject_HEAD
    gh_engine engine;
    Py_buffer held[HELD]; /* what the engine's pointers point into */
    int busy;
} Engine;

static int ready(Engine *self, int with_program)
{
    const char *why = self->busy ? "the engine is running"
                      : !self->held[MEMORY].obj ? "the engine has been released"
                      : with_program && !self->engine.program ? "there is no program"
                                                              : NULL;
    if (why)
        PyErr_SetString(PyExc_RuntimeError, why);
    return why == NULL;
}

static void unload(Engine *self)
{
    gh_engine *e = &self->engine;
    gh_free_lanes(e);
    gh_program_free(e->program);
    free(e->enc_marks);
    free(e->pred_marks);
    e->program = NULL;
    e->enc_marks = e->pred_marks = e->enc_flags = e->pred_flags = e->state = NULL;
    e->enc_slots = e->pred_slots = 0;
    for (int i = STATE; i < HELD; i++)
        PyBuffer_Release(&self->held[i]);
}

static int engine_init(Engine *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"memory", "rows", "cols", "max_entries", "kernel", NULL};
    unsigned int rows, cols, entries;
    const char *name = NULL;
    PyObject *memory;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OIII|z", names, &memory, &rows, &cols, &entries, &name))
        return -1;
    if (self->held[MEMORY].obj) {
        PyErr_SetString(PyExc_RuntimeError, "the engine has been set up already");
        return -1;
    }
    if (rows < 16 || rows % 16 || rows > 4096 || cols < 4 || cols % 4 || cols > 4096 || entries < 1 || entries > 65535) {
        PyErr_SetString(PyExc_ValueError, "rows in 16, 32 .. 4096, cols in 4, 8 .. 4096, entries in 1 .. 65535");
        return -1;
    }
    const gh_kernel *const *kernel = gh_kernels();
    while (name && *kernel && strcmp((*kernel)->name, name) != 0)
        kernel++;
    if (!*kernel) {
        PyErr_SetString(PyExc_ValueError, "no such kernel on this processor");
        return -1;
    }
    if (PyObject_GetBuffer(memory, &self->held[MEMORY], PyBUF_WRITABLE))
        return -1;
    self->engine.rows = rows;
    self->engine.cols = cols;
    self->engine.max_entries = entries;
    self->engine.kernel = *kernel;
    self->engine.memory = self->held[MEMORY].buf;
    self->engine.memory_bytes = (size_t)self->held[MEMORY].len;
    return 0;
}

static void release_all(Engine *self)
{
    unload(self);
    free(self->engine.trace.data);
    memset(&self->engine.trace, 0, sizeof self->engine.trace);
    PyBuffer_Release(&self->held[MEMORY]);
    self->engine.memory = NULL;
    self->engine.memory_bytes = 0;
}

static void engine_dealloc(Engine *self)
{
    release_all(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *engine_release(Engine *self, PyObject *Py_UNUSED(none))
{
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "the engine is running");
        return NULL;
    }
    release_all(self);
    Py_RETURN_NONE;
}

static PyObject *engine_unload(Engine *self, PyObject *Py_UNUSED(none))
{
    if (!ready(self, 0))
        return NULL;
    unload(self);
    Py_RETURN_NONE;
}

static PyObject *engine_start(Engine *self, PyObject *args)
{
    Py_buffer b[6];
    gh_image image[6];
    const char *error = NULL;
    gh_program *program = NULL;
    int large = 0;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]))
        return NULL;
    if (ready(self, 0)) {
        for (int i = 0; i < 6; i++) {
            image[i].data = b[i].buf;
            image[i].bytes = (size_t)b[i].len;
            large |= b[i].len > 0x7FFFFFFF; /* offsets are held in 32 bits */
        }
        unload(self);
        self->busy = 1;
        Py_BEGIN_ALLOW_THREADS
        if (large)
            error = "an image is too large";
        else
            program = gh_program_new(image, self->engine.rows, self->engine.cols, self->engine.kernel, &error);
        Py_END_ALLOW_THREADS
        self->busy = 0;
        self->engine.program = program;
        if (error)
            PyErr_SetString(PyExc_ValueError, error);
        else if (!program)
            PyErr_NoMemory();
    }
    for (int i = 0; i < 6; i++)
        PyBuffer_Release(&b[i]);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *engine_bind(Engine *self, PyObject *args)
{
    Py_buffer b[3];
    Py_ssize_t offset;
    gh_engine *e = &self->engine;
    if (!PyArg_ParseTuple(args, "w*nw*w*", &b[0], &offset, &b[1], &b[2]))
        return NULL;
    const size_t enc = (size_t)b[1].len, pred = (size_t)b[2].len, bytes = (size_t)b[0].len;
    if (ready(self, 1)) {
        const size_t need = enc * e->program->enc_stride + pred * e->program->pred_stride;
        if (enc > 65536 || pred > 65536 || offset < 0 || (size_t)offset > bytes || need > bytes - (size_t)offset ||
            ((uintptr_t)b[0].buf + (size_t)offset) % sizeof(int16_t))
            PyErr_SetString(PyExc_ValueError, "the slots lie outside the state");
        else if (e->state)
            PyErr_SetString(PyExc_RuntimeError, "state is bound already");
    }
    uint8_t *marks = PyErr_Occurred() ? NULL : calloc(enc + 1, 1);
    uint8_t *pred_marks = marks ? calloc(pred + 1, 1) : NULL;
    if (!pred_marks) {
        free(marks);
        for (int i = 0; i < 3; i++)
            PyBuffer_Release(&b[i]);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    for (int i = 0; i < 3; i++)
        self->held[STATE + i] = b[i];
    e->state = (uint8_t *)b[0].buf + offset;
    e->enc_flags = b[1].buf;
    e->pred_flags = b[2].buf;
    e->enc_slots = (uint32_t)enc;
    e->pred_slots = (uint32_t)pred;
    e->enc_marks = marks;
    e->pred_marks = pred_marks;
    Py_RETURN_NONE;
}

static PyObject *engine_run(Engine *self, PyObject *args)
{
    Py_buffer descriptor, entries;
    gh_engine *e = &self->engine;
    if (!PyArg_ParseTuple(args, "y*y*", &descriptor, &entries))
        return NULL;
    int result = -2;
    if (ready(self, 1)) {
        if (descriptor.len == 64 && e->state) {
            uint32_t words[16];
            memcpy(words, descriptor.buf, sizeof words);
            self->busy = 1;
            Py_BEGIN_ALLOW_THREADS
            result = gh_run(e, words, entries.buf, (size_t)entries.len);
            Py_END_ALLOW_THREADS
            self->busy = 0;
        }
        if (result == -2)
            PyErr_SetString(PyExc_ValueError, "not a checked descriptor with its entries, or no state bound");
        else if (result)
            PyErr_NoMemory();
    }
    PyBuffer_Release(&descriptor);
    PyBuffer_Release(&entries);
    if (PyErr_Occurred())
        return NULL;
    return Py_BuildValue("(IIIIII)", e->fault.code, e->fault.unit, e->fault.entry, e->fault.detail, e->predictions,
                         e->joints);
}

static PyObject *engine_set_errors(Engine *self, PyObject *args)
{
    unsigned long long low[2], high[2];
    int watchdog;
    if (!PyArg_ParseTuple(args, "(KK)(KK)p", &low[0], &high[0], &low[1], &high[1], &watchdog) || !ready(self, 0))
        return NULL;
    self->engine.bad_read = (gh_range){low[0], high[0]};
    self->engine.bad_write = (gh_range){low[1], high[1]};
    self->engine.watchdog = watchdog;
    Py_RETURN_NONE;
}

static PyObject *engine_trace(Engine *self, PyObject *args)
{
    int on;
    gh_trace *t = &self->engine.trace;
    if (!PyArg_ParseTuple(args, "p", &on) || !ready(self, 0))
        return NULL;
    free(t->data);
    memset(t, 0, sizeof *t);
    t->on = on;
    Py_RETURN_NONE;
}

static PyObject *engine_take_trace(Engine *self, PyObject *Py_UNUSED(none))
{
    gh_trace *t = &self->engine.trace;
    if (!ready(self, 0))
        return NULL;
    if (t->failed)
        return PyErr_NoMemory();
    PyObject *records = PyBytes_FromStringAndSize((const char *)t->data, (Py_ssize_t)t->used);
    t->used = 0;
    return records;
}

static PyObject *engine_kernel(Engine *self, void *Py_UNUSED(none))
{
    return PyUnicode_FromString(self->engine.kernel ? self->engine.kernel->name : "");
}

static PyObject *module_kernels(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *list = PyList_New(0);
    for (const gh_kernel *const *kernel = gh_kernels(); list && *kernel; kernel++) {
        PyObject *name = PyUnicode_FromString((*kernel)->name);
        if (!name || PyList_Append(list, name))
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyMethodDef engine_methods[] = {
    {"start", (PyCFunction)engine_start, METH_VARARGS,
     "start(code, weights, scales, biases, tables, embedding): take a program from its images.\n\n"
     "Raises ValueError for a header that does not fit the images; the device refuses it before."},
    {"bind", (PyCFunction)engine_bind, METH_VARARGS,
     "bind(state, offset, enc_flags, pred_flags): slots of the program just started, one flag byte each."},
    {"unload", (PyCFunction)engine_unload, METH_NOARGS, "Forget program and slots."},
    {"release", (PyCFunction)engine_release, METH_NOARGS, "Let go of the device memory for good."},
    {"run", (PyCFunction)engine_run, METH_VARARGS,
     "run(descriptor, entries) -> (fault, unit, entry, detail, predictions, joints): ENCODE, DECODE or GREEDY."},
    {"set_errors", (PyCFunction)engine_set_errors, METH_VARARGS,
     "set_errors((low, high), (low, high), watchdog): reads and writes that fail, and a watchdog that is about to bite."},
    {"trace", (PyCFunction)engine_trace, METH_VARARGS, "trace(on): keep records of what instructions write."},
    {"take_trace", (PyCFunction)engine_take_trace, METH_NOARGS, "The records kept since the last call (trace.c)."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef engine_attributes[] = {
    {"kernel", (getter)engine_kernel, NULL, "Name of the dot product kernel in use.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject engine_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "gharial.devices.emulator._engine.Engine",
    .tp_doc = "Engine(memory, rows, cols, max_entries, kernel=None): runs programs on a device memory (writable buffer).",
    .tp_basicsize = sizeof(Engine),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)engine_init,
    .tp_dealloc = (destructor)engine_dealloc,
    .tp_methods = engine_methods,
    .tp_getset = engine_attributes,
};

static PyMethodDef module_methods[] = {
    {"kernels", module_kernels, METH_NOARGS, "Names of the dot product kernels this processor can run, best first."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_engine",
    .m_doc = "Executes sections of compiled programs, bit for bit as docs/numerics.md says.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC PyInit__engine(void)
{
    gh_crc32_init();
    if (PyType_Ready(&engine_type) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&module_def);
    if (module && PyModule_AddObjectRef(module, "Engine", (PyObject *)&engine_type) < 0)
        Py_CLEAR(module);
    return module;
}
