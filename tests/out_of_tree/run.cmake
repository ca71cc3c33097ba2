# cmake -D BUILD=<tree> -D SOURCE=<this folder> -D FLAGS=<compiler flags>
#       [-D TORCH=ON] [-D MPI=ON -D MPIRUN=<program>] -P run.cmake
# Installs a built tree into itself, then builds and runs this project with it;
# also one that needs Baton's calls alone, one that has Baton's sources inside, and one
# for each optional component of the tree.
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

# configure(CODE TEXT FOLDER BUILD OPTIONS...)
set(settings -G Ninja -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS=${FLAGS}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
function(configure code text folder build)
  file(REMOVE_RECURSE ${build}/CMakeCache.txt)
  step(${code} "${text}" ${CMAKE_COMMAND} ${settings} -S ${folder} -B ${build}
    ${ARGN})
endfunction()

configure(0 "" ${SOURCE} ${work}/build -D CMAKE_PREFIX_PATH=${work}/install)
step(0 "" ${CMAKE_COMMAND} --build ${work}/build)

set(no_others -D CMAKE_DISABLE_FIND_PACKAGE_JPEG=ON
  -D CMAKE_DISABLE_FIND_PACKAGE_LibArchive=ON
  -D CMAKE_DISABLE_FIND_PACKAGE_Httplib=ON
  -D CMAKE_PREFIX_PATH=${work}/install)
configure(0 "" ${SOURCE}/rpc_only ${work}/rpc_only ${no_others})
step(0 "" ${CMAKE_COMMAND} --build ${work}/rpc_only)
step(0 "out of tree: fine" ${work}/rpc_only/remote_scale)
configure(1 "JPEG" ${SOURCE}/rpc_only ${work}/rpc_only ${no_others}
  -D COMPONENT=models)
configure(1 "baton has no component 'rcp'" ${SOURCE}/rpc_only ${work}/rpc_only
  ${no_others} -D COMPONENT=rcp)

# Baton is configured as a part of it; what needs none of its libraries is built.
configure(0 "" ${SOURCE}/embedded ${work}/embedded
  -D BATON_SOURCE=${SOURCE}/../..)
step(0 "" ${CMAKE_COMMAND} --build ${work}/embedded --target perceptron)

if(TORCH)
  configure(0 "" ${SOURCE}/with_torch ${work}/with_torch
    -D CMAKE_PREFIX_PATH=${work}/install)
  step(0 "" ${CMAKE_COMMAND} --build ${work}/with_torch)
  step(0 "with torch: fine" ${work}/with_torch/with_torch)
endif()
if(MPI)
  configure(0 "" ${SOURCE}/with_mpi ${work}/with_mpi
    -D CMAKE_PREFIX_PATH=${work}/install)
  step(0 "" ${CMAKE_COMMAND} --build ${work}/with_mpi)
  step(0 "with MPI: 2 processes" ${MPIRUN} --allow-run-as-root --oversubscribe
    -n 2 ${work}/with_mpi/with_mpi)
endif()

# Built without optimisation, the plug-in still fits daemons that were not.
set(bin ${work}/install/bin)
set(plugin ${work}/build/libperceptron.so)
step(0 "after 20 steps" ${bin}/baton-run --workers=1
  --worker_flags=--plugin=${plugin} -- ${work}/build/trainer)
step(1 "trainer exports" ${bin}/baton-run --workers=1 -- ${work}/build/trainer)
step(0 "Perceptron::Forward" ${work}/build/daemon ${plugin})

# The tutorial, typed line by line.
set(ENV{CXX} ${COMPILER})
set(ENV{CXXFLAGS} ${FLAGS})
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} ${LAUNCHER})
step(0 "pipelined steps: loss 0.0" bash ${SOURCE}/tutorial.sh ${work}/install)
message(STATUS "an installed tree serves another project")
