# Plug-ins and the programs that load them (docs/remote_modules.md). Installed:
# find_package(baton) brings both functions.

# baton_plugin(NAME SOURCES...): a module that LoadPlugin loads. It sees Baton's
# headers and links none of its libraries: a second copy of them would have
# tables and types of its own.
function(baton_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE baton::headers)
endfunction()

# baton_plugin_host(TARGET [LIBRARIES...]): the program holds and exports all of
# Baton's libraries that are named (without baton::; all where none is), what it
# does not call itself too, for a plug-in may call it.
function(baton_plugin_host target)
  set(names ${ARGN})
  if(NOT names)
    set(names core autograd rpc autograd_distributed optim optim_distributed
      models models_distributed)
  endif()
  set(archives)
  foreach(name ${names})
    target_link_libraries(${target} PRIVATE baton::${name})
    list(APPEND archives $<TARGET_FILE:baton::${name}>)
  endforeach()
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  # Before the libraries, which then find nothing left to take from the archives
  # again, however often a line names them.
  target_link_options(${target} PRIVATE
    LINKER:--push-state,--whole-archive ${archives} LINKER:--pop-state)
endfunction()
