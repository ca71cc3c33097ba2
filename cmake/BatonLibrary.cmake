include(GNUInstallDirs)

# baton_library(baton_NAME FOLDERS... [DEPS...] [PRIVATE_DEPS...])
# One static library from every .cc and .cu of the folders named (not of their
# subfolders); without sources, an interface library. Its headers, but for those
# of a backend (cpu, cuda, no_cuda), are those that other projects see
# (cmake/BatonHeaders.cmake); they link it as baton::NAME.
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
  set_property(GLOBAL APPEND PROPERTY BATON_PUBLIC_HEADERS ${headers})
  baton_include_folders(${name} ${visibility})

  string(REGEX REPLACE "^baton_" "" short ${name})
  add_library(baton::${short} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  if(BATON_INSTALL)
    install(TARGETS ${name} EXPORT baton
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  endif()
endfunction()

# Baton's own sources find headers from its root; other projects, those that
# cmake/stage_headers.cmake writes.
function(baton_include_folders name visibility)
  if(PROJECT_IS_TOP_LEVEL)
    target_include_directories(${name} ${visibility}
      $<BUILD_INTERFACE:${baton_SOURCE_DIR}>)
  else()
    target_include_directories(${name} ${visibility}
      $<BUILD_INTERFACE:${baton_BINARY_DIR}/include>)
    add_dependencies(${name} baton_public_headers)
  endif()
  target_include_directories(${name} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()
if(NOT PROJECT_IS_TOP_LEVEL)
  include_directories(${baton_SOURCE_DIR})
endif()

# baton_program(NAME PACKAGE DEPS...): an installed program from programs/NAME.cc,
# in one of the packages of cmake/BatonPackages.cmake, with its completion in bash.
function(baton_program name package)
  add_executable(${name} programs/${name}.cc)
  target_link_libraries(${name} PRIVATE ${ARGN} baton_options)
  if(BATON_INSTALL)
    install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR}
      COMPONENT ${package})
    install(FILES ${baton_SOURCE_DIR}/tools/completion.bash RENAME ${name}
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
      COMPONENT ${package})
  endif()
endfunction()
