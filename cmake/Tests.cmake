# One test program per folder of the library, named after it: headlight/kernels/attention -> test_kernels_attention, whose
# tests are labelled kernels_attention. Tests that take more than a few seconds lie in *_long_test.cc: they become
# test_<folder>_long, labelled "long".

find_package(GTest REQUIRED)
include(GoogleTest)

function(headlight_add_test_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE headlight headlight_options GTest::gmock GTest::gtest_main
    nlohmann_json::nlohmann_json PkgConfig::hwy)
  target_compile_definitions(${name} PRIVATE HEADLIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  string(REGEX REPLACE "^test_" "" label ${name})
  set(seconds 600)
  if(name MATCHES "_long$")
    set(label long)
    set(seconds 5400)  # attention_property_long_test.cc may be asked for an hour
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${seconds} LABELS ${label})
endfunction()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/headlight/*_test.cc)
foreach(source IN LISTS test_sources)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/headlight)
  string(REPLACE "/" "_" folder "${folder}")
  if(source MATCHES "_long_test\\.cc$")
    string(APPEND folder _long)
  endif()
  list(APPEND test_folders ${folder})
  list(APPEND test_sources_${folder} ${source})
endforeach()
list(REMOVE_DUPLICATES test_folders)
foreach(folder IN LISTS test_folders)
  headlight_add_test_program(test_${folder} ${test_sources_${folder}})
endforeach()

# The paths that this machine has, but would not choose; skipped where it lacks one.
foreach(path IN ITEMS HEADLIGHT_ISA=avx2 HEADLIGHT_ISA=baseline HEADLIGHT_BF16=avx512_bf16 HEADLIGHT_BF16=none)
  string(REPLACE "=" "." name "${path}")
  add_test(NAME kernels_gemm.${name} COMMAND test_kernels_gemm --gtest_brief=1)
  set_tests_properties(kernels_gemm.${name} PROPERTIES TIMEOUT 600 LABELS kernels_gemm ENVIRONMENT ${path}
    SKIP_REGULAR_EXPRESSION "this (CPU|machine) lacks")
endforeach()

# These start the programs of the build from scripts, as those of this machine.
if(EXISTS ${PROJECT_SOURCE_DIR}/tests/CMakeLists.txt AND NOT CMAKE_CROSSCOMPILING)
  add_subdirectory(tests)
endif()
