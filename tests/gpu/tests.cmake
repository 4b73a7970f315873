# tests/gpu/tests.cmake -- Kernels of GPUs on the CPU: each file of specifications three times, in all
# orders, under AddressSanitizer and under ThreadSanitizer (harness.lua).
find_program(CXX_COMPILER NAMES g++)
file(GLOB scripts CONFIGURE_DEPENDS tests/gpu/test_*.lua)
foreach(script IN LISTS scripts)
  test_name(${script} name)
  set(checks "")
  if(NOT name STREQUAL "gpu/bugs") # it asks for each check itself
    set(checks address thread)
  endif()
  if(CXX_COMPILER)
    register(${name} ${LUA} tests/support/spec.lua ${script})
    foreach(check IN LISTS checks)
      register(${name}/${check}
          ${CMAKE_COMMAND} -E env BURIN_GPU_CHECK=${check} ${LUA} tests/support/spec.lua ${script})
    endforeach()
  endif()
endforeach()
