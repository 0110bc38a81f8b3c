# The source files that `ropegrad export-solution` writes into a solution, embedded in the tool, so that what it writes is
# what it was built from: ropegrad_embed_sources(LIST) adds to LIST a C file that defines rgt_sources of sources.h.
function(ropegrad_embed_sources list)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/src/base/*.[ch] ${PROJECT_SOURCE_DIR}/src/spec/*.[ch]
    ${PROJECT_SOURCE_DIR}/src/cuda/*.[ch] ${PROJECT_SOURCE_DIR}/src/cuda/*.cuh
    ${PROJECT_SOURCE_DIR}/src/solution/*.[ch] ${PROJECT_SOURCE_DIR}/src/solution/*.cu
    ${PROJECT_SOURCE_DIR}/ops/*/*.[ch] ${PROJECT_SOURCE_DIR}/ops/*/*.cu ${PROJECT_SOURCE_DIR}/ops/*/*.cuh
    ${PROJECT_SOURCE_DIR}/include/ropegrad/*.h ${PROJECT_SOURCE_DIR}/include/ropegrad/*.def ${PROJECT_SOURCE_DIR}/LICENSE)
  set(assembly "")
  set(declarations "")
  set(rows "")
  set(paths)
  set(number 0)
  foreach(file IN LISTS files)
    # Under the name that others include it by.
    string(REGEX REPLACE "^include/" "" name ${file})
    foreach(op IN LISTS ROPEGRAD_OPS)
      if(file STREQUAL "ops/${op}/${op}.h")
        set(name ropegrad/${op}.h)
      endif()
    endforeach()
    if(file STREQUAL "src/solution/dlpack.h")
      set(name dlpack/dlpack.h)
    endif()
    list(APPEND paths ${PROJECT_SOURCE_DIR}/${file})
    set(symbol rgt_source_${number})
    string(APPEND assembly
      "        \".hidden ${symbol}\\n.globl ${symbol}\\n${symbol}:\\n\"\n"
      "        \".incbin \\\"${PROJECT_SOURCE_DIR}/${file}\\\"\\n\"\n"
      "        \".hidden ${symbol}_end\\n.globl ${symbol}_end\\n${symbol}_end:\\n\"\n")
    string(APPEND declarations "extern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND rows "    {\"${name}\", ${symbol}, ${symbol}_end},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  set(wrapper ${PROJECT_BINARY_DIR}/solution/sources.c)
  file(CONFIGURE OUTPUT ${wrapper} @ONLY CONTENT
"/* Written by cmake/Sources.cmake: source files, byte for byte. */
#include \"tools/ropegrad/sources.h\"

__asm__(\".pushsection .rodata\\n\"
@assembly@        \".popsection\\n\");
@declarations@
const rgt_source rgt_sources[] = {
@rows@};
const int rgt_num_sources = sizeof rgt_sources / sizeof rgt_sources[0];
")
  set_source_files_properties(${wrapper} PROPERTIES OBJECT_DEPENDS "${paths}")
  set(${list} ${${list}} ${wrapper} PARENT_SCOPE)
endfunction()
