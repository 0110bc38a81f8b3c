# The Python package. AUTO builds it beside the tests, with the first python3 on PATH that has what its tests need.
set(ROPEGRAD_PYTHON AUTO CACHE STRING "Build the Python package: ON, OFF, or AUTO where there is a Python to test it with")
set_property(CACHE ROPEGRAD_PYTHON PROPERTY STRINGS AUTO ON OFF)

set(ROPEGRAD_HAVE_PYTHON 0)
if(ROPEGRAD_PYTHON STREQUAL "AUTO")
  function(ropegrad_python_can_test result candidate)
    execute_process(COMMAND ${candidate} -c
"import os, sys, sysconfig, numpy, pytest
assert sys.version_info >= (3, 9) and os.path.exists(sysconfig.get_path('include') + '/Python.h')"
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      set(${result} FALSE PARENT_SCOPE)
    endif()
  endfunction()
  # A sanitized extension could not be loaded by a Python that is not.
  if(ROPEGRAD_BUILD_TESTS AND NOT CMAKE_CROSSCOMPILING AND NOT ROPEGRAD_SANITIZE)
    find_program(Python_EXECUTABLE NAMES python3 VALIDATOR ropegrad_python_can_test
      DOC "Python 3.9 or later with its headers, NumPy and pytest")
  endif()
  if(Python_EXECUTABLE)
    find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
    set(ROPEGRAD_HAVE_PYTHON 1)
    message(STATUS "Python: ${Python_EXECUTABLE} (${Python_VERSION})")
  elseif(ROPEGRAD_BUILD_TESTS)
    message(STATUS "Python: the package is left out: no python3 with headers, NumPy and pytest, or a foreign or sanitized build")
  endif()
elseif(ROPEGRAD_PYTHON)
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
  set(ROPEGRAD_HAVE_PYTHON 1)
endif()
