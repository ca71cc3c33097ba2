# Inside of another project Baton is its libraries and programs.
option(BATON_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(BATON_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(BATON_INSTALL "Have rules to install and to package"
  ${PROJECT_IS_TOP_LEVEL})
if(BATON_TESTS AND NOT BATON_EXAMPLES)
  message(FATAL_ERROR "BATON_TESTS run the examples: set BATON_EXAMPLES=ON")
endif()
set(BATON_TESTS_LEFT_OUT "" CACHE STRING
  "Folders of tests/ whose tests another tree runs: 'core;fuzz;rpc'")
option(BATON_TORCH "Build models/torch: modules of PyTorch, by Torch_DIR" OFF)
option(BATON_MPI "Build tools/mpi: a cluster out of an MPI_Comm" OFF)
option(BATON_FUZZ "Build tests/fuzz for libFuzzer, and no other test" OFF)
option(BATON_WERROR "Warnings are errors" OFF)
set(BATON_SANITIZE "" CACHE STRING
  "Sanitizers: empty, 'address,undefined' or 'thread'")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(BATON_CCACHE ccache)
if(BATON_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BATON_CCACHE})
endif()

# Four times as fast as ld, which counts where many programs are linked.
find_program(BATON_LLD ld.lld)
if(BATON_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# A sanitizer is a property of the whole program, so of every file.
if(BATON_SANITIZE)
  add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BATON_SANITIZE})
  if(BATON_SANITIZE MATCHES undefined)
    # The check of vptr reads memory through a pipe, which a test that uses up all
    # descriptors cannot give it.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
endif()

add_library(baton_options INTERFACE)
# nvcc hands its host compiler what follows -Xcompiler.
target_compile_options(baton_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall>")
if(BATON_WERROR)
  target_compile_options(baton_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Werror>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>")
endif()
# g++ 12 and 14 take Abseil's InlinedVector for uninitialised where it is moved, and a
# short std::string for shorter than it is.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(baton_options INTERFACE -Wno-maybe-uninitialized
    -Wno-array-bounds)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # It ignores what core/cpu tells g++ of vectors.
  target_compile_options(baton_options INTERFACE
    -Wthread-safety -Werror=thread-safety
    -Wno-ignored-attributes -Wno-unknown-pragmas)
endif()
