# make install: the libraries, the public headers, the licence, and what pkg-config and find_package(ropegrad) read.
include(CMakePackageConfigHelpers)

set_target_properties(ropegrad_shared PROPERTIES EXPORT_NAME ropegrad)
install(TARGETS ropegrad_shared ropegrad_static EXPORT ropegrad
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
list(TRANSFORM ROPEGRAD_OPS REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/ops/\\1/\\1.h" OUTPUT_VARIABLE operator_headers)
install(FILES include/ropegrad/ropegrad.h ${operator_headers} ${ROPEGRAD_GENERATED_INCLUDE}/ropegrad/operators.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ropegrad)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ropegrad)
install(EXPORT ropegrad NAMESPACE ropegrad:: FILE ropegradTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/ropegradConfig.cmake.in ropegradConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(ropegradConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ropegradConfig.cmake ${PROJECT_BINARY_DIR}/ropegradConfigVersion.cmake
  DESTINATION ${package_dir})

# The prefix is known only when installing, so the file names it from where it lies itself.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH ropegrad_prefix_from_pc /prefix/${pkgconfig_dir} /prefix)
list(TRANSFORM OpenMP_C_LIB_NAMES PREPEND -l OUTPUT_VARIABLE ropegrad_private_libs)
list(JOIN ropegrad_private_libs " " ropegrad_private_libs)
configure_file(cmake/ropegrad.pc.in ropegrad.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ropegrad.pc DESTINATION ${pkgconfig_dir})
