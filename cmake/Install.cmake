# cmake --install puts the library, its headers, the program, and what find_package(Headlight) needs.

include(CMakePackageConfigHelpers)
install(TARGETS headlight EXPORT HeadlightTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS headlight_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/headlight DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE)
install(EXPORT HeadlightTargets NAMESPACE Headlight::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Headlight)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/HeadlightConfig.cmake.in
  ${PROJECT_BINARY_DIR}/HeadlightConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Headlight)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/HeadlightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/HeadlightConfig.cmake
  ${PROJECT_BINARY_DIR}/HeadlightConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Headlight)
