# One program per *_fuzz.cc: headlight/io/csv_fuzz.cc -> csv_fuzz. Seeds and past findings: tests/corpus/csv_fuzz/.
# With HEADLIGHT_FUZZ it is a libFuzzer program; without, it runs once over its corpus, as the test fuzz.csv_fuzz.

file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/headlight/*_fuzz.cc)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  set(corpus ${PROJECT_SOURCE_DIR}/tests/corpus/${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE headlight headlight_options)
  if(HEADLIGHT_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz_corpus_main.cc)
    if(EXISTS ${corpus})
      add_test(NAME fuzz.${name} COMMAND ${name} ${corpus})
    endif()
  endif()
endforeach()
