# No more compilers at a time than the memory holds: one of the largest files, or
# eight compiled together, takes up to 2 GB. Where the processors are the limit,
# nothing changes.
if(NOT PROJECT_IS_TOP_LEVEL OR NOT CMAKE_GENERATOR STREQUAL "Ninja")
  return()
endif()
cmake_host_system_information(RESULT baton_memory QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT baton_processors
  QUERY NUMBER_OF_LOGICAL_CORES)
if(EXISTS /sys/fs/cgroup/memory.max)  # a container's share
  file(READ /sys/fs/cgroup/memory.max baton_share)
  string(STRIP "${baton_share}" baton_share)
  if(baton_share MATCHES "^[0-9]+$")
    math(EXPR baton_share "${baton_share} >> 20")
    if(baton_share LESS baton_memory)
      set(baton_memory ${baton_share})
    endif()
  endif()
endif()
math(EXPR baton_jobs "${baton_memory} / 2000")
if(baton_jobs LESS 1)
  set(baton_jobs 1)
endif()
if(baton_jobs LESS baton_processors)
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS baton_memory=${baton_jobs})
  set(CMAKE_JOB_POOL_COMPILE baton_memory)
  set(CMAKE_JOB_POOL_LINK baton_memory)
  message(STATUS "Jobs: ${baton_jobs} at a time, for ${baton_memory} MB of memory")
endif()
