# Writes a C++ table of migrations/NNN_name.sql.
#   embed_migrations(OUTPUT FILES 001_initial.sql ...)
function(embed_migrations output)
  cmake_parse_arguments(ARG "" "" "FILES" ${ARGN})
  set(entries "")
  foreach(file IN LISTS ARG_FILES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/migrations/${file})
    file(READ migrations/${file} sql)
    string(REGEX MATCH "^0*([1-9][0-9]*)_(.+)\\.sql$" matched ${file})
    if(NOT matched)
      message(FATAL_ERROR "migration: expected NNN_name.sql, got '${file}'")
    endif()
    string(APPEND entries "    {${CMAKE_MATCH_1}, \"${CMAKE_MATCH_2}\", R\"sql(${sql})sql\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "// Generated from server/storage/sqlite/migrations.
#include \"server/storage/sqlite/migrations.h\"

namespace hpo::server {

std::span<const Migration> EmbeddedMigrations() {
  static constexpr Migration kMigrations[] = {
@entries@  };
  return kMigrations;
}

}  // namespace hpo::server
")
endfunction()
