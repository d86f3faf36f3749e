# One program per *_bench.cc: headlight/kernels/gemm/gemm_bench.cc -> gemm_bench.

find_package(benchmark REQUIRED)
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/headlight/*_bench.cc)
foreach(source IN LISTS bench_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE headlight headlight_options benchmark::benchmark_main)
endforeach()

# Headlight's side of the comparisons with other libraries (bench/peers).
foreach(source IN ITEMS train_classifier/headlight_step attention/headlight_attention)
  cmake_path(GET source FILENAME name)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/bench/peers/${source}.cc)
  target_link_libraries(${name} PRIVATE headlight headlight_options nlohmann_json::nlohmann_json)
endforeach()
