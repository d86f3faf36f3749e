# The page's script and style: web/*.js and D3 bundled by esbuild into one script, embedded into the library as bytes, so
# that pages are single files that open from disk. Needs node-d3 and esbuild, no network.

find_path(D3_MODULES d3-selection/package.json PATHS /usr/share/nodejs NO_DEFAULT_PATH REQUIRED)

set(web_source ${PROJECT_SOURCE_DIR}/web)
set(web_output ${PROJECT_BINARY_DIR}/generated/headlight/report)
file(GLOB web_files CONFIGURE_DEPENDS ${web_source}/*.js ${web_source}/*.css)
add_custom_command(
  OUTPUT ${web_output}/web_bundle.cc
  COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${D3_MODULES}
    ${ESBUILD} ${web_source}/main.js --bundle --minify --format=iife --target=es2020 --log-level=warning
    "--banner:js=/* With parts of D3 (d3js.org): Copyright Mike Bostock, BSD 3-Clause and ISC licences. */"
    --outfile=${web_output}/page.js
  COMMAND ${ESBUILD} ${web_source}/style.css --minify --log-level=warning --outfile=${web_output}/page.css
  COMMAND ${CMAKE_COMMAND} -DSCRIPT=${web_output}/page.js -DSTYLE=${web_output}/page.css
    -DOUTPUT=${web_output}/web_bundle.cc -P ${CMAKE_CURRENT_LIST_DIR}/EmbedWeb.cmake
  DEPENDS ${web_files} ${CMAKE_CURRENT_LIST_DIR}/EmbedWeb.cmake ${CMAKE_CURRENT_LIST_DIR}/EmbedBytes.cmake
  COMMENT "Bundling the page's script"
  VERBATIM)
target_sources(headlight PRIVATE ${web_output}/web_bundle.cc)
