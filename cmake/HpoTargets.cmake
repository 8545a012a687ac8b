# hpo_library, hpo_program and hpo_test: one way to declare every target of the tree.

function(hpo_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    -Wno-missing-field-initializers)  # designated initialisers leave the rest at their defaults
  if(HPO_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  set(HPO_PRECOMPILES ON)
endif()

# hpo_precompiles(TARGET [header ...]): gives the target a precompiled header of its own, of these
# headers and of cmake/precompiled.h, or without one that of hpo_common. A release build, and clang's,
# have only torch's, so that they say where an include is missing.
function(hpo_precompiles target)
  set(headers ${ARGN})
  if(NOT HPO_PRECOMPILES)
    list(FILTER headers INCLUDE REGEX torch)
    if(NOT headers)
      return()
    endif()
  elseif(headers)
    list(APPEND headers cmake/precompiled.h)
    list(REMOVE_DUPLICATES headers)
  endif()
  if(headers)  # in quotes: the same text in every checkout, which ccache needs to share objects
    list(TRANSFORM headers REPLACE "(.+)" "\"\\1\"")
    target_precompile_headers(${target} PRIVATE ${headers})
  else()
    target_precompile_headers(${target} REUSE_FROM hpo_common)
  endif()
  hpo_includes_precompiled(${target})
endfunction()

# Options with which targets may take each other's precompiled header.
function(hpo_includes_precompiled target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache needs the first to see through the header; -fPIC because one made for a library serves
    # programs (-fPIE) too; -pthread as what links protobuf has it.
    target_compile_options(${target} PRIVATE -fpch-preprocess -fPIC -pthread -Wno-pedantic)
  endif()
endfunction()

# hpo_library(NAME SOURCES a.cc ... LINK dependency ... [CONVERSION] [PRECOMPILES header ...])
#   CONVERSION adds -Wconversion (numeric code). PRECOMPILES: see hpo_precompiles.
function(hpo_library name)
  cmake_parse_arguments(ARG "CONVERSION" "" "SOURCES;LINK;PRECOMPILES" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${ARG_LINK})
    hpo_warnings(${name})
    hpo_precompiles(${name} ${ARG_PRECOMPILES})
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
  if(HPO_PRECOMPILES AND NOT ARG_LABEL STREQUAL "trainer")
    target_precompile_headers(${name} REUSE_FROM hpo_test_main)  # trainer: torch's and this one's
    hpo_includes_precompiled(${name})
  endif()
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
