# bench/shapes/*.txt, embedded into the program, so that `headlight bench` has them wherever it is installed.

file(GLOB shape_lists CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/shapes/*.txt)
list(JOIN shape_lists "," shape_lists_joined)
set(shape_lists_output ${PROJECT_BINARY_DIR}/generated/apps/headlight/shape_lists.cc)
add_custom_command(
  OUTPUT ${shape_lists_output}
  COMMAND ${CMAKE_COMMAND} -DFILES=${shape_lists_joined} -DOUTPUT=${shape_lists_output}
    -P ${CMAKE_CURRENT_LIST_DIR}/EmbedShapes.cmake
  DEPENDS ${shape_lists} ${CMAKE_CURRENT_LIST_DIR}/EmbedShapes.cmake ${CMAKE_CURRENT_LIST_DIR}/EmbedBytes.cmake
  COMMENT "Embedding the lists of shapes"
  VERBATIM)
target_sources(headlight_program PRIVATE ${shape_lists_output})
