include(GNUInstallDirs)

# baton_library(baton_NAME FOLDERS... [DEPS...] [PRIVATE_DEPS...])
# One static library from every .cc and .cu of the folders named (not of their
# subfolders); without sources, an interface library. Its headers, but for those
# of a backend (cpu, cuda, no_cuda), are installed; other projects link it as
# baton::NAME.
function(baton_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(sources)
  set(headers)
  foreach(folder ${ARG_FOLDERS})
    set(path ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
    file(GLOB found CONFIGURE_DEPENDS ${path}/*.cc ${path}/*.cu)
    list(APPEND sources ${found})
    if(NOT folder MATCHES "^(cpu|cuda|no_cuda)(/|$)")
      file(GLOB found CONFIGURE_DEPENDS ${path}/*.h)
      list(APPEND headers ${found})
    endif()
  endforeach()

  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS}
      PRIVATE $<BUILD_INTERFACE:baton_options> ${ARG_PRIVATE_DEPS})
    set(visibility PUBLIC)
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
    set(visibility INTERFACE)
  endif()
  target_compile_features(${name} ${visibility} cxx_std_20)
  target_sources(${name} ${visibility} FILE_SET HEADERS
    BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${headers})

  string(REGEX REPLACE "^baton_" "" short ${name})
  add_library(baton::${short} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  install(TARGETS ${name} EXPORT baton
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton)
endfunction()

# baton_program(NAME DEPS...): an installed program from programs/NAME.cc.
function(baton_program name)
  add_executable(${name} programs/${name}.cc)
  target_link_libraries(${name} PRIVATE ${ARGN} baton_options)
  install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
