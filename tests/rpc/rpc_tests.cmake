# Included by tests/CMakeLists.txt: the tests of rpc, and the programs they start.
baton_tests(rpc_tests rpc baton_rpc baton_test_support baton_tools
  protobuf::libprotobuf SHARDS 12
  TIMING */StuckPeer.DoesNotHoldUp* StuckPeerOfAProcess.* StuckPeers.*
    SilentWorkerTest.* KilledWorkerTest.* KillDetection.* StopDetection.*
    LostCalls.OverTcp*
    GrpcLoss.OfAKilledProcess* GrpcSilence.* GrpcRingSilence.*
    Grpc.AWorkerThatDiedBeforeTheFirstMessageIsNotAwaited
    Grpc.AShutdownDoesNotWaitForAPeerThat*
    Grpc.HowLongAPeerIsDialledAgainFollowsFromTheLease LateTensorByTcp.*
    GrpcImpostor.WhoProvesNothingIsCutOff
    RendezvousLeaseTest.* RendezvousSecurity.CertificatesThatDoNotFitAreNamed
    Rendezvous.AServiceThatEndsEndsTheWait GivenUpTest.*
    FaultTransportTest.ADelayedMessageIsOvertaken
    FaultTransportTest.AShutdownFailsWhatIsHeldBack
    FaultTest.ACreationThatComesAfterItsCallerGaveUpLeavesNothing
    Of/GrpcUnauthenticated.*
  GRPC */Grpc* Grpc* Cluster.* Rendezvous*
    Limits.* LinkTest.* LateTensor* TcpWorkers.* InPlaceTest.* SharedMemoryLoss.*
    LongLease.* StuckPeer* GoneWorker.*)
target_sources(rpc_tests PRIVATE rpc/counter.cc rpc/peer/keeper.cc
  rpc/peer/peer_process.cc rpc/relay.cc)
target_include_directories(rpc_tests PRIVATE ${baton_BINARY_DIR})  # *.pb.h
if(BATON_SANITIZE)
  set_source_files_properties(rpc/malloc_settings_test.cc
    rpc/grpc_unauthenticated_test.cc PROPERTIES
    COMPILE_DEFINITIONS BATON_SANITIZED)
endif()
# Optimised, because transport_bench measures it, too.
add_executable(echo_peer rpc/peer/echo_peer.cc)
target_link_libraries(echo_peer PRIVATE baton_rpc baton_options)
baton_test_program(leaver SOURCES rpc/peer/leaver.cc DEPS baton_rpc)
baton_test_program(worker_peer DEPS baton_rpc
  SOURCES rpc/peer/worker_peer.cc rpc/peer/keeper.cc rpc/counter.cc)
set(programs_of_rpc_tests echo_peer leaver worker_peer)

# Plug-ins, good and bad, beside the programs that load them.
baton_plugin_host(rpc_tests core rpc)
file(GLOB plugins CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/rpc/plugin/*.cc)
foreach(source ${plugins})
  cmake_path(GET source STEM name)
  baton_plugin(plugin_${name} ${source})
  target_link_libraries(plugin_${name} PRIVATE baton_options)
  set_target_properties(plugin_${name} PROPERTIES OUTPUT_NAME ${name}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/plugins)
  list(APPEND plugin_targets plugin_${name})
endforeach()
list(APPEND programs_of_rpc_tests ${plugin_targets})
add_dependencies(rpc_tests ${programs_of_rpc_tests})
set_target_properties(${programs_of_rpc_tests} PROPERTIES EXCLUDE_FROM_ALL ON)

# The channel of GPUs, with a stand-in that needs none.
baton_tests(rpc_cuda_ipc_tests rpc/cuda_ipc baton_rpc baton_test_support
  protobuf::libprotobuf TIMING *GpuTensors.ASenderThatIsKilledHoldsNobodyUp)
target_sources(rpc_cuda_ipc_tests PRIVATE rpc/transport_worker.cc)
target_include_directories(rpc_cuda_ipc_tests PRIVATE ${baton_BINARY_DIR})
baton_cuda_tests(rpc_cuda_ipc_tests)
baton_test_program(gpu_peer SOURCES rpc/peer/gpu_peer.cc
  DEPS baton_rpc absl::failure_signal_handler absl::symbolize)
add_dependencies(rpc_cuda_ipc_tests gpu_peer)

# Processes killed and stopped at random; rpc_chaos --runs=1000 is the long run.
baton_test_program(chaos_worker DEPS baton_rpc SOURCES rpc/chaos/chaos_worker.cc
  rpc/chaos/load.cc rpc/counter.cc rpc/peer/report_idle.cc)
baton_test_program(rpc_chaos DEPS baton_test_support
  SOURCES rpc/chaos/rpc_chaos.cc rpc/chaos/chaos_cluster.cc)
add_dependencies(rpc_chaos chaos_worker)
add_test(NAME rpc.chaos COMMAND rpc_chaos --runs=200 --seed=1
  --parallel=8 --limit_ms=2000 --late=2)
set_tests_properties(rpc.chaos PROPERTIES TIMEOUT 300 LABELS timing
  RUN_SERIAL ON)

# Processes worked for long; rpc_soak without flags is the long run.
baton_test_program(soak_worker DEPS baton_rpc SOURCES rpc/soak/soak_worker.cc
  rpc/soak/soak_load.cc rpc/peer/report_idle.cc)
baton_test_program(rpc_soak SOURCES rpc/soak/rpc_soak.cc
  DEPS baton_test_support absl::flags absl::flags_parse)
add_dependencies(rpc_soak soak_worker)
# Sanitizers keep what was freed, and find leaks by other means.
set(soak_growth_kb 4096)
if(BATON_SANITIZE)
  set(soak_growth_kb 1048576)
endif()
add_test(NAME rpc.soak COMMAND rpc_soak --calls=12000 --rrefs=1200 --rounds=12
  --max_growth_kb=${soak_growth_kb})
baton_labels(soak_labels rpc_soak grpc)
set_tests_properties(rpc.soak PROPERTIES TIMEOUT 120 LABELS "${soak_labels}"
  PROCESSORS 3)

# Schedules of the RRef protocol; rref_explore --schedules=1000000 is the long run.
baton_test_program(rref_explore DEPS baton_rpc SOURCES rpc/model/rref_explore.cc
  rpc/model/rref_model.cc rpc/model/rref_model_messages.cc)
add_test(NAME rpc.rref_model COMMAND rref_explore --schedules=40000 --seed=1)
set_tests_properties(rpc.rref_model PROPERTIES TIMEOUT 120 LABELS rpc PROCESSORS 2)

# Groups of workers. Those that are killed are processes of their own.
baton_tests(rpc_collectives_tests rpc/collectives baton_rpc baton_test_support
  TIMING *KilledMember.* StoppedMember.* GRPC *Collectives.*Grpc*)
baton_test_program(group_member DEPS baton_rpc
  SOURCES rpc/collectives/programs/group_member.cc)
add_dependencies(rpc_collectives_tests group_member)
baton_cuda_tests(rpc_collectives_tests Kinds/*.* InA/*.* GpuGroups.*)

# Those who find their rendezvous by etcd.
baton_tests(rpc_etcd_tests rpc/etcd baton_rpc baton_test_support baton_tools
  TIMING EtcdClient.* EtcdOverTls.* RendezvousCandidates.*
  GRPC EtcdAddress.IsToldApart* RendezvousByEtcd.*)
