# hpo_library, hpo_program and hpo_test: one way to declare every target of the tree.

function(hpo_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    -Wno-missing-field-initializers)  # designated initialisers leave the rest at their defaults
  if(CMAKE_UNITY_BUILD)
    # What one file has is taken for a header's.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  if(HPO_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Several sources of a target are compiled as one (docs/adr/027). Not in a release build, unless it is
# asked for, nor in clang's: they say where an include is missing.
set(unity_default ON)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(unity_default OFF)
endif()
option(HPO_UNITY "Compile several sources as one" ${unity_default})
if(HPO_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()

# hpo_library(NAME SOURCES a.cc ... LINK dependency ... [CONVERSION])
#   CONVERSION adds -Wconversion (numeric code).
function(hpo_library name)
  cmake_parse_arguments(ARG "CONVERSION" "" "SOURCES;LINK" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${ARG_LINK})
    hpo_warnings(${name})
    if(ARG_CONVERSION)
      target_compile_options(${name} PRIVATE -Wconversion)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ARG_LINK})
  endif()
endfunction()

# hpo_program(NAME SOURCES main.cc ... LINK dependency ...)
function(hpo_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  hpo_warnings(${name})
endfunction()

# hpo_test(NAME LABEL unit|trainer|chaos [STATISTICAL b_test.cc ...] SOURCES a_test.cc ...
#          LINK dependency ...)
#   One GoogleTest binary per folder of tests/; every *_test.cc of it becomes a ctest test. Files
#   after STATISTICAL, of SOURCES, have that label: they judge many runs of something random.
function(hpo_test name)
  cmake_parse_arguments(ARG "" "LABEL" "STATISTICAL;SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} hpo_test_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  hpo_warnings(${name})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR}
    OUTPUT_VARIABLE folder)
  foreach(source IN LISTS ARG_SOURCES)
    if(NOT source MATCHES "_test\\.cc$")
      continue()
    endif()
    set(file ${folder}/${source})
    add_test(NAME ${file} COMMAND ${name} --file=${file})
    set(label ${ARG_LABEL})
    if(source IN_LIST ARG_STATISTICAL)
      set(label statistical)
    endif()
    set_tests_properties(${file} PROPERTIES LABELS ${label} TIMEOUT 900)
  endforeach()
endfunction()
