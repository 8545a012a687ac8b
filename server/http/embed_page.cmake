# Writes a C++ table of the files below a folder. The linker takes each file as it is (.incbin).
#   embed_page(OUTPUT FOLDER)
function(embed_page output folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*)
  list(SORT files)
  if(NOT "index.html" IN_LIST files)
    message(FATAL_ERROR "the page: expected ${folder}/index.html; it is built by web/ and is in the repository")
  endif()
  set(blobs "")
  set(names "")
  set(entries "")
  set(index 0)
  foreach(file IN LISTS files)
    string(APPEND blobs "asm(\".section .rodata\\n\"
    \".global hpo_page_${index}\\nhpo_page_${index}:\\n.incbin \\\"${folder}/${file}\\\"\\n\"
    \".global hpo_page_${index}_end\\nhpo_page_${index}_end:\\n.byte 0\\n.previous\\n\");\n")
    string(APPEND names "extern const char hpo_page_${index}[];\nextern const char hpo_page_${index}_end[];\n")
    string(APPEND entries "    {\"/${file}\", {hpo_page_${index}, static_cast<size_t>(hpo_page_${index}_end - hpo_page_${index})}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "// Generated from web/dist.
#include \"server/http/page_files.h\"

@blobs@
extern \"C\" {
@names@}

namespace hpo::server {

std::span<const EmbeddedFile> EmbeddedPage() {
  static const EmbeddedFile kFiles[] = {
@entries@  };
  return kFiles;
}

}  // namespace hpo::server
")
  list(TRANSFORM files PREPEND ${folder}/)
  set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS "${files}" SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
