# Compiler cache, linker, build types and the job pool that keeps two torch compilations from
# exhausting a small machine.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
set(CMAKE_C_FLAGS_DEV "-O1 -g1")

find_program(HPO_CCACHE ccache)
if(HPO_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${HPO_CCACHE})
endif()

find_program(HPO_MOLD mold)
if(HPO_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set_property(GLOBAL PROPERTY JOB_POOLS torch=2)

if(HPO_SANITIZER STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(HPO_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(HPO_SANITIZER)
  message(FATAL_ERROR "HPO_SANITIZER: expected address or thread, got '${HPO_SANITIZER}'")
endif()

if(HPO_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HPO_BUILD_FUZZERS: expected clang, got ${CMAKE_CXX_COMPILER_ID}")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
