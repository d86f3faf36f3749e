# One program per *_bench.cc: headlight/kernels/gemm/gemm_bench.cc -> gemm_bench.

find_package(benchmark REQUIRED)
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/headlight/*_bench.cc)
foreach(source IN LISTS bench_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE headlight headlight_options benchmark::benchmark_main)
endforeach()

# The sides of the comparisons with other libraries (bench/peers) that are written in C++.
function(headlight_add_peer name source)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/bench/peers/${source})
  target_link_libraries(${name} PRIVATE headlight headlight_options nlohmann_json::nlohmann_json)
endfunction()

headlight_add_peer(headlight_step train_classifier/headlight_step.cc)
headlight_add_peer(headlight_attention attention/headlight_attention.cc)

# oneDNN 3 from a folder with its include/ and lib/; what it needs itself is beside it, and found when the program runs.
set(HEADLIGHT_PEER_ONEDNN "" CACHE PATH "oneDNN 3 to compare attention with: a folder with include/ and lib/")
if(HEADLIGHT_PEER_ONEDNN)
  headlight_add_peer(onednn_attention attention/onednn_attention.cc)
  target_include_directories(onednn_attention SYSTEM BEFORE PRIVATE ${HEADLIGHT_PEER_ONEDNN}/include)
  target_link_libraries(onednn_attention PRIVATE ${HEADLIGHT_PEER_ONEDNN}/lib/libdnnl.so -Wl,--allow-shlib-undefined)
endif()

# oneDNN 2.6 of Debian, where libdnnl-dev is installed (its CMake package asks for OpenCL, which nothing here needs).
find_file(ONEDNN2_LIBRARY libdnnl.so.2 PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
find_path(ONEDNN2_INCLUDE oneapi/dnnl/dnnl.hpp)
if(ONEDNN2_LIBRARY AND ONEDNN2_INCLUDE)
  headlight_add_peer(onednn2_attention attention/onednn_attention.cc)
  target_include_directories(onednn2_attention SYSTEM PRIVATE ${ONEDNN2_INCLUDE})
  target_link_libraries(onednn2_attention PRIVATE ${ONEDNN2_LIBRARY})
endif()
