# cmake -DBUILD= -DSOURCE= -DWORK= -DREPOSITORY= -DGENERATOR= -DCOMPILER= -P install_and_build.cmake
file(REMOVE_RECURSE ${WORK})
file(COPY ${SOURCE}/ DESTINATION ${WORK}/source)
file(COPY ${REPOSITORY}/examples DESTINATION ${WORK}/source)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGV}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${WORK}/source -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)

# Nothing of the repository itself may have been used.
file(READ ${WORK}/build/compile_commands.json commands)
string(REPLACE "${WORK}" "WORK" commands "${commands}")
if(commands MATCHES "${REPOSITORY}")
  message(FATAL_ERROR "the consumer was compiled with paths of the repository:\n${commands}")
endif()
run(${WORK}/build/consumer)

# The installed program trains a run, and the example reads it.
set(program ${WORK}/prefix/bin/headlight)
run(${program} data make relations --language en --count 64 --seed 1 --out ${WORK}/text.jsonl)
run(${program} train --data ${WORK}/text.jsonl --out ${WORK}/run --dim 16 --layers 1 --heads 2 --epochs 1)
run(${WORK}/build/classify ${WORK}/run "the old king saw the cat. it slept.")
