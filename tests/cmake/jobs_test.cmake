# cmake -P jobs_test.cmake
# cmake/BatonJobs.cmake runs as many compilers at a time as the memory holds, where
# there are more processors.
set(PROJECT_IS_TOP_LEVEL ON)
set(CMAKE_GENERATOR Ninja)

# In place of CMake's: what the test says of the machine.
function(cmake_host_system_information)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "RESULT;QUERY" "")
  set(${ARG_RESULT} ${${ARG_QUERY}} PARENT_SCOPE)
endfunction()

function(expect_pool TOTAL_PHYSICAL_MEMORY NUMBER_OF_LOGICAL_CORES expected)
  set_property(GLOBAL PROPERTY JOB_POOLS "")
  set(CMAKE_JOB_POOL_COMPILE "")
  include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/BatonJobs.cmake)
  get_property(pools GLOBAL PROPERTY JOB_POOLS)
  if(NOT "${pools} ${CMAKE_JOB_POOL_COMPILE}" STREQUAL "${expected}")
    message(FATAL_ERROR "${TOTAL_PHYSICAL_MEMORY} MB and "
      "${NUMBER_OF_LOGICAL_CORES} processors: '${pools}' for "
      "'${CMAKE_JOB_POOL_COMPILE}', expected '${expected}'")
  endif()
endfunction()

expect_pool(1000 2 "baton_memory=1 baton_memory")
expect_pool(4500 8 "baton_memory=2 baton_memory")
expect_pool(4500 1 " ")
expect_pool(500 1 " ")
