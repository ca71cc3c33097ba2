# What find_package(baton) reads (cmake/baton-config.cmake.in), and the headers.
include(CMakePackageConfigHelpers)
set(baton_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/baton)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/baton-config.cmake.in
  ${baton_BINARY_DIR}/baton-config.cmake
  INSTALL_DESTINATION ${baton_cmake_dir})
write_basic_package_version_file(${baton_BINARY_DIR}/baton-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${baton_BINARY_DIR}/baton-config.cmake
  ${baton_BINARY_DIR}/baton-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindDnnl.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindCudnn.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindHttplib.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake
  ${CMAKE_CURRENT_LIST_DIR}/BatonDependencies.cmake
  ${CMAKE_CURRENT_LIST_DIR}/BatonPlugin.cmake
  DESTINATION ${baton_cmake_dir} COMPONENT dev)
install(EXPORT baton NAMESPACE baton:: FILE baton-targets.cmake
  DESTINATION ${baton_cmake_dir} COMPONENT dev)
install(DIRECTORY ${baton_BINARY_DIR}/include/baton
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

# Debian wants the licence of each package under the package's name.
set(baton_package_runtime baton)
set(baton_package_dev baton-dev)
set(baton_package_tools baton-tools)
foreach(package runtime dev tools)
  install(FILES ${baton_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${baton_package_${package}}
    RENAME copyright COMPONENT ${package})
endforeach()
