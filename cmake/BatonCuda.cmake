# BATON_CUDA: AUTO builds core/cuda where a CUDA toolkit with cuDNN is found, ON
# insists on one, OFF builds core/no_cuda, which answers "built without CUDA".
# Sets BATON_HAS_CUDA and, where traces can show kernels, BATON_HAS_CUPTI, and
# where NCCL is, BATON_HAS_NCCL.
# CMAKE_CUDA_ARCHITECTURES: unless given, those of the GPUs that are here, or 90
# where there is none.
set(BATON_CUDA AUTO CACHE STRING
  "CUDA toolkit: AUTO (used where found), ON (required) or OFF")
set_property(CACHE BATON_CUDA PROPERTY STRINGS AUTO ON OFF)

string(TOUPPER "${BATON_CUDA}" baton_cuda)
if(NOT baton_cuda MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "BATON_CUDA is AUTO, ON or OFF, not '${BATON_CUDA}'")
endif()

set(BATON_HAS_CUDA OFF)
set(BATON_HAS_CUPTI OFF)
set(BATON_HAS_NCCL OFF)
if(baton_cuda STREQUAL "OFF")
  message(STATUS "CUDA: off")
  return()
endif()

find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  find_package(Cudnn QUIET)
endif()
if(CUDAToolkit_FOUND AND Cudnn_FOUND)
  set(BATON_HAS_CUDA ON)
elseif(baton_cuda STREQUAL "ON")
  message(FATAL_ERROR "BATON_CUDA=ON, but no CUDA toolkit with cuDNN was found: "
    "put nvcc on PATH or set CUDAToolkit_ROOT (and CUDNN_ROOT), or use "
    "BATON_CUDA=AUTO or OFF")
else()
  message(STATUS "CUDA: no toolkit with cuDNN found, building for the CPU")
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  execute_process(
    COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE baton_gpus RESULT_VARIABLE baton_no_gpu ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+[.][0-9]" baton_gpus "${baton_gpus}")
  list(REMOVE_DUPLICATES baton_gpus)
  if(baton_no_gpu OR baton_gpus STREQUAL "")
    set(baton_gpus 90)
  endif()
  string(REPLACE "." "" CMAKE_CUDA_ARCHITECTURES "${baton_gpus}")
endif()
if(NOT DEFINED CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
enable_language(CUDA)
# nvcc has had C++20 since 12.0; CMake 3.25 does not know.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(BATON_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${BATON_CCACHE})
endif()
message(STATUS "CUDA: ${CUDAToolkit_VERSION} at ${CUDAToolkit_BIN_DIR}, "
  "cuDNN at ${CUDNN_LIBRARY}, for sm_${CMAKE_CUDA_ARCHITECTURES}")

# Its records are those of CUDA 13.
find_path(CUPTI_INCLUDE_DIR cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
  PATH_SUFFIXES ../extras/CUPTI/include)
set(CUPTI_SONAME libcupti.so.${CUDAToolkit_VERSION_MAJOR})
find_file(CUPTI_LIBRARY ${CUPTI_SONAME} HINTS ${CUDAToolkit_LIBRARY_DIR}
  PATH_SUFFIXES ../extras/CUPTI/lib64)
if(NOT CUPTI_LIBRARY)
  set(CUPTI_LIBRARY ${CUPTI_SONAME})
endif()
if(CUPTI_INCLUDE_DIR AND CUDAToolkit_VERSION_MAJOR EQUAL 13)
  set(BATON_HAS_CUPTI ON)
  message(STATUS "CUPTI: ${CUPTI_INCLUDE_DIR}")
else()
  message(STATUS "CUPTI: no header of CUDA 13 found, traces will show no kernels")
endif()

# Opened when a program runs, as CUPTI is.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
set(NCCL_SONAME libnccl.so.2)
find_file(NCCL_LIBRARY ${NCCL_SONAME} HINTS ${CUDAToolkit_LIBRARY_DIR})
if(NOT NCCL_LIBRARY)
  set(NCCL_LIBRARY ${NCCL_SONAME})
endif()
if(NCCL_INCLUDE_DIR)
  set(BATON_HAS_NCCL ON)
  message(STATUS "NCCL: ${NCCL_INCLUDE_DIR}")
else()
  message(STATUS "NCCL: no header found, groups will not use their GPUs")
endif()
