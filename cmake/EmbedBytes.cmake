# bytes_of(FILE NAME): appends to the variable `source` the C++ array NAME with the bytes of FILE.

function(bytes_of file name)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND source "constexpr unsigned char ${name}[] = {${bytes}};\n")
  set(source "${source}" PARENT_SCOPE)
endfunction()
