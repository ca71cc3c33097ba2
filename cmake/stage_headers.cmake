# cmake -D FROM=<sources> -D TO=<folder> -D LIST=<file> -P stage_headers.cmake
# Copies the headers that LIST names, one a line, as other projects see them: with
# the project's name before what is generic, so that nothing meets a folder or a
# macro of theirs.
#   "core/tensor.h"    "baton/core/tensor.h"
#   RETURN_IF_ERROR    BATON_RETURN_IF_ERROR
#   ASSIGN_OR_RETURN   BATON_ASSIGN_OR_RETURN
# What is the same already is left alone; what is no longer named goes.
file(STRINGS ${LIST} names)
foreach(name IN LISTS names)
  file(READ ${FROM}/${name} text)
  string(REGEX REPLACE
    "(#include \")((autograd|core|models|optim|rpc|tools)/)" "\\1baton/\\2"
    text "${text}")
  string(REPLACE "BATON_ASSIGN_OR_RETURN" "BATON_ASSIGN_THROUGH" text "${text}")
  string(REGEX REPLACE "(^|[^A-Z_])(ASSIGN_OR_RETURN|RETURN_IF_ERROR)"
    "\\1BATON_\\2" text "${text}")
  set(staged "")
  if(EXISTS ${TO}/${name})
    file(READ ${TO}/${name} staged)
  endif()
  if(NOT text STREQUAL staged)
    file(WRITE ${TO}/${name} "${text}")
  endif()
endforeach()

file(GLOB_RECURSE present RELATIVE ${TO} ${TO}/*.h)
list(REMOVE_ITEM present ${names})
list(TRANSFORM present PREPEND ${TO}/)
if(present)
  file(REMOVE ${present})
endif()
