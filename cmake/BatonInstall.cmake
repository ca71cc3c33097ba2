# What find_package(baton) reads: see cmake/baton-config.cmake.in.
include(CMakePackageConfigHelpers)
set(baton_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/baton)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/baton-config.cmake.in
  ${CMAKE_BINARY_DIR}/baton-config.cmake
  INSTALL_DESTINATION ${baton_cmake_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/baton-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/baton-config.cmake
  ${CMAKE_BINARY_DIR}/baton-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindDnnl.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindCudnn.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindHttplib.cmake
  ${CMAKE_CURRENT_LIST_DIR}/BatonDependencies.cmake
  ${CMAKE_CURRENT_LIST_DIR}/BatonPlugin.cmake
  DESTINATION ${baton_cmake_dir})
install(EXPORT baton NAMESPACE baton:: FILE baton-targets.cmake
  DESTINATION ${baton_cmake_dir})
