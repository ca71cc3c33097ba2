# BATON_CUDA: AUTO looks for a CUDA toolkit, ON insists on one, OFF does not
# look. This version has no CUDA kernels yet: core/no_cuda, which answers "built
# without CUDA", is compiled either way, and what is found is only reported.
set(BATON_CUDA AUTO CACHE STRING
  "CUDA toolkit: AUTO (used where found), ON (required) or OFF")
set_property(CACHE BATON_CUDA PROPERTY STRINGS AUTO ON OFF)

string(TOUPPER "${BATON_CUDA}" baton_cuda)
if(NOT baton_cuda MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "BATON_CUDA is AUTO, ON or OFF, not '${BATON_CUDA}'")
endif()

if(baton_cuda STREQUAL "OFF")
  message(STATUS "CUDA: off")
  return()
endif()

find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  set(found "CUDA ${CUDAToolkit_VERSION} at ${CUDAToolkit_BIN_DIR}")
  set(truth "this version of Baton has no CUDA kernels, tensors stay on the CPU")
  if(baton_cuda STREQUAL "ON")
    message(WARNING "found ${found}, but ${truth}")
  else()
    message(STATUS "CUDA: found ${found}; ${truth}")
  endif()
elseif(baton_cuda STREQUAL "ON")
  message(FATAL_ERROR "BATON_CUDA=ON, but no CUDA toolkit was found: put nvcc "
    "on PATH or set CUDAToolkit_ROOT, or use BATON_CUDA=AUTO or OFF")
else()
  message(STATUS "CUDA: no toolkit found, building for the CPU")
endif()
