include(GoogleTest)

# baton_tests(NAME FOLDER DEPS... [WHOLE] [SHARDS COUNT] [TIMING FILTERS...]
#   [GRPC FILTERS...])
# One test program from every .cc of a folder, whose first name (core, rpc, ...) is
# its label. ctest runs it
#   WHOLE: as one process, for tests that only compute: they keep two cores busy;
#   otherwise: in one process a test, for tests that wait for others; these share
#   the cores;
#   with sanitizers, where starting a process takes longer than most tests: in as
#   many as SHARDS says (4) for each label.
# Tests that match TIMING fail on a machine that is too slow: their label is
# `timing` instead, and they run alone. Those that match GRPC go through the
# packaged gRPC, of which ThreadSanitizer knows nothing: their label is `grpc`.
# Programs in BATON_SANITIZED_PROGRAMS have the label `sanitized`, too. Those of the
# folders in BATON_TESTS_LEFT_OUT are built only where one names them.
function(baton_tests name folder)
  cmake_parse_arguments(ARG "WHOLE" "SHARDS" "TIMING;GRPC" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_UNPARSED_ARGUMENTS} baton_options
    baton_test_options GTest::gtest_main GTest::gmock)
  target_include_directories(${name} PRIVATE ${baton_SOURCE_DIR})
  if(baton_models_distributed IN_LIST ARG_UNPARSED_ARGUMENTS)
    target_precompile_headers(${name} REUSE_FROM baton_precompiled_distributed)
  else()
    target_precompile_headers(${name} REUSE_FROM baton_precompiled)
  endif()
  # What calls workers takes longer to include and to instantiate than to test.
  if(BATON_TEST_BATCHES AND ARG_UNPARSED_ARGUMENTS MATCHES "baton_rpc|_distributed")
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
  string(REGEX REPLACE "/.*" "" label ${folder})
  baton_add_tests(${name} ${label} "${ARG_WHOLE}" "${ARG_TIMING}" "${ARG_GRPC}"
    ${ARG_SHARDS})
endfunction()

# What nearly every test includes, compiled once for all programs with the flags of
# a program; and the same for those of modules at workers, whose headers take longer.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cc CONTENT "")
foreach(header precompiled precompiled_distributed)
  add_library(baton_${header} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cc)
  set_target_properties(baton_${header} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(baton_${header} PRIVATE -fPIE)
  target_link_libraries(baton_${header} PRIVATE baton_options baton_test_options
    GTest::gtest_main GTest::gmock)
  target_include_directories(baton_${header} PRIVATE ${baton_SOURCE_DIR})
  target_precompile_headers(baton_${header} PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR}/support/${header}.h)
endforeach()
target_link_libraries(baton_precompiled_distributed PRIVATE baton_models_distributed)

# Threads that spin while they wait take the cores of the tests beside them.
set(baton_test_environment ENVIRONMENT OMP_WAIT_POLICY=passive)

function(baton_add_tests name label whole timing grpc)
  if(label IN_LIST BATON_TESTS_LEFT_OUT)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(whole AND NOT BATON_SANITIZE)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT 600
      PROCESSORS ${BATON_WAITING_TESTS_A_CORE} ${baton_test_environment})
    return()
  endif()
  list(JOIN timing ":" timing)
  list(JOIN grpc ":" grpc)
  set(shards 4 ${ARGN})
  list(GET shards -1 shards)
  baton_waiting_tests(${name} "*-${timing}:${grpc}" ${label} ${shards})
  if(grpc)
    baton_waiting_tests(${name} "${grpc}-${timing}" grpc ${shards})
  endif()
  if(timing)
    baton_discover(${name} "${timing}" timing RUN_SERIAL ON)
  endif()
endfunction()

# A label, and `sanitized` for a program that .ci/run runs with sanitizers.
function(baton_labels variable name label)
  if(name IN_LIST BATON_SANITIZED_PROGRAMS)
    list(APPEND label sanitized)
  endif()
  set(${variable} "${label}" PARENT_SCOPE)
endfunction()

function(baton_waiting_tests name filter label shards)
  if(NOT BATON_SANITIZE)
    baton_discover(${name} "${filter}" ${label})
    return()
  endif()
  baton_labels(labels ${name} ${label})
  foreach(number RANGE 1 ${shards})
    set(test ${name}.${label}_${number}_of_${shards})
    math(EXPR index "${number} - 1")
    add_test(NAME ${test}
      COMMAND ${name} --gtest_brief=1 --gtest_filter=${filter})
    set_tests_properties(${test} PROPERTIES LABELS "${labels}" TIMEOUT 600
      ENVIRONMENT "OMP_WAIT_POLICY=passive;GTEST_TOTAL_SHARDS=${shards};\
GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

function(baton_discover name filter label)
  set(tests ${name}_${label}_tests)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
    TEST_FILTER "${filter}" TEST_LIST ${tests}
    PROPERTIES TIMEOUT 120 ${baton_test_environment} ${ARGN})
  # PROPERTIES takes no lists.
  baton_labels(labels ${name} ${label})
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${tests}_labels.cmake)
  file(CONFIGURE OUTPUT ${script} @ONLY CONTENT [[
if(@tests@)
  set_tests_properties(${@tests@} PROPERTIES LABELS "@labels@")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

# Tests that wait leave their core to others: tests/run.sh runs so many at once.
set(BATON_WAITING_TESTS_A_CORE 3)

# A second run of a program of tests, or of those that match the patterns named,
# on a GPU. Skipped, with its reason, where there is none.
function(baton_cuda_tests name)
  target_sources(${name} PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR}/support/device/test_device.cc)
  if(BATON_HAS_CUDA)
    string(REPLACE ";" ":" filter "${ARGN}")
    if(filter)
      set(filter --gtest_filter=${filter})
    endif()
    add_test(NAME cuda.${name} COMMAND ${name} ${filter})
    set_tests_properties(cuda.${name} PROPERTIES LABELS cuda TIMEOUT 600
      ENVIRONMENT BATON_TEST_DEVICE=cuda
      SKIP_REGULAR_EXPRESSION "no cuda:0 here: skipped")
  endif()
endfunction()

# Lets tests compare with values that tools/golden made.
function(baton_golden_values name)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/support/golden/golden_path.cc)
  target_sources(${name} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS
    "BATON_GOLDEN_DIR=\"${CMAKE_CURRENT_SOURCE_DIR}/golden\"")
endfunction()

# baton_test_program(NAME SOURCES... [DEPS...]): a program that tests start.
function(baton_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} baton_options
    baton_test_options)
  target_include_directories(${name} PRIVATE ${baton_SOURCE_DIR})
endfunction()
