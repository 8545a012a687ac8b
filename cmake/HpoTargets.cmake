# hpo_library, hpo_program and hpo_test: one way to declare every target of the tree.

function(hpo_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    -Wno-missing-field-initializers)  # designated initialisers leave the rest at their defaults
  if(HPO_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

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

# hpo_test(NAME LABEL unit|trainer|gpu|slow SOURCES a_test.cc ... LINK dependency ...)
#   One GoogleTest binary per folder of tests/; every TEST becomes a ctest test.
function(hpo_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    HPO_SOURCE_DIR="${CMAKE_SOURCE_DIR}" HPO_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  hpo_warnings(${name})
  gtest_discover_tests(${name}
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300)
endfunction()
