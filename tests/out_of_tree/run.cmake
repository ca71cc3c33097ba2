# cmake -D BUILD=<tree> -D SOURCE=<this folder> -D FLAGS=<compiler flags>
#       -P run.cmake
# Installs a built tree into itself, then builds and runs this project with it.
set(work ${BUILD}/out_of_tree)
file(REMOVE_RECURSE ${work}/install)

# step(CODE TEXT COMMAND...): ends with that code and says TEXT.
function(step expected text)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code
    OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(FIND "${said}" "${text}" place)
  if(NOT code EQUAL expected OR place EQUAL -1)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${said}\nended with ${code}; expected "
      "${expected} and the text '${text}'")
  endif()
endfunction()

step(0 "" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/install)
step(0 "" ${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${work}/build
  -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS=${FLAGS}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -D CMAKE_PREFIX_PATH=${work}/install)
step(0 "" ${CMAKE_COMMAND} --build ${work}/build)
step(0 "out of tree: fine" ${work}/build/remote_scale)

# Built without optimisation, the plug-in still fits daemons that were not.
set(bin ${work}/install/bin)
set(plugin ${work}/build/libperceptron.so)
step(0 "after 20 steps" ${bin}/baton-run --workers=1
  --worker_flags=--plugin=${plugin} -- ${work}/build/trainer)
step(1 "trainer exports" ${bin}/baton-run --workers=1 -- ${work}/build/trainer)
step(0 "Perceptron::Forward" ${work}/build/daemon ${plugin})
message(STATUS "an installed tree serves another project")
