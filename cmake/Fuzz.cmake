# One libFuzzer program per *_fuzz.cc: headlight/text/csv_fuzz.cc -> csv_fuzz. Corpora: tests/corpus/<name>/.

file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/headlight/*_fuzz.cc)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE headlight headlight_options)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
