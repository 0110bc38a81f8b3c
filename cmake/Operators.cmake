# The operators are the rows of ops.def; nothing else in the build names one.
set(ROPEGRAD_OPS_DEF ${PROJECT_SOURCE_DIR}/include/ropegrad/ops.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ROPEGRAD_OPS_DEF})
file(STRINGS ${ROPEGRAD_OPS_DEF} rows REGEX "^RG_OP\\(")
set(ROPEGRAD_OPS)
foreach(row IN LISTS rows)
  string(REGEX REPLACE "^RG_OP\\(([a-z0-9_]+)\\).*" "\\1" op ${row})
  list(APPEND ROPEGRAD_OPS ${op})
endforeach()

# The public headers as users see them: <ropegrad/OP.h> for each operator, and <ropegrad/operators.h> for all.
set(ROPEGRAD_GENERATED_INCLUDE ${PROJECT_BINARY_DIR}/include)
set(includes "")
foreach(op IN LISTS ROPEGRAD_OPS)
  configure_file(${PROJECT_SOURCE_DIR}/ops/${op}/${op}.h ${ROPEGRAD_GENERATED_INCLUDE}/ropegrad/${op}.h COPYONLY)
  string(APPEND includes "#include \"ropegrad/${op}.h\"\n")
endforeach()
file(CONFIGURE OUTPUT ${ROPEGRAD_GENERATED_INCLUDE}/ropegrad/operators.h CONTENT
"/* Every operator of ropegrad. Written by the build from ops.def. */
#ifndef ROPEGRAD_OPERATORS_H
#define ROPEGRAD_OPERATORS_H

${includes}
#endif
")
