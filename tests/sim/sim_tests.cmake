# Included by tests/CMakeLists.txt: simulations of a cluster
# (docs/design/simulator.md). They replace threads and clocks by their own, which
# sanitizers do not support.
if(NOT BATON_SANITIZE)
  file(GLOB sim_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/sim/*.cc)
  baton_test_program(sim DEPS baton_models_distributed protobuf::libprotobuf ${CMAKE_DL_LIBS}
    SOURCES ${sim_sources})
  target_include_directories(sim PRIVATE ${baton_BINARY_DIR})  # *.pb.h
  # -O2, because it runs for hours. As an option of the target it would be overridden
  # by the -O0 of all tests.
  set_source_files_properties(${sim_sources} PROPERTIES COMPILE_OPTIONS
    $<$<CONFIG:Release>:-O2>)
  # Exports the functions of posix.cc, so that the C++ library calls them instead of
  # the C library's.
  set_target_properties(sim PROPERTIES ENABLE_EXPORTS ON UNITY_BUILD OFF)
  add_test(NAME sim.seeds COMMAND sim --seeds=200)
  set_tests_properties(sim.seeds PROPERTIES TIMEOUT 600 LABELS sim PROCESSORS 2)
  add_test(NAME sim.replays COMMAND python3
    ${CMAKE_CURRENT_SOURCE_DIR}/sim/replay_test.py $<TARGET_FILE:sim>)
  set_tests_properties(sim.replays PROPERTIES TIMEOUT 120 LABELS sim SKIP_RETURN_CODE 77)
  add_test(NAME sim.planted_lines COMMAND python3
    ${CMAKE_CURRENT_SOURCE_DIR}/sim/planted/find.py --check)
  set_tests_properties(sim.planted_lines PROPERTIES LABELS sim)
  # Those of the first 100,000 seeds that have found bugs.
  foreach(seed 2965 17616 20954 33503 37242 54365 59450 62150 72998 76253 76306
          79624 87388 99271)
    add_test(NAME sim.seed_${seed} COMMAND sim --seed=${seed})
    set_tests_properties(sim.seed_${seed} PROPERTIES TIMEOUT 60 LABELS sim)
  endforeach()
  add_test(NAME sim.servers COMMAND sim --seeds=60 --servers)
  set_tests_properties(sim.servers PROPERTIES TIMEOUT 600 LABELS sim PROCESSORS 2)
  foreach(seed 8 70 124 158 174 439 753 1043 1965 2497 9584)
    add_test(NAME sim.servers_${seed} COMMAND sim --seed=${seed} --servers)
    set_tests_properties(sim.servers_${seed} PROPERTIES TIMEOUT 60 LABELS sim)
  endforeach()
  add_test(NAME sim.pipelines COMMAND sim --seeds=60 --pipelines)
  set_tests_properties(sim.pipelines PROPERTIES TIMEOUT 600 LABELS sim PROCESSORS 2)
  foreach(seed 17 95 134 169 213 231 234 284 318 341 374 472 698 713 806 1834 1979
          2744 3142 3409)
    add_test(NAME sim.pipelines_${seed} COMMAND sim --seed=${seed} --pipelines)
    set_tests_properties(sim.pipelines_${seed} PROPERTIES TIMEOUT 60 LABELS sim)
  endforeach()
endif()
