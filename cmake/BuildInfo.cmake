# headlight/base/build_info.h, as a source that is written anew whenever the commit has changed.

set(build_info ${PROJECT_BINARY_DIR}/generated/headlight/base/build_info.cc)
set(write_build_info ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -DOUTPUT=${build_info}
  -P ${CMAKE_CURRENT_LIST_DIR}/WriteBuildInfo.cmake)
add_custom_target(headlight_build_info COMMAND ${write_build_info} BYPRODUCTS ${build_info}
  COMMENT "Looking at the commit" VERBATIM)
add_dependencies(headlight headlight_build_info)
target_sources(headlight PRIVATE ${build_info})
