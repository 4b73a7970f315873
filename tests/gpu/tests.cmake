# tests/gpu/tests.cmake -- Kernels of GPUs on the CPU: each file of specifications in all orders, under
# AddressSanitizer and under ThreadSanitizer, and what is too large for them without (harness.lua).
find_program(CXX_COMPILER NAMES g++)
file(GLOB scripts CONFIGURE_DEPENDS tests/gpu/test_*.lua)
foreach(script IN LISTS scripts)
  test_name(${script} name)
  if(name STREQUAL "gpu/bugs") # it asks for each check itself
    register(${name} ${LUA} tests/support/spec.lua ${script})
    continue()
  endif()
  set(checks address thread)
  file(STRINGS ${script} large REGEX "large = ")
  if(large)
    list(APPEND checks large)
  endif()
  foreach(check IN LISTS checks)
    if(CXX_COMPILER AND NOT BURIN_SANITIZE) # kernels are the same in every build
      register(${name}/${check}
          ${CMAKE_COMMAND} -E env BURIN_GPU_CHECK=${check} ${LUA} tests/support/spec.lua ${script})
    endif()
  endforeach()
endforeach()

# The virtual GPU that runs kernels: libburin-gpu.so.1, which stands for driver, NVRTC and NVML.
# It's never instrumented: kernels are, by the harness.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
  file(GLOB virtual CONFIGURE_DEPENDS runtime/device/virtual/*.c runtime/base/*.c)
  list(FILTER virtual EXCLUDE REGEX "/virtual/nvrtc\\.c$") # compiler.cpp is in its place
  add_library(burin-gpu SHARED ${virtual} runtime/plan/cards.c
      tests/gpu/execute.cpp tests/gpu/compiler.cpp tests/gpu/products.cpp
      tests/gpu/fibers.cpp)
  set_target_properties(burin-gpu PROPERTIES
      COMPILE_OPTIONS "" LINK_OPTIONS "" SOVERSION 1 CXX_STANDARD 17 CXX_EXTENSIONS OFF
      LIBRARY_OUTPUT_DIRECTORY ${BURIN_BIN}/tests)
  target_include_directories(burin-gpu PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(burin-gpu PRIVATE _GNU_SOURCE BURIN_VIRTUAL_LIBRARY
      HOST_NO_KERNELS "HOST_H=\"${CMAKE_SOURCE_DIR}/tests/gpu/host.h\"")
  target_compile_options(burin-gpu PRIVATE -Wall -Wextra -Wshadow -Werror)
  target_link_options(burin-gpu PRIVATE
      -Wl,-z,defs -Wl,-Bsymbolic -Wl,--version-script=${CMAKE_SOURCE_DIR}/tests/gpu/exports.map)
  target_link_libraries(burin-gpu PRIVATE Threads::Threads m ${CMAKE_DL_LIBS})
  set_property(SOURCE tests/gpu/compiler.cpp APPEND PROPERTY
      OBJECT_DEPENDS ${CMAKE_SOURCE_DIR}/tests/gpu/host.h)

  set(EXECUTE
      BURIN_CUDA_DRIVER=$<TARGET_FILE:burin-gpu> BURIN_NVRTC=$<TARGET_FILE:burin-gpu>
      BURIN_NVML=$<TARGET_FILE:burin-gpu> BURIN_CUBLASLT=$<TARGET_FILE:burin-gpu>)
  foreach(name execute products)
    add_executable(test-gpu-${name} tests/gpu/test_${name}.c)
    target_compile_definitions(test-gpu-${name} PRIVATE _GNU_SOURCE)
    target_compile_options(test-gpu-${name} PRIVATE -Wall -Wextra -Werror -Wshadow)
    target_link_libraries(test-gpu-${name} PRIVATE burin_runtime PkgConfig::CMOCKA)
    register(gpu/${name} ${CMAKE_COMMAND} -E env ${EXECUTE} $<TARGET_FILE:test-gpu-${name}>)
  endforeach()

  # A hundred steps of a model with eyes, as kernels run them.
  set(seeing gemma4_tiny-e2b-bf16)
  if(TARGET emitted-${seeing} AND NOT BURIN_SANITIZE)
    add_executable(test-gpu-steps tests/gpu/test_steps.c)
    target_compile_definitions(test-gpu-steps PRIVATE _GNU_SOURCE)
    target_compile_options(test-gpu-steps PRIVATE -Wall -Wextra -Werror -Wshadow)
    target_link_libraries(test-gpu-steps PRIVATE
        emitted-${seeing} burin_runtime PkgConfig::CMOCKA)
    register(gpu/steps ${CMAKE_COMMAND} -E env ${EXECUTE} $<TARGET_FILE:test-gpu-steps>)
  endif()

  # Host bodies of conversions, where there is a toolkit against its headers, too.
  find_path(NVIDIA_HEADERS cuda_bf16.h PATHS /usr/local/cuda/include)
  add_executable(test-gpu-host tests/gpu/check_host.cpp)
  target_include_directories(test-gpu-host PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(test-gpu-host PRIVATE HOST_NO_KERNELS)
  target_compile_options(test-gpu-host PRIVATE -Wall -Wextra -Werror)
  if(NVIDIA_HEADERS)
    target_sources(test-gpu-host PRIVATE tests/gpu/check_nvidia.cpp)
    target_include_directories(test-gpu-host SYSTEM PRIVATE ${NVIDIA_HEADERS})
    target_compile_definitions(test-gpu-host PRIVATE HAVE_NVIDIA)
  endif()
  register(gpu/host_conversions $<TARGET_FILE:test-gpu-host>)
endif()

# Every kernel of models in full size through the real NVRTC, which needs no GPU.
if(NOT BURIN_SANITIZE)
  register(gpu/kernels ${CMAKE_COMMAND} -E env BURIN_RUNTIME=$<TARGET_FILE:burin_runtime>
      ${LUA} tests/gpu/kernels.lua)
  set_tests_properties(gpu/kernels PROPERTIES PROCESSORS 2)
endif()

# A binary with embedded kernels, and what tools/gpu_check asks a GPU, asked of the virtual one.
if(CXX_COMPILER AND NOT BURIN_SANITIZE)
  register(gpu/aot ${CMAKE_COMMAND} -E env BURIN_RUNTIME=$<TARGET_FILE:burin_runtime>
      BURIN_APP=$<TARGET_FILE:burin_app> bash tests/gpu/aot.sh)
  add_executable(check-device tests/gpu/check_device.c)
  target_compile_definitions(check-device PRIVATE _GNU_SOURCE)
  target_compile_options(check-device PRIVATE -Wall -Wextra -Wshadow -Werror)
  target_link_libraries(check-device PRIVATE burin_runtime)
  foreach(question mapping nodes)
    register(gpu/device_${question}
        ${CMAKE_COMMAND} -E env ${EXECUTE} $<TARGET_FILE:check-device> ${question})
  endforeach()
  register(gpu/device_wrappers ${CMAKE_COMMAND} -E env ${EXECUTE}
      $<TARGET_FILE:check-device> wrappers ${CMAKE_CURRENT_BINARY_DIR}/wrappers)
endif()
