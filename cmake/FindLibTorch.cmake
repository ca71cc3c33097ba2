# LibTorch::LibTorch: PyTorch's C++ library as its wheel or its archive has it, in
# the folder that Torch_DIR (share/cmake/Torch) is part of. LIBTORCH_HAS_CUDA says
# whether it computes on GPUs; that part is linked only where Baton has CUDA too.
# PyTorch's own package is not used, since a library with CUDA then wants a toolkit
# even from a program that does without.
if(Torch_DIR)
  get_filename_component(libtorch_root "${Torch_DIR}/../../.." ABSOLUTE)
else()
  set(libtorch_root)
endif()
find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/nn/module.h
  HINTS ${libtorch_root} PATH_SUFFIXES include)
find_library(LibTorch_C10 c10 HINTS ${libtorch_root} PATH_SUFFIXES lib)
find_library(LibTorch_CPU torch_cpu HINTS ${libtorch_root} PATH_SUFFIXES lib)
find_library(LibTorch_CUDA torch_cuda HINTS ${libtorch_root} PATH_SUFFIXES lib)
find_library(LibTorch_C10_CUDA c10_cuda HINTS ${libtorch_root} PATH_SUFFIXES lib)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU LibTorch_C10 LibTorch_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "name the folder by -D Torch_DIR=.../torch/share/cmake/Torch")
set(LIBTORCH_HAS_CUDA OFF)
if(LibTorch_CUDA AND LibTorch_C10_CUDA)
  set(LIBTORCH_HAS_CUDA ON)
endif()

# Wheels up to 2.5 speak another dialect of the standard library.
if(LibTorch_FOUND AND EXISTS "${libtorch_root}/share/cmake/Torch/TorchConfig.cmake")
  file(STRINGS "${libtorch_root}/share/cmake/Torch/TorchConfig.cmake" libtorch_old
    REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  if(libtorch_old)
    message(FATAL_ERROR "LibTorch in ${libtorch_root} was built with the old ABI of "
      "libstdc++ (_GLIBCXX_USE_CXX11_ABI=0): take PyTorch 2.6 or later, or an "
      "archive whose name has cxx11-abi")
  endif()
endif()

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  set_target_properties(LibTorch::LibTorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES "${LibTorch_CPU};${LibTorch_C10}")
  if(LIBTORCH_HAS_CUDA AND BATON_HAS_CUDA)
    # Its ops register themselves: nobody names a symbol of torch_cuda.
    set_property(TARGET LibTorch::LibTorch APPEND PROPERTY INTERFACE_LINK_LIBRARIES
      "-Wl,--push-state,--no-as-needed,${LibTorch_CUDA},--pop-state"
      "${LibTorch_C10_CUDA}")
  endif()
endif()
