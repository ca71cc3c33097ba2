# The target baton_headers_alone compiles every header that no source includes
# first; the sources prove theirs where they are compiled one by one. check_tidy.sh
# does both for what changed. A tree with CUDA compiles core/cuda's
# alone, since all others are the same in a tree without.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
  autograd/*.h core/*.h examples/*.h models/*.h optim/*.h rpc/*.h tools/*.h
  tests/support/*.h)
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
    if(NOT first AND EXISTS ${CMAKE_SOURCE_DIR}/${source})
      file(STRINGS ${CMAKE_SOURCE_DIR}/${source} first REGEX "^#include"
        LIMIT_COUNT 1)
    endif()
  endforeach()
  if(NOT first STREQUAL "#include \"${header}\"")
    string(REPLACE "/" "_" source ${stem})
    set(source ${CMAKE_BINARY_DIR}/headers/${source}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endif()
endforeach()
add_library(baton_headers_alone OBJECT EXCLUDE_FROM_ALL ${sources})
set_target_properties(baton_headers_alone PROPERTIES UNITY_BUILD OFF)
target_include_directories(baton_headers_alone PRIVATE ${CMAKE_SOURCE_DIR}
  ${CMAKE_BINARY_DIR})
target_link_libraries(baton_headers_alone PRIVATE baton_options baton_rpc
  baton_core)
if(BATON_HAS_CUDA)
  target_link_libraries(baton_headers_alone PRIVATE CUDA::cudart_static
    CUDA::cublasLt CUDNN::cudnn)
endif()
