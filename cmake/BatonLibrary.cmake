# baton_library(NAME FOLDERS... DEPS...): one static library from every .cc of the
# folders named (not of their subfolders).
function(baton_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(sources)
  foreach(folder ${ARG_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND sources ${found})
  endforeach()
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  add_library(baton::${name} ALIAS ${name})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include/baton>)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS}
    PRIVATE $<BUILD_INTERFACE:baton_options> ${ARG_PRIVATE_DEPS})
endfunction()
