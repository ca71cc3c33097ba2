# cmake -D BUILD=<tree> -D SOURCE=<this folder> -D FLAGS=<compiler flags>
#       -P run.cmake
# Installs a built tree into itself, then builds and runs this project with it.
set(work ${BUILD}/out_of_tree)
file(REMOVE_RECURSE ${work}/install)

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code
    OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${said}\nended with ${code}")
  endif()
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/install)
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${work}/build
  -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS=${FLAGS}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -D CMAKE_PREFIX_PATH=${work}/install)
step(${CMAKE_COMMAND} --build ${work}/build)
step(${work}/build/remote_scale)
message(STATUS "an installed tree serves another project")
