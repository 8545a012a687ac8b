# With HPO_STATIC_DEPENDENCIES the programs hold the distribution's libraries instead of loading
# them. The distribution's CMake files name shared libraries only; the static ones lie beside them.
#
# Of cpp-httplib there is no static one: it is compiled from the distribution's source package,
# which `scripts/bootstrap --static` fetches. Without that it stays shared, and so does what it
# loads (OpenSSL, zlib, Brotli), because a process must not have two of one library.

# hpo_static_file(RESULT SHARED): the static library beside a shared one; empty where there is none.
function(hpo_static_file result shared)
  string(REGEX REPLACE "\\.so[.0-9]*$" ".a" static "${shared}")
  if(static STREQUAL shared OR NOT EXISTS "${static}")
    set(static "")
  endif()
  set(${result} "${static}" PARENT_SCOPE)
endfunction()

# hpo_link_statically(TARGET ...): imported libraries that are linked as their static selves.
function(hpo_link_statically)
  foreach(target IN LISTS ARGN)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL INTERFACE_LIBRARY)
      hpo_link_package_statically(${target})
    endif()
    if(NOT type MATCHES "^(SHARED|UNKNOWN)_LIBRARY$")
      continue()
    endif()
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    if(NOT configurations)
      set(configurations "")
    endif()
    list(TRANSFORM configurations PREPEND IMPORTED_LOCATION_)
    foreach(property IN LISTS configurations ITEMS IMPORTED_LOCATION)
      get_target_property(shared ${target} ${property})
      if(NOT shared)
        continue()
      endif()
      hpo_static_file(static "${shared}")
      if(static)
        set_target_properties(${target} PROPERTIES ${property} "${static}")
      else()
        message(STATUS "HPO_STATIC_DEPENDENCIES: no static library beside ${shared}")
      endif()
    endforeach()
  endforeach()
endfunction()

# hpo_link_package_statically(TARGET): the same for a target of pkg_check_modules.
function(hpo_link_package_statically target)
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  if(NOT libraries)
    return()
  endif()
  set(static_libraries "")
  foreach(library IN LISTS libraries)
    if(library MATCHES "^-l(.+)$")
      find_library(hpo_static_${CMAKE_MATCH_1} lib${CMAKE_MATCH_1}.a)
      set(static ${hpo_static_${CMAKE_MATCH_1}})
    else()
      hpo_static_file(static "${library}")
    endif()
    if(static)
      list(APPEND static_libraries "${static}")
    else()
      list(APPEND static_libraries "${library}")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${static_libraries}")
endfunction()

# hpo_compile_httplib(): cpp-httplib and all that it loads, where its source is there.
function(hpo_compile_httplib)
  set(source $ENV{HOME}/.cache/hpo/cpp-httplib-${httplib_VERSION}/httplib.cc)
  if(NOT EXISTS ${source})
    message(STATUS "HPO_STATIC_DEPENDENCIES: cpp-httplib stays shared, there is no ${source} "
      "(scripts/bootstrap --static)")
    return()
  endif()
  hpo_link_statically(OpenSSL::SSL OpenSSL::Crypto ZLIB::ZLIB)
  pkg_check_modules(brotli REQUIRED IMPORTED_TARGET libbrotlidec libbrotlienc libbrotlicommon)
  hpo_link_package_statically(PkgConfig::brotli)
  get_target_property(definitions PkgConfig::httplib INTERFACE_COMPILE_OPTIONS)
  add_library(hpo_httplib STATIC ${source})
  target_compile_options(hpo_httplib PRIVATE ${definitions} -w)
  target_link_libraries(hpo_httplib PUBLIC OpenSSL::SSL OpenSSL::Crypto ZLIB::ZLIB PkgConfig::brotli)
  set_target_properties(PkgConfig::httplib PROPERTIES INTERFACE_LINK_LIBRARIES hpo_httplib)
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${hpo_oldest_libstdcxx}")
endfunction()

set(hpo_oldest_libstdcxx -include ${CMAKE_CURRENT_LIST_DIR}/oldest_libstdcxx.h)

# hpo_ask_for_an_old_libstdcxx(): after every add_subdirectory. The files with a condition variable.
function(hpo_ask_for_an_old_libstdcxx)
  foreach(file IN ITEMS common/base/steady_wait.cc common/interop/mlflow/http_client.cc
                        server/http/metrics_endpoint.cc)
    string(REGEX MATCH "^common/interop|^common|^server/http" directory ${file})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/${file}
      DIRECTORY ${CMAKE_SOURCE_DIR}/${directory}
      PROPERTIES COMPILE_OPTIONS "${hpo_oldest_libstdcxx}")
  endforeach()
endfunction()

# hpo_use_static_dependencies(): after every find_package.
function(hpo_use_static_dependencies)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER imported INCLUDE REGEX
       "^(absl::.*|gRPC::.*|c-ares::cares|re2::re2|protobuf::libprotobuf|yaml-cpp.*|SQLite::SQLite3)$")
  hpo_link_statically(${imported})
  hpo_compile_httplib()
  hpo_link_package_statically(PkgConfig::utf8proc)
  # SQLite's functions of numbers.
  set_property(TARGET SQLite::SQLite3 APPEND PROPERTY INTERFACE_LINK_LIBRARIES m)
  # spdlog and fmt come without static libraries, but whole in their headers.
  set_target_properties(spdlog::spdlog_header_only PROPERTIES
    INTERFACE_LINK_LIBRARIES "Threads::Threads;fmt::fmt-header-only")
  # What the programs hold of others is nobody else's to use, least of all torch's.
  add_link_options(-Wl,--exclude-libs,ALL -Wl,--as-needed)
endfunction()
