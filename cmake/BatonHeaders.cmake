# What other projects include, as "baton/core/tensor.h": the headers of all
# libraries under include/baton of the build tree, from where they are installed.
get_property(headers GLOBAL PROPERTY BATON_PUBLIC_HEADERS)
list(REMOVE_DUPLICATES headers)
list(SORT headers)
set(names)
foreach(header ${headers})
  file(RELATIVE_PATH name ${baton_SOURCE_DIR} ${header})
  list(APPEND names ${name})
endforeach()
list(JOIN names "\n" names)
file(CONFIGURE OUTPUT ${baton_BINARY_DIR}/public_headers.txt CONTENT "${names}\n")
add_custom_command(OUTPUT ${baton_BINARY_DIR}/public_headers.stamp
  COMMAND ${CMAKE_COMMAND} -D FROM=${baton_SOURCE_DIR}
    -D TO=${baton_BINARY_DIR}/include/baton
    -D LIST=${baton_BINARY_DIR}/public_headers.txt
    -P ${baton_SOURCE_DIR}/cmake/stage_headers.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${baton_BINARY_DIR}/public_headers.stamp
  DEPENDS ${headers} ${baton_SOURCE_DIR}/cmake/stage_headers.cmake
    ${baton_BINARY_DIR}/public_headers.txt
  COMMENT "Staging the headers that other projects see" VERBATIM)
add_custom_target(baton_public_headers ALL
  DEPENDS ${baton_BINARY_DIR}/public_headers.stamp)

# The target baton_headers_alone compiles every header that no source includes
# first; the sources prove theirs where they are compiled one by one. check_tidy.sh
# does both for what changed. A tree with CUDA compiles core/cuda's
# alone, since all others are the same in a tree without.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${baton_SOURCE_DIR}
  autograd/*.h core/*.h examples/*.h models/*.h optim/*.h rpc/*.h tools/*.h
  tests/support/*.h)
list(FILTER headers EXCLUDE REGEX "^examples/tutorial/")  # a project of its own
set(sources)
foreach(header ${headers})
  string(FIND ${header} core/cuda/ needs_toolkit)
  if((needs_toolkit EQUAL 0 AND NOT BATON_HAS_CUDA) OR
     (BATON_HAS_CUDA AND NOT needs_toolkit EQUAL 0))
    continue()
  endif()
  string(REGEX REPLACE "\\.h$" "" stem ${header})
  set(first)
  foreach(source ${stem}.cc ${stem}.cu)
    if(NOT first AND EXISTS ${baton_SOURCE_DIR}/${source})
      file(STRINGS ${baton_SOURCE_DIR}/${source} first REGEX "^#include"
        LIMIT_COUNT 1)
    endif()
  endforeach()
  if(NOT first STREQUAL "#include \"${header}\"")
    string(REPLACE "/" "_" source ${stem})
    set(source ${baton_BINARY_DIR}/headers/${source}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endif()
endforeach()
add_library(baton_headers_alone OBJECT EXCLUDE_FROM_ALL ${sources})
set_target_properties(baton_headers_alone PROPERTIES UNITY_BUILD OFF)
target_include_directories(baton_headers_alone PRIVATE ${baton_SOURCE_DIR}
  ${baton_BINARY_DIR})
target_link_libraries(baton_headers_alone PRIVATE baton_options baton_rpc
  baton_core)
if(BATON_HAS_CUDA)
  target_link_libraries(baton_headers_alone PRIVATE CUDA::cudart_static
    CUDA::cublasLt CUDNN::cudnn)
endif()
