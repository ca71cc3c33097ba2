# What Baton is linked with, by component: read by its own build, and by
# find_package(baton), which looks for what the components asked for need and for
# nothing else.
set(BATON_COMPONENTS headers core autograd rpc optim models autograd_distributed
  optim_distributed models_distributed tools)
if(BATON_MPI)
  list(APPEND BATON_COMPONENTS mpi)
endif()
if(BATON_TORCH)
  list(APPEND BATON_COMPONENTS torch)
endif()

# Other components, and packages of others with their first letter in upper case
# or as they are called.
set(baton_headers_needs absl Threads)
set(baton_core_needs headers OpenMP Dnnl BLAS nlohmann_json ZLIB)
set(baton_autograd_needs core)
set(baton_rpc_needs core OpenSSL Protobuf gRPC)
set(baton_optim_needs autograd)
set(baton_models_needs autograd JPEG LibArchive nlohmann_json)
set(baton_autograd_distributed_needs autograd rpc)
set(baton_optim_distributed_needs optim autograd_distributed)
set(baton_models_distributed_needs models optim_distributed)
set(baton_mpi_needs models_distributed MPI)
set(baton_torch_needs models LibTorch)
set(baton_tools_needs rpc Httplib nlohmann_json OpenSSL)

# How a package is found, where its name alone does not say.
set(baton_find_MPI COMPONENTS CXX)
set(baton_find_OpenMP COMPONENTS CXX)
set(baton_find_OpenSSL 3.0)
set(baton_find_gRPC CONFIG)

# baton_dependencies(RESULT COMPONENTS...): the packages of others.
function(baton_dependencies result)
  set(found)
  foreach(name ${ARGN})
    if(name IN_LIST BATON_COMPONENTS)
      baton_dependencies(found_below ${baton_${name}_needs})
      list(APPEND found ${found_below})
    else()
      list(APPEND found ${name})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# A macro, since packages leave variables for the caller.
macro(baton_find_dependencies)
  baton_dependencies(baton_packages ${ARGN})
  foreach(baton_package IN LISTS baton_packages)
    find_package(${baton_package} ${baton_find_${baton_package}} REQUIRED)
  endforeach()
endmacro()
