/* What rabaska.packing, rabaska.node.data and rabaska.training do in Python, for many small files at
   once and without the GIL: the same bytes, sooner. Nothing here decides anything; what is not small
   and ordinary is left to Python. */

#include "speed.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "rabaska_speed", .m_size = 0,
    .m_doc = "Small files into tar form and back, many at a time.",
};

PyMODINIT_FUNC PyInit_rabaska_speed(void)
{
    PyObject *module = PyModule_Create(&definition);

    prepare_crc();
    if (module != NULL &&
        (PyModule_AddIntConstant(module, "FORMAT", FORMAT) < 0 ||
         PyModule_AddFunctions(module, of_sums) < 0 || PyModule_AddFunctions(module, of_files) < 0 ||
         PyModule_AddFunctions(module, of_folders) < 0 ||
         PyModule_AddFunctions(module, of_unpacking) < 0 ||
         PyModule_AddFunctions(module, of_reading) < 0 ||
         (can_digest() && PyModule_AddFunctions(module, of_digests) < 0)))
        Py_CLEAR(module);
    return module;
}
