# tests/tests.cmake -- Everything that ctest runs. A file named test_* in one of these
# folders is found by its name; it runs in the root of the tree.
#
#   tests/runtime/**/test_*.c      cmocka, one module of the runtime each
#   tests/runtime/device/cuda/fake_*.c  libraries that test_open.c opens
#   tests/models/test_*.c          cmocka, once for each model in BURIN_MODEL
#   tests/models/test_*.{py,lua,sh}  the binaries, end to end
#   tests/models/gemma4.py         likewise, once for each variant and kind of prompt
#   tests/{gen,ops}/test_*.lua     specifications in Lua (tests/support/spec.lua)
#   tests/repo/*.{lua,sh}          the tree itself
#   tests/fuzz/fuzz_*.c            parsers of foreign bytes: the corpus, then seconds of mutations
#
# A test that lacks what it needs (weights, a tool) ends with 77 and counts as skipped.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
find_program(LUA NAMES lua5.4 REQUIRED)
find_program(PYTHON NAMES python3 REQUIRED)

# "tests/runtime/text/test_bpe.c" -> "runtime/text/bpe"
function(test_name path out)
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${path})
  string(REGEX REPLACE "(test_)?([^/]*)\\.[a-z]+$" "\\2" name ${name})
  set(${out} ${name} PARENT_SCOPE)
endfunction()

# Sanitizers would end the process where malloc may refuse, and a test asks for just that.
set(MAY_REFUSE allocator_may_return_null=1)

function(register name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
      SKIP_RETURN_CODE 77 TIMEOUT 900 ENVIRONMENT
      "BURIN_BIN=${BURIN_BIN};ASAN_OPTIONS=${MAY_REFUSE};TSAN_OPTIONS=${MAY_REFUSE}")
endfunction()

function(cmocka_test name source)
  string(REPLACE "/" "-" target test-${name})
  add_executable(${target} ${source})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes)
  target_link_libraries(${target} PRIVATE ${ARGN} burin_runtime PkgConfig::CMOCKA)
  register(${name} ${target})
endfunction()

file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/runtime/test_*.c)
foreach(source IN LISTS sources)
  test_name(${source} name)
  if(TARGET burin_app)
    cmocka_test(${name} ${source} burin_app)
  else()
    cmocka_test(${name} ${source})
  endif()
endforeach()

