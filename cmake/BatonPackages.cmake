# `cpack` in a built tree makes three packages for the Debian or Ubuntu that it
# was built on:
#   baton        baton-worker, baton-run, baton-rendezvous
#   baton-dev    headers, static libraries, find_package(baton)
#   baton-tools  batonctl, baton-certs
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME baton)
set(CPACK_PACKAGE_VENDOR "The Baton Authors")
set(CPACK_PACKAGE_CONTACT "The Baton Authors <authors@baton.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime dev tools)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${baton_package_runtime})
set(CPACK_DEBIAN_DEV_PACKAGE_NAME ${baton_package_dev})
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME ${baton_package_tools})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
  "Training of models that are split over processes and machines: the daemon
 Workers, the place where they meet, and what starts them on one machine.")
set(CPACK_COMPONENT_DEV_DESCRIPTION
  "Training of models that are split over processes and machines: development
 C++ headers, static libraries and the files of find_package(baton).")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
  "Training of models that are split over processes and machines: tools
 A view inside of a running cluster, and certificates for one.")

# The programs need what they are linked with; who develops, what Baton was
# built with (its tests apart), and the C library that libbaton_c.so points to.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
file(STRINGS ${baton_SOURCE_DIR}/tools/packages.txt baton_needed
  REGEX "^([a-z0-9+-]+-dev|protobuf-compiler-grpc)$")
list(REMOVE_ITEM baton_needed libgmock-dev libgtest-dev)
list(APPEND baton_needed "baton (= ${baton_VERSION})")
if(BATON_MPI AND "${MPI_CXX_INCLUDE_DIRS}" MATCHES "openmpi|mpich")
  list(APPEND baton_needed lib${CMAKE_MATCH_0}-dev)
endif()
list(JOIN baton_needed ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "cmake, g++")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS baton)
include(CPack)
