# cpp-httplib as packaged: a header and a library, without a config of CMake. Its
# classes have other members for each of its options, so those with which the
# library was built hold for whoever uses it.
find_package(PkgConfig QUIET)
pkg_check_modules(HTTPLIB QUIET IMPORTED_TARGET cpp-httplib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib REQUIRED_VARS HTTPLIB_LINK_LIBRARIES)
if(Httplib_FOUND AND NOT TARGET Httplib::httplib)
  add_library(Httplib::httplib ALIAS PkgConfig::HTTPLIB)
endif()