# Libraries that look like NVIDIA's, for tests/runtime/device/cuda: fake_NAME.so.
file(GLOB sources CONFIGURE_DEPENDS tests/runtime/device/cuda/fake_*.c)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  add_library(${name} MODULE ${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES
      PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${BURIN_BIN}/tests)
  add_dependencies(test-runtime-device-cuda-open ${name})
endforeach()

file(GLOB sources CONFIGURE_DEPENDS tests/models/test_*.c)
foreach(source IN LISTS sources)
  test_name(${source} name)
  foreach(model IN LISTS BURIN_MODEL)
    cmocka_test(${name}/${model} ${source} emitted-${model})
  endforeach()
endforeach()

# What the scripts of tests/models ask for logits: logits-NAME.
foreach(model IN LISTS BURIN_MODEL)
  add_executable(logits-${model} tests/models/logits.c)
  target_compile_definitions(logits-${model} PRIVATE _GNU_SOURCE)
  target_compile_options(logits-${model} PRIVATE -Wall -Wextra -Werror -Wshadow)
  target_link_libraries(logits-${model} PRIVATE burin_runtime emitted-${model} burin_runtime)
  set_target_properties(logits-${model} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${BURIN_BIN}/tests)
endforeach()

# What tests/models/test_rehearse.lua asks: a binary of tables alone.
add_executable(rehearse tests/models/rehearse.c)
target_compile_definitions(rehearse PRIVATE _GNU_SOURCE)
target_compile_options(rehearse PRIVATE -Wall -Wextra -Werror -Wshadow)
target_link_libraries(rehearse PRIVATE burin_app burin_runtime)
set_target_properties(rehearse PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${BURIN_BIN}/tests)

# What tests/models/test_encoder.py asks for soft tokens, of models with an encoder: encode-NAME.
foreach(model IN LISTS BURIN_MODEL)
  file(STRINGS build/gen/${model}/${model}.h encodes REGEX "_encode_image;")
  if(encodes)
    add_executable(encode-${model} tests/models/encode.c)
    target_compile_definitions(encode-${model} PRIVATE _GNU_SOURCE)
    target_compile_options(encode-${model} PRIVATE -Wall -Wextra -Werror -Wshadow)
    target_link_libraries(
        encode-${model} PRIVATE burin_runtime emitted-${model} burin_runtime)
    set_target_properties(encode-${model} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${BURIN_BIN}/tests)
  endif()
endforeach()

file(GLOB scripts CONFIGURE_DEPENDS
    tests/gen/test_*.lua tests/ops/test_*.lua tests/repo/*.lua tests/models/test_*.lua)
foreach(script IN LISTS scripts)
  test_name(${script} name)
  register(${name} ${LUA} tests/support/spec.lua ${script})
endforeach()

file(GLOB scripts CONFIGURE_DEPENDS tests/repo/*.sh tests/models/test_*.sh)
foreach(script IN LISTS scripts)
  test_name(${script} name)
  register(${name} bash ${script})
endforeach()

file(GLOB scripts CONFIGURE_DEPENDS tests/models/test_*.py)
foreach(script IN LISTS scripts)
  test_name(${script} name)
  register(${name} ${PYTHON} -B ${script})
endforeach()

foreach(variant e2b e4b 26b-a4b 31b)
  foreach(kind text image images video)
    register(models/gemma4_${variant}_${kind}
        ${PYTHON} -B tests/models/gemma4.py ${variant} ${kind})
  endforeach()
endforeach()

# Fuzzers always run under ASan and UBSan, unless ThreadSanitizer has the build.
file(GLOB fuzzed CONFIGURE_DEPENDS
    runtime/text/*.c runtime/weights/*.c runtime/plan/*.c runtime/base/*.c)
add_library(fuzzed OBJECT EXCLUDE_FROM_ALL ${fuzzed} tests/fuzz/standalone.c)
target_include_directories(fuzzed PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_definitions(fuzzed PUBLIC _GNU_SOURCE)
target_link_libraries(fuzzed PUBLIC PkgConfig::LIBRARIES Threads::Threads m)
if(NOT BURIN_SANITIZE)
  target_compile_options(
      fuzzed PUBLIC -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  target_link_options(fuzzed PUBLIC -fsanitize=address,undefined)
endif()
file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "fuzz_" "" name ${name})
  set(corpus tests/fuzz/corpus/${name})
  if(name STREQUAL "picture") # the decoders of burin-media
    if(NOT PICTURES_FOUND)
      continue()
    endif()
    set(corpus tests/golden/media/pictures)
    foreach(decoder detect exif jpeg picture png webp)
      list(APPEND source runtime/media/helper/${decoder}.c)
    endforeach()
  endif()
  add_executable(fuzz-${name} ${source})
  target_link_libraries(fuzz-${name} PRIVATE fuzzed)
  if(name STREQUAL "picture")
    target_link_libraries(fuzz-${name} PRIVATE PkgConfig::PICTURES)
  endif()
  register(fuzz/${name} fuzz-${name} ${corpus})
endforeach()

# The poisoned arena: what `gen --probe --out build/gen/probe/NAME` emitted (tests/run does).
file(GLOB folders CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/build/gen/probe/*)
foreach(folder IN LISTS folders)
  get_filename_component(model ${folder} NAME)
  include(${folder}/sources.cmake)
  add_library(probed-${model} STATIC ${BURIN_MODEL_SOURCES})
  target_include_directories(probed-${model} PRIVATE ${CMAKE_SOURCE_DIR} ${folder})
  target_compile_options(probed-${model} PRIVATE ${BURIN_EMITTED_WARNINGS})
  cmocka_test(probe/arena/${model} tests/probe/test_arena.c
      -Wl,--start-group probed-${model} burin_runtime -Wl,--end-group)
endforeach()

include(tests/gpu/tests.cmake)

# What tokens are drawn of, on the virtual GPU that executes.
if(TARGET burin-gpu AND TARGET emitted-llama_tiny-small-f32 AND NOT BURIN_SANITIZE)
  add_executable(test-gpu-tokens tests/gpu/test_tokens.c)
  target_compile_definitions(test-gpu-tokens PRIVATE _GNU_SOURCE)
  target_compile_options(test-gpu-tokens PRIVATE -Wall -Wextra -Werror -Wshadow)
  target_link_libraries(test-gpu-tokens PRIVATE
      emitted-llama_tiny-small-f32 burin_runtime PkgConfig::CMOCKA)
  register(gpu/tokens ${CMAKE_COMMAND} -E env ${EXECUTE} $<TARGET_FILE:test-gpu-tokens>)
endif()

# A binary that starts on it, and what it says of that.
if(TARGET burin-gpu AND TARGET llama_tiny-small-f32 AND NOT BURIN_SANITIZE)
  register(gpu/start ${CMAKE_COMMAND} -E env ${EXECUTE} bash tests/gpu/start.sh
      $<TARGET_FILE:llama_tiny-small-f32> tests/golden/llama_tiny-small-f32/model.safetensors)
endif()

# Tiny models on it, against transformers.
if(TARGET burin-gpu AND NOT BURIN_SANITIZE)
  foreach(model IN LISTS BURIN_MODEL)
    set(kinds)
    if(model MATCHES "^gemma4_tiny-")
      set(kinds text pictures)
    elseif(model MATCHES "^llama_tiny-")
      set(kinds text)
    endif()
    foreach(kind IN LISTS kinds)
      register(gpu/models/${model}_${kind} ${CMAKE_COMMAND} -E env ${EXECUTE}
          ${PYTHON} -B tests/gpu/models.py ${model} ${kind})
    endforeach()
  endforeach()
endif()
